"""What the API's operations are: declared beside their methods, read by requests and by the document."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, Protocol, TypeVar

from django.http import HttpResponse
from rest_framework.request import Request

from mcphost.api.representations import Fields, ListQuery, NoFields, Representation
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.roles import READ_API, WRITE_API, Permission

SAFE_METHODS: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One operation: a method of an address.

    `summary` may name the parts of its route (`{type}`). With a `permission`, it needs that in the tenant
    of the address; a tenant that the caller may not see is unknown. `conditional`: it changes an
    object that exists, and needs If-Match. `creates`: it answers 201 with the address of a new object.
    `media_types` are those of an operation that answers with a file instead of an object.
    `shown_once` names members of the response that are not stored, so that a repeated creation has null
    there. `merges` reads the object that a merge patch is applied to. `example` is a body that works;
    where it depends on the type of a primitive, `examples` has one for each.
    """

    summary: str
    permission: Permission | None
    returns: type[Representation] | None
    body: type[Fields] = NoFields
    query: type[ListQuery] = ListQuery
    conditional: bool = False
    creates: bool = False
    shown_once: frozenset[str] = frozenset()
    merges: Callable[..., Representation] | None = None
    media_types: tuple[str, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)
    examples: Mapping[PrimitiveType, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The status of success."""
        if self.creates:
            return 201
        return 204 if self.returns is None and not self.media_types else 200

    def example_for(self, primitive_type: PrimitiveType | None) -> Mapping[str, Any]:
        """Return a body that works, for primitives of a type."""
        return (
            self.example
            if primitive_type is None
            else self.examples.get(primitive_type, self.example)
        )


def scope_for(method: str) -> str:
    """Return the scope that a method needs."""
    return READ_API if method in SAFE_METHODS else WRITE_API


class _Performer(Protocol):
    def perform(
        self,
        operation: ApiOperation,
        handler: Callable[..., HttpResponse],
        request: Request,
        ids: Mapping[str, Any],
    ) -> HttpResponse: ...


V = TypeVar("V", bound=_Performer)


def operation(
    declared: ApiOperation,
) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Declare a method of an `Endpoint` as an operation.

    The method is called after all checks, as `method(view, call, **ids)`: with `body`, if the
    operation has fields, and `query`, if it has parameters.
    """

    def decorate(handler: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(handler)
        def handle(view: V, request: Request, **ids: Any) -> HttpResponse:
            return view.perform(declared, handler, request, ids)

        handle.operation = declared  # type: ignore[attr-defined]  # the document reads it
        return handle

    return decorate
