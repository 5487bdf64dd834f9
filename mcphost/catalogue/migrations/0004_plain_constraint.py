"""The constraint of a primitive's URI by the new name of its field. The column, and so the SQL, are the same."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0003_plain_field_names")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint(
                    model_name="primitive", name="catalogue_primitive_has_uri"
                ),
                migrations.AddConstraint(
                    model_name="primitive",
                    constraint=models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("primitive_type__in", ["resource", "template"]),
                                ("uri__isnull", False),
                            ),
                            models.Q(
                                ("primitive_type__in", ["tool", "prompt"]), ("uri__isnull", True)
                            ),
                            _connector="OR",
                        ),
                        name="catalogue_primitive_has_uri",
                    ),
                ),
            ],
        ),
    ]
