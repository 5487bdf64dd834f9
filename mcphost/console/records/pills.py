"""The filters above a list of records, each a chip: set ones can be removed, others added."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from mcphost.console.records.filters import (
    AREAS,
    PERIOD_NAMES,
    QUESTIONS,
    STATES,
    RecordFilter,
)
from mcphost.console.templatetags.questions import outcome

_TEXTS: Mapping[str, tuple[str, str]] = {
    "tenant": ("Tenant", "slug"),
    "tool": ("Target", "name or URI"),
    "principal": ("Caller", "name or token id"),
    "client": ("Client", "name"),
    "call": ("Call", "start of the id"),
    "trace": ("Trace", "id"),
    "words": ("Error text", "words"),
}
_CHOICES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "outcome": ("Outcome", {each: outcome(each) for each in STATES}),
    "questions": ("Input requests", QUESTIONS),
    "area": ("Area", {name: said for name, (said, _) in AREAS.items()}),
    "period": ("Period", PERIOD_NAMES),
}
OF_CALLS = (
    "period", "dates", "outcome", "tool", "principal", "client", "questions", "words", "call",
)  # fmt: skip
FINDING_SECONDS = 0.05
OF_REFUSALS = ("period", "dates", "tool", "principal", "client")
OF_CHANGES = ("period", "dates", "area", "tool", "principal")
"""The filters of each list, in their order."""
WHO: Mapping[str, str] = {"principal": "Who"}
"""The labels of the filters of changes, as the columns of the list are called."""


@dataclass(frozen=True, slots=True)
class Pill:
    """One filter: `said` are the words for its value, empty if it is not set.

    `without` is the query string of the list without it, `others` are the fields of the other
    filters, which a form that sets this one has to keep.
    """

    name: str
    label: str
    said: str
    without: str
    others: Sequence[tuple[str, str]]
    value: str = ""
    hint: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)


def pills(
    asked: RecordFilter,
    *,
    of_all_tenants: bool,
    names: Sequence[str] = OF_CALLS,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Pill, ...]:
    """Return the filters of a list, those that are set and those that are not.

    `labels` are those of filters that the list calls otherwise, by name.
    """
    order = ("tenant", *names) if of_all_tenants else names
    rare = ("trace",) if asked.trace else ()  # set by links only
    found = (_pill(asked, name) for name in (*order, *rare))
    return tuple(replace(each, label=labels.get(each.name, each.label)) for each in found)


def removals(
    asked: RecordFilter, finds: Callable[[RecordFilter, float], bool], *, of_all_tenants: bool
) -> Iterator[Pill]:
    """Yield the set filters without which the list would not be empty, as `finds` says.

    Begins no further search after FINDING_SECONDS; `finds` is given the time when they are over.
    """
    until = time.monotonic() + FINDING_SECONDS
    active = [each for each in pills(asked, of_all_tenants=of_all_tenants) if each.said]
    for each in active if len(active) > 1 else ():
        if time.monotonic() > until:
            return
        if finds(asked.without(*_names(each.name)), until):
            yield each


def _pill(asked: RecordFilter, name: str) -> Pill:
    rest = asked.without(*_names(name))
    kept = tuple(rest.chosen.items())
    if name == "dates":
        return Pill(name, "Dates", _dates(asked), rest.query, kept)
    value = getattr(asked, name)
    if name in _TEXTS:
        label, hint = _TEXTS[name]
        return Pill(name, label, value, rest.query, kept, value, hint)
    label, choices = _CHOICES[name]
    return Pill(name, label, choices.get(value, value), rest.query, kept, value, "", choices)


def _names(name: str) -> tuple[str, ...]:
    return ("since", "until") if name == "dates" else (name,)


def _dates(asked: RecordFilter) -> str:
    ends = [
        f"{word} {text.replace('T', ' ')}"
        for word, text in (("from", asked.since), ("to", asked.until))
        if text
    ]
    return f"{' '.join(ends)} ({asked.zone or 'UTC'})" if ends else ""
