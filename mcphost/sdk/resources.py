"""`@resource`: a function as a resource or a resource template (spec: server/resources)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

from mcp_types import Annotations

from mcphost.sdk.marking import Completers, Function, check_limits, check_names, mark


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """The options of `@resource` for a function. An empty name or description is taken from the function."""

    uri: str
    name: str = ""
    title: str = ""
    description: str = ""
    mime_type: str = ""
    annotations: Annotations | Mapping[str, Any] | None = None
    version: str = ""
    time_limit: float | None = None
    requires: Sequence[str] = ()
    threads: int | None = None
    answer_within: float | None = None
    claims: bool | None = None
    unasked: bool = False
    completers: Completers = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_limits(self)

    @property
    def is_template(self) -> bool:
        """Whether the URI has variables, so that it describes many resources."""
        return "{" in self.uri


class ResourceOptions(TypedDict, total=False):
    """The options of `@resource` besides the URI.

    `annotations` are its audience and priority, also as a dict; all others are as for `@tool`.
    """

    name: str
    title: str
    description: str
    mime_type: str
    annotations: Annotations | Mapping[str, Any]
    version: str
    time_limit: float
    requires: Sequence[str]
    threads: int
    answer_within: float
    claims: bool
    unasked: bool


def resource(uri: str, /, **options: Unpack[ResourceOptions]) -> Callable[[Function], Function]:
    """Offer a function as the resource at a URI: `@resource("docs://readme")`.

    A URI with variables, `@resource("users://{user}/card")`, is a template, and the variables are
    the function's parameters. Raises TypeError for an option that does not exist, or without a URI.
    """
    if not isinstance(uri, str):
        raise TypeError('@resource takes a URI first: @resource("docs://readme")')
    check_names("resource", ResourceDefinition, options)
    definition = ResourceDefinition(uri, **options)

    def offer(function: Function) -> Function:
        return mark(function, definition)

    return offer
