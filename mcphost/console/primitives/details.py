"""The data for the page of one tool, prompt, resource or template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings

from mcphost.catalogue import kinds, outgoing, selectors, validation
from mcphost.catalogue.compiling import ARGUMENT_LIMIT_NOTICE, Ready, argument_limit
from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.catalogue.fields import OVERRIDES, PrimitiveFields, code
from mcphost.catalogue.listing import ListingTexts, describe
from mcphost.catalogue.selectors import PrimitiveRow, Snapshot, VersionRow
from mcphost.catalogue.services import working_digest
from mcphost.catalogue.states import DELETABLE, PrimitiveVerb, possible
from mcphost.console.forms.edits import Difference, differences
from mcphost.console.forms.kind_forms import TEXT
from mcphost.console.forms.previews import Piece, pieces
from mcphost.console.primitives import examples
from mcphost.console.primitives.definitions import (
    DefinitionPart,
    FieldProblem,
    definition_of,
    labelled,
)
from mcphost.kinds.kind import Compiled
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.clients import OfferedTool, client_warnings

MAX_EXAMPLE: Final = 200
"""Characters of a value that a preview is filled with."""
_LABELS = {
    "config": "Content",
    "uri": "URI",
    "mime_type": "MIME type",
    "blob": "File",
    "time_limit_seconds": "Time limit",
    "answer_within_seconds": "Answer time limit",
    "target_seconds": "Target time for answers",
}


@dataclass(frozen=True, slots=True)
class PrimitivePage:
    """One primitive, as its page shows it.

    `differences` are between what is served and the working copy.
    `problems` prevent the working copy from being published, `unserved` the published version from
    being served; `refusals` are what large clients refuse about the working copy. `listing` is what clients see, or would see after publishing. `curl` is an example
    request, and `shown` its result with the values in `example`, where that is known without
    running code; `example_uri` is the address that a template has with them. `suggestions` are those for each argument. `to_publish` says whether publishing would write a version that differs from the
    last one.
    """

    row: PrimitiveRow
    function: str
    problems: Sequence[FieldProblem]
    unserved: Sequence[str]
    served: Snapshot | None
    listing: Mapping[str, Any]
    scopes: Sequence[str]
    time_limit: float | None
    argument_limit: int | None
    answer_within: float | None
    refusals: Sequence[str]
    differences: Sequence[Difference]
    code_changed: bool
    to_publish: bool
    versions: Sequence[VersionRow]
    verbs: frozenset[PrimitiveVerb]
    deletable: bool
    curl: str = ""
    shown: Sequence[Piece] = ()
    example: Mapping[str, str] = field(default_factory=dict)
    example_uri: str = ""
    suggestions: examples.Choices = field(default_factory=dict)
    definition: Sequence[DefinitionPart] = ()

    @property
    def live_number(self) -> int:
        """The number of the version that was served last; 0 if none was."""
        return next((version.number for version in self.versions if version.live), 0)

    @property
    def icons(self) -> list[str]:
        """Those that our pages can show: the policy lets browsers load nothing from elsewhere."""
        sources = [str(icon.get("src", "")) for icon in self.row.fields.icons]
        return [source for source in sources if source.startswith("data:image/")]


def view_of(
    row: PrimitiveRow, url: str, selected_values: Mapping[str, str] | None = None
) -> PrimitivePage:
    """Return the data for one primitive's page; `url` is the tenant's MCP URL, and `selected_values` are values
    of arguments or variables to preview it with."""
    offering = selectors.offering(row.tenant_id)
    served = next((offered for offered in offering.everything if offered.id == row.id), None)
    ready, problems = _ready(row)
    compiled = None if ready is None else ready.compiled
    versions = selectors.versions(row.id)
    live = next((version for version in versions if version.live), None)
    listing = served.listing if served is not None else _listing(row, compiled)
    time_limit, answer_within = _time_limits(row, served, compiled)
    return PrimitivePage(
        row=row,
        function=kinds.function_of(row.fields.kind, row.fields.config),
        definition=definition_of(row.primitive_type, row.fields.kind, row.fields.config),
        problems=problems,
        unserved=[
            problem.message for problem in offering.problems if problem.primitive_id == row.id
        ],
        served=served,
        listing=listing,
        scopes=sorted(served.scopes) if served is not None else row.fields.scopes,
        time_limit=time_limit,
        argument_limit=_argument_limit(served, ready),
        refusals=_refusals(row, ready),
        answer_within=answer_within,
        differences=_differences(row, live),
        code_changed=live is not None and compiled is not None and live.code != code(compiled),
        to_publish=live is None
        or ready is None
        or working_digest(ready, row.fields) != live.digest,
        versions=versions,
        verbs=possible(row.state),
        deletable=row.state in DELETABLE,
        **_example(row, live, compiled, url, listing, selected_values or {}),
    )


def notices_of(row: PrimitiveRow) -> list[str]:
    """Return what to know of the working copy when it is saved or published, in sentences."""
    ready, _ = _ready(row)
    limit = _argument_limit(None, ready)
    limits = [] if limit is None else [ARGUMENT_LIMIT_NOTICE.format(limit)]
    return [*limits, *_refusals(row, ready)]


def _refusals(row: PrimitiveRow, ready: Ready | None) -> list[str]:
    if ready is None or row.primitive_type is not PrimitiveType.TOOL:
        return []
    return client_warnings(OfferedTool(row.name, ready.compiled.input_schema))


def _example(
    row: PrimitiveRow,
    live: VersionRow | None,
    compiled: Compiled | None,
    url: str,
    listing: Mapping[str, Any],
    selected_values: Mapping[str, str],
) -> dict[str, Any]:
    """Return an example request, and its result where that is known without running code.

    It is known of what was written in the console: as it is served, or else as a valid working copy.
    """
    primitive_type, config = row.primitive_type, row.fields.config
    if row.fields.kind != TEXT:
        config = {}
    elif live is not None:
        config = live.snapshot["config"]
    elif compiled is None:
        config = {}
    choices = examples.choices(config)
    values = examples.values(primitive_type, listing, choices, of_all=bool(config))
    values |= {
        name: selected_values[name][:MAX_EXAMPLE] for name in values if selected_values.get(name)
    }
    template = str(listing.get("uriTemplate", ""))
    return {
        "curl": examples.curl(primitive_type, url, listing, values),
        "shown": pieces(primitive_type, config, values) if config else (),
        "example": values if config else {},
        "example_uri": examples.expanded(template, values) if template else "",
        "suggestions": {name: values for name, values in choices.items() if values},
    }


def _ready(row: PrimitiveRow) -> tuple[Ready | None, list[FieldProblem]]:
    try:
        ready = validation.check(row.tenant_id, row.fields, row.id)
    except InvalidPrimitiveError as refusal:
        return None, labelled(row.tenant_id, row.fields, refusal.problems)
    outgoing_problems = outgoing.problems(row.tenant_id, row.fields.kind, row.fields.config)
    return ready, labelled(row.tenant_id, row.fields, outgoing_problems)


def _label(name: str) -> str:
    return _LABELS.get(name, name.replace("_", " ").capitalize())


def _listing(row: PrimitiveRow, compiled: Compiled | None) -> Mapping[str, Any]:
    """Return the listing that an unserved primitive would have; empty if it does not compile."""
    if compiled is None:
        return {}
    fields = row.fields
    texts = ListingTexts(fields.name, compiled.uri, fields.title, fields.description, fields.icons)
    return describe(compiled, texts)


def _time_limits(
    row: PrimitiveRow, served: Snapshot | None, compiled: Compiled | None
) -> tuple[float | None, float | None]:
    """Return the limits in seconds for one round, and for an answer; None means the platform's."""
    if served is not None:
        for_round, for_answer = served.time_limit, served.answer_within
    else:
        authors = (compiled.time_limit, compiled.answer_within) if compiled else (None, None)
        for_round = row.fields.time_limit_seconds or authors[0]
        for_answer = row.fields.answer_within_seconds or authors[1]
    return for_round, for_answer and min(for_answer, settings.MCPHOST_MAX_ANSWER_SECONDS)


def _argument_limit(served: Snapshot | None, ready: Ready | None) -> int | None:
    """Return the limit in bytes if the schema is expensive to check; None means the platform's."""
    if served is not None:
        return argument_limit(served.input_validator)
    return None if ready is None else argument_limit(ready.shape.input_validator)


def differing_fields(stored: PrimitiveFields, submitted: PrimitiveFields) -> list[Difference]:
    """Return how a working copy differs from the one that a form would store."""
    named = ("name", *OVERRIDES)
    return [
        *differences(
            {name: getattr(stored, name) for name in named},
            {name: getattr(submitted, name) for name in named},
            _label,
        ),
        *differences(stored.config, submitted.config, _label),
    ]


def _differences(row: PrimitiveRow, live: VersionRow | None) -> list[Difference]:
    if live is None:
        return []
    return [
        *differences(live.snapshot["config"], row.fields.config, _label),
        *differences(
            {name: live.snapshot.get(name) for name in OVERRIDES},
            {name: getattr(row.fields, name) for name in OVERRIDES},
            _label,
        ),
    ]
