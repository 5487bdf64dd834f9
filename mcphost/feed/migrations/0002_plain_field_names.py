"""New names of fields. The columns keep theirs, so processes of both releases use the tables."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("feed", "0001_initial"),
    ]

    operations = [
        migrations.AlterField(
            model_name="change",
            name="what",
            field=models.TextField(db_column="what"),
        ),
        migrations.RenameField(
            model_name="change",
            old_name="what",
            new_name="name",
        ),
    ]
