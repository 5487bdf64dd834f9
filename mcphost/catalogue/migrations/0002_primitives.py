"""Turn tools into primitives of several types. Existing rows become primitives of type tool."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

SORTS = ["tool", "prompt", "resource", "template"]


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0001_initial")]

    operations = [
        migrations.RemoveConstraint("tool", "catalogue_tool_name"),
        migrations.RemoveConstraint("tool", "catalogue_tool_known_state"),
        migrations.RemoveConstraint("tool", "catalogue_tool_live_unless_draft"),
        migrations.RemoveConstraint("toolversion", "catalogue_toolversion_number"),
        migrations.RenameModel("Tool", "Primitive"),
        migrations.RenameModel("ToolVersion", "PrimitiveVersion"),
        migrations.AlterModelTable("primitive", "catalogue_primitive"),
        migrations.AlterModelTable("primitiveversion", "catalogue_primitiveversion"),
        migrations.RenameField("primitiveversion", "tool", "primitive"),
        migrations.AddField(
            "primitive",
            "sort",
            models.CharField(
                choices=[(sort, sort) for sort in SORTS], default="tool", max_length=16
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            "primitive", "uri", models.CharField(blank=True, max_length=2048, null=True)
        ),
        migrations.AlterField(
            "primitive",
            "tenant",
            models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="primitives",
                to="tenants.tenant",
            ),
        ),
        migrations.AlterModelOptions("primitive", {"ordering": ["tenant_id", "sort", "name"]}),
        migrations.AlterModelOptions(
            "primitiveversion", {"ordering": ["primitive_id", "-number"]}
        ),
        migrations.AddConstraint(
            "primitive",
            models.UniqueConstraint(
                fields=["tenant", "sort", "name"], name="catalogue_primitive_name"
            ),
        ),
        migrations.AddConstraint(
            "primitive",
            models.UniqueConstraint(fields=["tenant", "uri"], name="catalogue_primitive_uri"),
        ),
        migrations.AddConstraint(
            "primitive",
            models.CheckConstraint(
                condition=Q(sort__in=SORTS[2:], uri__isnull=False)
                | Q(sort__in=SORTS[:2], uri__isnull=True),
                name="catalogue_primitive_has_uri",
            ),
        ),
        migrations.AddConstraint(
            "primitive",
            models.CheckConstraint(
                condition=Q(state__in=["draft", "published", "disabled"]),
                name="catalogue_primitive_known_state",
            ),
        ),
        migrations.AddConstraint(
            "primitive",
            models.CheckConstraint(
                condition=Q(state="draft", live__isnull=True)
                | (~Q(state="draft") & Q(live__isnull=False)),
                name="catalogue_primitive_live_unless_draft",
            ),
        ),
        migrations.AddConstraint(
            "primitiveversion",
            models.UniqueConstraint(
                fields=["primitive", "number"], name="catalogue_primitiveversion_number"
            ),
        ),
    ]
