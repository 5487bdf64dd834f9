"""What serving sees of what a tenant offers: frozen, compiled, shared between requests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from mcphost.audit.redaction import Redactor
from mcphost.catalogue.redaction import ResultRedactor
from mcphost.kinds.sorts import Sort
from mcphost.protocol.laid_out import LaidOut
from mcphost.protocol.prompts import PromptArgument
from mcphost.protocol.schemas import ParamHeader
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.runtime.program import Program
from mcphost.runtime.schema import Validator


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One published primitive, ready to be listed and run.

    `version` is `"<publications>+<8 hex digits>"`, the digits from the digest of what its author
    says. `scopes` are its own, beside `mcp:list` and `mcp:call`. `listing` is how it is listed on
    the wire, `encoded` the same as JSON; both are shared and never changed. `input_redactor` takes
    arguments, `output_redactor` the method's whole result. `time_limit` is in seconds for one round,
    None for the platform's. `requires` names client capabilities. `answer_within` is in seconds, None
    for the platform's; `claims` says whether a round that takes in an answer must run once only;
    `unasked` whether answers are taken that nobody asked for.
    """

    sort: ClassVar[Sort]

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

    @property
    def read_only(self) -> bool:
        """Whether it may run without an entry in the record that says so beforehand."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSnapshot(Snapshot):
    """A tool (spec: server/tools)."""

    sort: ClassVar[Sort] = Sort.TOOL

    param_headers: tuple[ParamHeader, ...]
    output_validator: Validator | None
    annotations: Mapping[str, Any]
    read_only: bool
    idempotent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSnapshot(Snapshot):
    """A prompt (spec: server/prompts). `completer` answers `completion/complete`."""

    sort: ClassVar[Sort] = Sort.PROMPT

    arguments: tuple[PromptArgument, ...]
    completer: Program | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSnapshot(Snapshot):
    """A resource (spec: server/resources)."""

    sort: ClassVar[Sort] = Sort.RESOURCE

    uri: str
    mime_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSnapshot(Snapshot):
    """A resource template (spec: server/resources, "Resource Templates")."""

    sort: ClassVar[Sort] = Sort.TEMPLATE

    uri_template: UriTemplate
    mime_type: str
    completer: Program | None


@dataclass(frozen=True, slots=True)
class PrimitiveProblem:
    """Why something published is not served."""

    primitive_id: UUID
    tenant_id: UUID
    sort: Sort
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class Offering:
    """All that one tenant serves, and what it would serve if it could.

    Tools and prompts are ordered by name, resources by URI, templates by their text.
    """

    tools: tuple[ToolSnapshot, ...] = ()
    prompts: tuple[PromptSnapshot, ...] = ()
    resources: tuple[ResourceSnapshot, ...] = ()
    templates: tuple[TemplateSnapshot, ...] = ()
    problems: tuple[PrimitiveProblem, ...] = ()
    tools_by_name: Mapping[str, ToolSnapshot] = field(default_factory=dict, repr=False)
    prompts_by_name: Mapping[str, PromptSnapshot] = field(default_factory=dict, repr=False)
    resources_by_uri: Mapping[str, ResourceSnapshot] = field(default_factory=dict, repr=False)

    @property
    def everything(self) -> tuple[Snapshot, ...]:
        """All that is served, whatever it is."""
        return (*self.tools, *self.prompts, *self.resources, *self.templates)

    def tool(self, name: str) -> ToolSnapshot | None:
        return self.tools_by_name.get(name)

    def prompt(self, name: str) -> PromptSnapshot | None:
        return self.prompts_by_name.get(name)

    def resource(self, uri: str) -> ResourceSnapshot | None:
        return self.resources_by_uri.get(uri)

    def template(self, uri_template: str) -> TemplateSnapshot | None:
        """The template that is written so."""
        found = (one for one in self.templates if one.uri_template.text == uri_template)
        return next(found, None)

    def match(self, uri: str) -> tuple[TemplateSnapshot, Mapping[str, str]] | None:
        """The first template that a URI fits, with the values of its variables."""
        laid = LaidOut(uri)
        for template in self.templates:
            values = template.uri_template.match_laid_out(laid)
            if values is not None:
                return template, values
        return None


S = TypeVar("S", bound=Snapshot)


def offering_of(served: Iterable[Snapshot | PrimitiveProblem]) -> Offering:
    """An offering in the order of code points, alike on every database and node."""
    everything = sorted(served, key=lambda one: one.name)
    tools = _all(everything, ToolSnapshot)
    prompts = _all(everything, PromptSnapshot)
    resources = sorted(_all(everything, ResourceSnapshot), key=lambda one: one.uri)
    templates = sorted(_all(everything, TemplateSnapshot), key=lambda one: one.uri_template.text)
    return Offering(
        tools=tuple(tools),
        prompts=tuple(prompts),
        resources=tuple(resources),
        templates=tuple(templates),
        problems=tuple(one for one in everything if isinstance(one, PrimitiveProblem)),
        tools_by_name={tool.name: tool for tool in tools},
        prompts_by_name={prompt.name: prompt for prompt in prompts},
        resources_by_uri={resource.uri: resource for resource in resources},
    )


def _all(served: Iterable[Snapshot | PrimitiveProblem], of: type[S]) -> list[S]:
    return [one for one in served if isinstance(one, of)]
