"""The names without a row of their own are counted in a dimension of their own, not under the name `other`."""

from django.db import migrations

MOVE = """
UPDATE audit_rollup SET dimension = dimension + 20, name = ''
WHERE dimension BETWEEN 1 AND 4 AND name = 'other' AND client = ''
"""
BACK = """
UPDATE audit_rollup SET dimension = dimension - 20, name = 'other'
WHERE dimension BETWEEN 21 AND 24
"""


class Migration(migrations.Migration):

    dependencies = [
        ("audit", "0008_verification"),
    ]

    operations = [migrations.RunSQL(MOVE, BACK)]
