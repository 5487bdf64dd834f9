from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("calls", "0008_cancelled_calls"),
    ]

    operations = [
        migrations.AddField(
            model_name="claim",
            name="function",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="claim",
            name="request",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(("function", ""), _negated=True)
                & models.Q(("state", "finished"), _negated=True),
                fields=["function", "taken_at"],
                name="calls_claim_left",
            ),
        ),
    ]
