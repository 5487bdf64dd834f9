"""What the page of one tool shows, put together from what the catalogue knows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcphost.catalogue import kinds, selectors, validation
from mcphost.catalogue.errors import Invalid
from mcphost.catalogue.fields import OVERRIDES
from mcphost.catalogue.selectors import PrimitiveRow, ToolSnapshot, VersionRow
from mcphost.catalogue.states import State, Verb, following
from mcphost.console import clients, examples
from mcphost.kinds.kind import Compiled

_LABELS = {
    "config": "Function",
    "title": "Title",
    "description": "Description",
    "scopes": "Scopes",
    "time_limit_seconds": "Time limit",
    "icons": "Icons",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of which something else is served than the working copy says."""

    label: str
    served: Any
    working: Any


@dataclass(frozen=True, slots=True)
class ToolView:
    """One tool, as its page shows it.

    `problems` keep the working copy from being published, `unserved` what is published from being
    served. `listing` is what clients see, or would see after publishing.
    """

    row: PrimitiveRow
    function: str
    problems: Sequence[str]
    unserved: Sequence[str]
    served: ToolSnapshot | None
    listing: Mapping[str, Any]
    scopes: Sequence[str]
    time_limit: float | None
    differences: Sequence[Difference]
    code_changed: bool
    versions: Sequence[VersionRow]
    verbs: frozenset[str]

    @property
    def to_publish(self) -> bool:
        """Whether publishing would change what clients see."""
        return not self.versions or bool(self.differences) or self.code_changed

    def curl(self, url: str) -> str:
        """An example call."""
        schema = self.listing.get("inputSchema", {})
        return clients.curl(url, self.row.name, examples.arguments(schema))


def view_of(row: PrimitiveRow) -> ToolView:
    """Everything about one tool."""
    offering = selectors.offering(row.tenant_id)
    served = offering.tool(row.name)
    compiled, problems = _compiled(row)
    versions = selectors.versions(row.id)
    live = next((version for version in versions if version.live), None)
    return ToolView(
        row=row,
        function=kinds.function_of(row.fields.kind, row.fields.config),
        problems=problems,
        unserved=[each.message for each in offering.problems if each.primitive_id == row.id],
        served=served,
        listing=served.listing if served is not None else _listing(row, compiled),
        scopes=sorted(served.scopes) if served is not None else row.fields.scopes,
        time_limit=_time_limit(row, served, compiled),
        differences=_differences(row, live),
        code_changed=_code_changed(live, compiled),
        versions=versions,
        verbs=frozenset(verb.value for verb in Verb if following(State(row.state), verb)),
    )


def _compiled(row: PrimitiveRow) -> tuple[Compiled | None, list[str]]:
    try:
        return validation.check(row.tenant_id, row.fields, row.id).compiled, []
    except Invalid as refusal:
        return None, [
            f"{_LABELS.get(name.partition('.')[0], name.capitalize())}: {sentence}"
            for name, sentences in refusal.problems.items()
            for sentence in sentences
        ]


def _listing(row: PrimitiveRow, compiled: Compiled | None) -> dict[str, Any]:
    """What would be served of a tool that is not, as far as it can be told."""
    if compiled is None:
        return {}
    listing = {
        "title": row.fields.title or compiled.title,
        "description": row.fields.description or compiled.description,
        "inputSchema": compiled.input_schema,
        "outputSchema": compiled.output_schema,
        "annotations": compiled.annotations,
    }
    return {name: value for name, value in listing.items() if value}


def _time_limit(
    row: PrimitiveRow, served: ToolSnapshot | None, compiled: Compiled | None
) -> float | None:
    """In seconds for one round; None for the platform's."""
    if served is not None:
        return served.time_limit
    authors = compiled.time_limit if compiled is not None else None
    return row.fields.time_limit_seconds or authors


def _differences(row: PrimitiveRow, live: VersionRow | None) -> list[Difference]:
    if live is None:
        return []
    return [
        Difference(_LABELS[name], _shown(live.snapshot[name]), _shown(getattr(row.fields, name)))
        for name in ("config", *OVERRIDES)
        if live.snapshot[name] != getattr(row.fields, name)
    ]


def _shown(value: Any) -> Any:
    """A field's value in a word or two: of a Python tool's configuration, its function."""
    return value["function"] if isinstance(value, Mapping) and set(value) == {"function"} else value


def _code_changed(live: VersionRow | None, compiled: Compiled | None) -> bool:
    """Whether the schemas are others than when the tool was last published."""
    if live is None or compiled is None:
        return False
    then = live.code
    return (then["input_schema"], then["output_schema"]) != (
        compiled.input_schema,
        compiled.output_schema,
    )
