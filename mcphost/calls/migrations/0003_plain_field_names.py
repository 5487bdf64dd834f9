"""New names of fields. The columns keep theirs, so processes of both releases use the tables."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("calls", "0002_unused_columns"),
    ]

    operations = [
        migrations.AlterField(
            model_name="session",
            name="who",
            field=models.TextField(db_column="who"),
        ),
        migrations.RenameField(
            model_name="session",
            old_name="who",
            new_name="principal_key",
        ),
    ]
