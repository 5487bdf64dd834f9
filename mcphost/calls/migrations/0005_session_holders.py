import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    """Existing sessions have no holder, so they are not counted until they expire."""

    dependencies = [("calls", "0004_rounds")]

    operations = [
        migrations.AddField(
            model_name="session",
            name="holder",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="session",
            name="used_at",
            field=models.DateTimeField(db_default=Now()),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("ended_at", None)),
                fields=["holder", "used_at"],
                name="calls_session_open",
            ),
        ),
        migrations.CreateModel(
            name="GetStream",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("owner", models.UUIDField(db_index=True)),
                ("opened_at", models.DateTimeField()),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="get_streams",
                        to="calls.session",
                    ),
                ),
            ],
            options={"db_table": "calls_getstream", "ordering": ["opened_at", "id"]},
        ),
    ]
