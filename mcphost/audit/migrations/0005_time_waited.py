"""The summaries of calls are made again, from their entries: they have the time waited, declined calls, and marks of errors."""

from django.db import migrations, models

MADE_AGAIN = (
    "audit_call",
    "audit_call_mark",
    "audit_question",
    "audit_call_change",
    "audit_rollup",
    "audit_rollup_due",
    "audit_following",
)


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0004_questions'),
    ]

    operations = [
        migrations.RunSQL(
            [f"DELETE FROM {table}" for table in MADE_AGAIN], migrations.RunSQL.noop
        ),
        migrations.AddField(
            model_name='callsummary',
            name='waited_us',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='rollup',
            name='declined',
            field=models.BigIntegerField(default=0),
        ),
    ]
