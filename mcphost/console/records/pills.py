"""The filters above a list of records, each a chip: set ones can be removed, others added."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from mcphost.console.records.filters import (
    AREAS,
    COUNTED,
    MADE_BY,
    OUTCOMES,
    PERIOD_NAMES,
    QUESTIONS,
    RecordFilter,
)
from mcphost.console.records.stages import QUESTION_STATES

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
    "outcome": ("Outcome", OUTCOMES),
    "questions": ("Questions", QUESTIONS),
    "state": ("State", QUESTION_STATES),
    "counted": ("Counted in", COUNTED),
    "made_by": ("Made by", MADE_BY),
    "area": ("Area", {name: label for name, (label, _) in AREAS.items()}),
    "period": ("Period", PERIOD_NAMES),
}
OF_CALLS = (
    "period", "outcome", "tool", "principal", "client", "questions", "made_by", "words", "call",
)  # fmt: skip
OF_QUESTIONS = ("period", "state", "tool", "principal", "client")
BY_LINKS = ("trace", "counted")
"""Filters that only links set. *Counted* is the period of a figure: what it counts is found, and nothing else."""
FINDING_SECONDS = 0.05
OF_REFUSALS = ("period", "tool", "principal", "client")
OF_CHANGES = ("period", "area", "tool", "principal")
"""The filters of each list, in their order."""
PRINCIPAL_LABELS: Mapping[str, str] = {"principal": "Who"}
"""The labels of the filters of changes, as the columns of the list are called."""
QUESTION_LABELS: Mapping[str, str] = {"tool": "Tool", "principal": "Asked of"}
"""The same for questions."""


@dataclass(frozen=True, slots=True)
class Pill:
    """One filter: `shown_value` is its value in words, empty if it is not set.

    `without` is the query string of the list without it, `other_filters` are the fields of the other
    filters, which a form that sets this one has to keep.
    """

    name: str
    label: str
    shown_value: str
    without: str
    other_filters: Sequence[tuple[str, str]]
    value: str = ""
    hint: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)


def pills(
    record_filter: RecordFilter,
    *,
    of_all_tenants: bool,
    names: Sequence[str] = OF_CALLS,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Pill, ...]:
    """Return the filters of a list, those that are set and those that are not.

    `labels` are those of filters that the list calls otherwise, by name.
    """
    order = ("tenant", *names) if of_all_tenants else names
    rare = [name for name in BY_LINKS if getattr(record_filter, name)]
    all_pills = (_pill(record_filter, name) for name in (*order, *rare))
    return tuple(replace(pill, label=labels.get(pill.name, pill.label)) for pill in all_pills)


def removals(
    record_filter: RecordFilter,
    finds: Callable[[RecordFilter, float], bool],
    *,
    of_all_tenants: bool,
    names: Sequence[str] = OF_CALLS,
) -> Iterator[Pill]:
    """Yield the set filters without which the list would not be empty, as `finds` says.

    Begins no further search after FINDING_SECONDS; `finds` is given the time when they are over.
    """
    until = time.monotonic() + FINDING_SECONDS
    chips = pills(record_filter, of_all_tenants=of_all_tenants, names=names)
    active = [pill for pill in chips if pill.shown_value]
    for pill in active if len(active) > 1 else ():
        if time.monotonic() > until:
            return
        if finds(record_filter.without(*_names(pill.name)), until):
            yield pill


def _pill(record_filter: RecordFilter, name: str) -> Pill:
    rest = record_filter.without(*_names(name))
    kept = tuple(rest.active_filters.items())
    value = getattr(record_filter, name)
    if name in _TEXTS:
        label, hint = _TEXTS[name]
        return Pill(name, label, value, rest.query, kept, value, hint)
    label, choices = _CHOICES[name]
    shown_value = choices.get(value, value)
    if name == "period":
        shown_value = ", ".join(filter(None, (shown_value, _dates(record_filter))))
    return Pill(name, label, shown_value, rest.query, kept, value, "", choices)


def _names(name: str) -> tuple[str, ...]:
    return (name, "since", "until") if name == "period" else (name,)


def _dates(record_filter: RecordFilter) -> str:
    ends = [
        f"{side} {text.replace('T', ' ')}"
        for side, text in (("from", record_filter.since), ("to", record_filter.until))
        if text
    ]
    return f"{' '.join(ends)} ({record_filter.zone or 'UTC'})" if ends else ""
