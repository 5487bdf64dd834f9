"""Every route of the API with its methods, and addresses with things of the cast's tenants."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.urls import URLPattern

from mcphost.api.endpoint import METHODS
from mcphost.api.operations import ApiOperation
from mcphost.api.urls import V1
from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.selectors import versions
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.selectors import TenantSnapshot
from tests.api.samples import SAMPLES
from tests.cast import ACTOR


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one address."""

    name: str
    method: str
    pattern: URLPattern
    operation: ApiOperation

    def __str__(self) -> str:
        return f"{self.method} {self.name}"

    @property
    def is_of_tenant(self) -> bool:
        return "slug" in self.pattern.pattern.converters

    @property
    def types(self) -> str:
        """The collection of the object, for example `tools`."""
        return f"{self.pattern.default_args.get('primitive_type', self.name)}s"

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of the parts of the route."""
        return tuple(self.pattern.pattern.converters)

    def id_of(self, name: str, ids: dict[str, Any]) -> Any:
        """Return the value of a part of the route; ids of primitives are by type."""
        primitive_type = self.pattern.default_args.get("primitive_type")
        value = ids.get(f"{primitive_type}.{name}", ids.get(name))
        assert value is not None, f"The walk needs a value for {name} of {self.name}"
        return value

    def path(self, ids: dict[str, Any]) -> str:
        """Return the address with these ids."""
        route = str(self.pattern.pattern)
        for name, converter in self.pattern.pattern.converters.items():
            route = re.sub(rf"<\w+:{name}>", converter.to_url(self.id_of(name, ids)), route)
        return f"/api/v1/{route}"


def routes() -> Iterator[Route]:
    """Yield all operations."""
    for pattern in V1:
        view = vars(pattern.callback)["view_class"]
        for method in METHODS:
            handler = getattr(view, method, None)
            if handler is not None:
                yield Route(str(pattern.name), method.upper(), pattern, handler.operation)


ROUTES = tuple(routes())


def ids_of(tenant: TenantSnapshot) -> dict[str, Any]:
    """Create one of each type in a tenant; return their ids by the names of the routes' parts."""
    ids: dict[str, Any] = {"slug": tenant.slug}
    for sample in SAMPLES:
        primitive_type = sample.path.rpartition("/")[2].removesuffix("s")
        if primitive_type in set(PrimitiveType):
            identity, version = _published(
                tenant.id, PrimitiveType(primitive_type), sample.creation
            )
            ids[f"{primitive_type}.primitive_id"] = identity
            ids[f"{primitive_type}.version_id"] = version
    return ids


def _published(tenant: UUID, primitive_type: PrimitiveType, creation: Any) -> tuple[UUID, UUID]:
    fields = PrimitiveFields(
        primitive_type=primitive_type,
        **{**creation, "name": f"canary-{primitive_type}"},
    )
    row = services.create(tenant, fields, ACTOR)
    services.publish(row.id, ACTOR)
    return row.id, versions(row.id)[0].id
