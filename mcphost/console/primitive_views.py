"""What the page of one tool, prompt, resource or template shows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcphost.catalogue import kinds, selectors, validation
from mcphost.catalogue.errors import Invalid
from mcphost.catalogue.fields import OVERRIDES
from mcphost.catalogue.listing import Face, describe
from mcphost.catalogue.selectors import PrimitiveRow, Snapshot, VersionRow
from mcphost.catalogue.states import State, Verb, following
from mcphost.console import asking
from mcphost.console.previews import Piece, pieces
from mcphost.console.primitive_forms import TEXT
from mcphost.kinds.kind import Compiled
from mcphost.kinds.sorts import Sort

Triple = tuple[str, Any, Any]
"""The name of a field, what is served, what the working copy says."""

_LABELS = {
    "config": "Content",
    "uri": "URI",
    "mime_type": "MIME type",
    "blob": "File",
    "time_limit_seconds": "Time limit",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of which something else is served than the working copy says."""

    label: str
    served: Snapshot | None
    working: Any


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing that a tenant offers, as its page shows it.

    `problems` keep the working copy from being published, `unserved` what is published from being
    served. `listing` is what clients see, or would see after publishing; `curl` a request, `shown` what
    it would give with the values in `example`, where that can be told without running anything.
    """

    row: PrimitiveRow
    function: str
    problems: Sequence[str]
    unserved: Sequence[str]
    served: Snapshot | None
    listing: Mapping[str, Any]
    scopes: Sequence[str]
    time_limit: float | None
    differences: Sequence[Difference]
    code_changed: bool
    versions: Sequence[VersionRow]
    verbs: frozenset[str]
    curl: str = ""
    shown: Sequence[Piece] = ()
    example: Mapping[str, str] = field(default_factory=dict)

    @property
    def icons(self) -> list[str]:
        """Those that can be shown on our pages: browsers are told to load nothing from elsewhere."""
        sources = [str(icon.get("src", "")) for icon in self.row.fields.icons]
        return [source for source in sources if source.startswith("data:image/")]

    @property
    def to_publish(self) -> bool:
        """Whether publishing would change what clients see."""
        return not self.versions or bool(self.differences) or self.code_changed


def view_of(row: PrimitiveRow, url: str) -> Offer:
    """Everything about one of them; `url` is where its tenant's clients connect."""
    offering = selectors.offering(row.tenant_id)
    served = next((each for each in offering.everything if each.id == row.id), None)
    compiled, problems = _compiled(row)
    versions = selectors.versions(row.id)
    live = next((version for version in versions if version.live), None)
    listing = served.listing if served is not None else _listing(row, compiled)
    return Offer(
        row=row,
        function=kinds.function_of(row.fields.kind, row.fields.config),
        problems=problems,
        unserved=[each.message for each in offering.problems if each.primitive_id == row.id],
        served=served,
        listing=listing,
        scopes=sorted(served.scopes) if served is not None else row.fields.scopes,
        time_limit=_time_limit(row, served, compiled),
        differences=_differences(row, live),
        code_changed=_code_changed(live, compiled),
        versions=versions,
        verbs=frozenset(verb.value for verb in Verb if following(State(row.state), verb)),
        **_asked(row.sort, url, listing, _written(row, live, compiled)),
    )


def _written(
    row: PrimitiveRow, live: VersionRow | None, compiled: Compiled | None
) -> Mapping[str, Any]:
    """The configuration of what is written in the console: the served one, else the working copy,
    if it is any good; nothing for what a function makes."""
    if row.fields.kind != TEXT:
        return {}
    if live is not None:
        config: Mapping[str, Any] = live.snapshot["config"]
        return config
    return row.fields.config if compiled is not None else {}


def _asked(
    sort: Sort, url: str, listing: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, Any]:
    """An example request, and what it would give where that can be told."""
    choices = asking.choices(config)
    values = asking.values(sort, listing, choices, of_all=bool(config))
    return {
        "curl": asking.curl(sort, url, listing, values),
        "shown": pieces(sort, config, values) if config else (),
        "example": values if config else {},
    }


def _compiled(row: PrimitiveRow) -> tuple[Compiled | None, list[str]]:
    try:
        return validation.check(row.tenant_id, row.fields, row.id).compiled, []
    except Invalid as refusal:
        return None, [
            f"{_label(name.removeprefix('config.').partition('.')[0])}: {sentence}"
            for name, sentences in refusal.problems.items()
            for sentence in sentences
        ]


def _label(name: str) -> str:
    return _LABELS.get(name, name.replace("_", " ").capitalize())


def _listing(row: PrimitiveRow, compiled: Compiled | None) -> Mapping[str, Any]:
    """What would be served of what is not, as far as it can be told."""
    if compiled is None:
        return {}
    fields = row.fields
    face = Face(fields.name, compiled.uri, fields.title, fields.description, fields.icons)
    return describe(compiled, face)


def _time_limit(
    row: PrimitiveRow, served: Snapshot | None, compiled: Compiled | None
) -> float | None:
    """In seconds for one round; None for the platform's."""
    if served is not None:
        return served.time_limit
    authors = compiled.time_limit if compiled is not None else None
    return row.fields.time_limit_seconds or authors


def _differences(row: PrimitiveRow, live: VersionRow | None) -> list[Difference]:
    if live is None:
        return []
    pairs = [
        *_differing(live.snapshot["config"], row.fields.config),
        *_differing(
            {name: live.snapshot[name] for name in OVERRIDES},
            {name: getattr(row.fields, name) for name in OVERRIDES},
        ),
    ]
    return [Difference(_label(name), served, working) for name, served, working in pairs]


def _differing(served: Mapping[str, Any], working: Mapping[str, Any]) -> Iterator[Triple]:
    """The fields that the working copy has otherwise, with both values."""
    for name in {**served, **working}:
        if served.get(name) != working.get(name):
            yield name, served.get(name), working.get(name)


def _code_changed(live: VersionRow | None, compiled: Compiled | None) -> bool:
    """Whether the schemas are others than when it was last published."""
    if live is None or compiled is None:
        return False
    then = live.code
    return (then["input_schema"], then["output_schema"]) != (
        compiled.input_schema,
        compiled.output_schema,
    )
