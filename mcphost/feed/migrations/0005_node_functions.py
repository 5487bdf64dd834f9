import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("feed", "0004_facts"),
    ]

    operations = [
        migrations.CreateModel(
            name="NodeFunctions",
            fields=[
                (
                    "node",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="functions",
                        serialize=False,
                        to="feed.node",
                    ),
                ),
                ("declared", models.JSONField()),
            ],
            options={
                "db_table": "feed_node_functions",
                "ordering": ["node"],
            },
        ),
    ]
