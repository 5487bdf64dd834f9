"""Published primitives as serving uses them: frozen, compiled, shared between requests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from mcphost.audit.redaction import Redactor
from mcphost.catalogue.redaction import ResultRedactor
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.prompts import PromptArgument
from mcphost.protocol.schemas import ParamHeader
from mcphost.protocol.uri_positions import UriPositions
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.runtime.program import Program, TaskSupport
from mcphost.runtime.schema import Validator


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One published primitive, ready to be listed and run.

    `version` is `"<publications>+<8 hex digits>"`, the digits from the publication's digest.
    `scopes` are its own, besides `mcp:list` and `mcp:call`. `listing` is its entry in lists on the
    wire, `encoded` the same as JSON; both are shared and never changed. `input_redactor` takes
    arguments, `output_redactor` the method's whole result. `time_limit` is in seconds for one
    round, None for the platform's. `requires` names client capabilities. `answer_within` is in
    seconds, None for the platform's. `claims` says whether a round that takes in an answer must run
    only once. `unasked` says whether input responses are accepted that were not requested.
    `missing_function` is the function that only other processes have; empty if this one can run it.
    """

    primitive_type: ClassVar[PrimitiveType]

    id: UUID
    name: str
    kind: str
    version: str
    scopes: frozenset[str]
    listing: Mapping[str, Any]
    encoded: bytes
    input_validator: Validator
    input_redactor: Redactor
    output_redactor: ResultRedactor
    program: Program
    time_limit: float | None
    requires: tuple[str, ...]
    answer_within: float | None
    claims: bool
    unasked: bool
    missing_function: str = ""

    @property
    def read_only(self) -> bool:
        """Whether it may run without an entry in the record that is written beforehand."""
        return True

    @property
    def task_support(self) -> TaskSupport:
        """When its calls become tasks."""
        return TaskSupport.NEVER

    @property
    def retries(self) -> int:
        """How often a round of its tasks may run again after an unexpected exception."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSnapshot(Snapshot):
    """A tool (spec: server/tools)."""

    primitive_type: ClassVar[PrimitiveType] = PrimitiveType.TOOL

    param_headers: tuple[ParamHeader, ...]
    output_validator: Validator | None
    annotations: Mapping[str, Any]
    read_only: bool
    idempotent: bool
    task_support: TaskSupport = TaskSupport.NEVER
    retries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSnapshot(Snapshot):
    """A prompt (spec: server/prompts). `completer` answers `completion/complete`."""

    primitive_type: ClassVar[PrimitiveType] = PrimitiveType.PROMPT

    arguments: tuple[PromptArgument, ...]
    completer: Program | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSnapshot(Snapshot):
    """A resource (spec: server/resources)."""

    primitive_type: ClassVar[PrimitiveType] = PrimitiveType.RESOURCE

    uri: str
    mime_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSnapshot(Snapshot):
    """A resource template (spec: server/resources, "Resource Templates")."""

    primitive_type: ClassVar[PrimitiveType] = PrimitiveType.TEMPLATE

    uri_template: UriTemplate
    mime_type: str
    completer: Program | None


ReadAt = tuple[ResourceSnapshot | TemplateSnapshot, Mapping[str, str]]
"""The resource or template that serves a URI, and the values of a template's variables."""


@dataclass(frozen=True, slots=True)
class PrimitiveProblem:
    """Why a published primitive is not served. `scopes` and `uri` are its own. `missing_function` is the
    function that no process is known to have; empty if something else is wrong."""

    primitive_id: UUID
    tenant_id: UUID
    primitive_type: PrimitiveType
    name: str
    message: str
    scopes: frozenset[str] = frozenset()
    uri: str = ""
    missing_function: str = ""


@dataclass(frozen=True, slots=True)
class Offering:
    """All that one tenant serves, and the problems of what cannot be served.

    Tools and prompts are ordered by name, resources by URI, templates by their text. `pages` keeps
    the pages of its lists that have been prepared for clients.
    """

    tools: tuple[ToolSnapshot, ...] = ()
    prompts: tuple[PromptSnapshot, ...] = ()
    resources: tuple[ResourceSnapshot, ...] = ()
    templates: tuple[TemplateSnapshot, ...] = ()
    problems: tuple[PrimitiveProblem, ...] = ()
    tools_by_name: Mapping[str, ToolSnapshot] = field(default_factory=dict, repr=False)
    prompts_by_name: Mapping[str, PromptSnapshot] = field(default_factory=dict, repr=False)
    resources_by_uri: Mapping[str, ResourceSnapshot] = field(default_factory=dict, repr=False)
    pages: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def everything(self) -> tuple[Snapshot, ...]:
        """All that is served, of every type."""
        return (*self.tools, *self.prompts, *self.resources, *self.templates)

    def template(self, uri_template: str) -> TemplateSnapshot | None:
        """Return the template with this text."""
        matching = (
            template for template in self.templates if template.uri_template.text == uri_template
        )
        return next(matching, None)

    def read_at(self, uri: str, scopes: frozenset[str] | None = None) -> ReadAt | None:
        """Return what serves a URI in its normal form.

        That is the resource of that URI, else the first template that it matches, with the values
        of its variables. With `scopes`, only primitives that a caller with these scopes may see.
        """
        resource = self.resources_by_uri.get(uri)
        if resource is not None and (scopes is None or resource.scopes <= scopes):
            return resource, {}
        positions = UriPositions(uri)
        for template in self.templates:
            if scopes is None or template.scopes <= scopes:
                values = template.uri_template.match_positions(positions)
                if values is not None:
                    return template, values
        return None


S = TypeVar("S", bound=Snapshot)


def offering_of(served: Iterable[Snapshot | PrimitiveProblem]) -> Offering:
    """Return an offering in the order of code points, the same on every database and node."""
    everything = sorted(served, key=lambda primitive: primitive.name)
    tools = _all(everything, ToolSnapshot)
    prompts = _all(everything, PromptSnapshot)
    resources = sorted(_all(everything, ResourceSnapshot), key=lambda resource: resource.uri)
    templates = sorted(
        _all(everything, TemplateSnapshot), key=lambda template: template.uri_template.text
    )
    return Offering(
        tools=tuple(tools),
        prompts=tuple(prompts),
        resources=tuple(resources),
        templates=tuple(templates),
        problems=tuple(problem for problem in everything if isinstance(problem, PrimitiveProblem)),
        tools_by_name={tool.name: tool for tool in tools},
        prompts_by_name={prompt.name: prompt for prompt in prompts},
        resources_by_uri={resource.uri: resource for resource in resources},
    )


def _all(served: Iterable[Snapshot | PrimitiveProblem], of: type[S]) -> list[S]:
    return [primitive for primitive in served if isinstance(primitive, of)]
