"""New names of fields. The columns keep theirs, so processes of both releases use the tables."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalogue", "0002_member_values"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterModelOptions(
                    name="primitive",
                    options={"ordering": ["tenant_id", "primitive_type", "name"]},
                ),
                migrations.RemoveConstraint(
                    model_name="primitive",
                    name="catalogue_primitive_name",
                ),
                migrations.AlterField(
                    model_name="importedoperation",
                    name="said",
                    field=models.JSONField(db_column="said"),
                ),
                migrations.RenameField(
                    model_name="importedoperation",
                    old_name="said",
                    new_name="definition",
                ),
                migrations.AlterField(
                    model_name="primitive",
                    name="sort",
                    field=models.CharField(
                        choices=[
                            ("tool", "tool"),
                            ("prompt", "prompt"),
                            ("resource", "resource"),
                            ("template", "template"),
                        ],
                        db_column="sort",
                        max_length=16,
                    ),
                ),
                migrations.RenameField(
                    model_name="primitive",
                    old_name="sort",
                    new_name="primitive_type",
                ),
                migrations.AddConstraint(
                    model_name="primitive",
                    constraint=models.UniqueConstraint(
                        fields=("tenant", "primitive_type", "name"), name="catalogue_primitive_name"
                    ),
                ),
            ],
        ),
    ]
