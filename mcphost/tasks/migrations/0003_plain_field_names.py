"""New names of fields. The columns keep theirs, so processes of both releases use the tables."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tasks", "0002_question_states"),
    ]

    operations = [
        migrations.AlterField(
            model_name="task",
            name="who",
            field=models.TextField(db_column="who"),
        ),
        migrations.RenameField(
            model_name="task",
            old_name="who",
            new_name="principal_key",
        ),
        migrations.AlterField(
            model_name="taskquestion",
            name="taken",
            field=models.BigIntegerField(blank=True, db_column="taken", null=True),
        ),
        migrations.RenameField(
            model_name="taskquestion",
            old_name="taken",
            new_name="answer_round",
        ),
    ]
