"""Calls that may have waited, were declined or failed are projected again, in the background and the newest first, so that they
have the time waited, their state and their marks; their rows stay as they are meanwhile."""

from django.db import migrations, models

PROJECTED_AGAIN = (
    "UPDATE audit_following SET missing_from = NULL, missing_until = 'ffff0000000000000000000000000000' "
    "WHERE EXISTS (SELECT 1 FROM audit_call WHERE asked > 0 OR entries > 2 OR is_error)",
    "UPDATE audit_call SET entries = 0 WHERE asked > 0 OR entries > 2 OR is_error",
)


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0004_questions'),
    ]

    operations = [
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
        migrations.RunSQL(PROJECTED_AGAIN, migrations.RunSQL.noop),
    ]
