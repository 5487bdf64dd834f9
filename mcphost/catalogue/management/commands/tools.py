"""`manage.py tools`: what tenants offer, from the command line."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, selectors, services, validation
from mcphost.catalogue.compiling import ARGUMENT_LIMIT_NOTICE, argument_limit
from mcphost.catalogue.errors import CatalogueError
from mcphost.catalogue.models import Primitive
from mcphost.catalogue.states import diagram
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.clients import OfferedTool, client_warnings
from mcphost.tenants.errors import UnknownTenantError
from mcphost.tenants.models import Tenant

ACTOR = Actor.system("manage.py tools")


class Command(BaseCommand):
    """Lists tools, prompts and resources, publishes one, grants a function."""

    help = "List tools, prompts and resources, publish one, grant a Python function to a tenant."
    requires_system_checks = ["mcphost"]  # Django's own load all pages of the console

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser(
            "list", help="list primitives in every state, and why any is not served"
        )
        listing.add_argument("tenant", nargs="?", help="a tenant's slug (default: all tenants)")
        publish = verbs.add_parser("publish", help="publish the working copy of a primitive")
        publish.add_argument("tenant")
        publish.add_argument("name")
        publish.add_argument(
            "--type",
            choices=[primitive_type.value for primitive_type in PrimitiveType],
            default="tool",
        )
        grant = verbs.add_parser("grant", help="let a tenant use a Python function")
        grant.add_argument("tenant")
        grant.add_argument("function", help="its reference, such as module.function")
        verbs.add_parser("states", help="print the transitions between states")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        kinds.discover()
        try:
            getattr(self, f"_{verb}")(options)
        except (CatalogueError, UnknownTenantError) as error:
            raise CommandError(str(error)) from None

    def _list(self, options: dict[str, Any]) -> None:
        tenants = Tenant.objects.open()
        if slug := options["tenant"]:
            tenants = tenants.filter(pk=_tenant(slug).pk)
        broken = {
            problem.primitive_id: problem.message for problem in selectors.problems_of(tenants)
        }
        for row in selectors.primitives(tenants):
            columns = [
                row.tenant_slug,
                row.primitive_type.value,
                row.name,
                row.state.value,
                row.version or "-",
            ]
            if row.edited:
                columns.append("(edited since)")
            if row.id in broken:
                columns.append(f"NOT SERVED: {broken[row.id]}")
            self.stdout.write("\t".join(columns))

    def _publish(self, options: dict[str, Any]) -> None:
        tenant, name, type_name = _tenant(options["tenant"]), options["name"], options["type"]
        primitives = Primitive.objects.filter(tenant=tenant, primitive_type=type_name, name=name)
        primitive_id = primitives.values_list("id", flat=True).first()
        if primitive_id is None:
            raise CommandError(f"{tenant.slug} has no {type_name} {name!r}")
        row = services.publish(primitive_id, ACTOR)
        self.stdout.write(f"{tenant.slug}/{name} is published as {row.version}")
        ready = validation.check(row.tenant_id, row.fields, row.id)
        limit = argument_limit(ready.shape.input_validator)
        if limit is not None:
            self.stdout.write(ARGUMENT_LIMIT_NOTICE.format(limit))
        if row.primitive_type is PrimitiveType.TOOL:
            for warning in client_warnings(OfferedTool(row.name, ready.compiled.input_schema)):
                self.stdout.write(warning)

    def _grant(self, options: dict[str, Any]) -> None:
        tenant, function = _tenant(options["tenant"]), options["function"]
        new = services.grant_function(tenant.id, function, ACTOR)
        self.stdout.write(
            f"{tenant.slug} {'may now use' if new else 'could already use'} {function}"
        )

    def _states(self, options: dict[str, Any]) -> None:
        for line in diagram():
            self.stdout.write(line)


def _tenant(slug: str) -> Tenant:
    tenant = Tenant.objects.open().filter(slug=slug).first()
    if tenant is None:
        raise CommandError(f"there is no open tenant {slug!r}")
    return tenant
