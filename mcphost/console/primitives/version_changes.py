"""What a version or another change of a definition changes: line by line, against the one before it."""

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mcphost.catalogue.selectors import VersionRow

MAX_LINES = 2000
"""Texts with more lines are not compared line by line, because that could take seconds."""
MAX_REPEATED = 4
"""A line that a text has more often does not begin a match, only goes on with one: comparing texts in which
every line is repeated would take the cube of their lines."""
CONTEXT = 3

_NAMES = {
    "config": "Definition",
    "time_limit_seconds": "Time limit (seconds)",
    "answer_within_seconds": "Answer time limit (seconds)",
    "input_schema": "Input schema",
    "output_schema": "Output schema",
    "author_version": "Version in the code",
    "target_seconds": "Target time for answers (seconds)",
}
_FROM_CODE = "{} (in the code)"
_OF_BOTH = frozenset({"title", "description"})
"""Fields that the operator and the code both have."""

LineType = Literal["old", "new", "same", "gap"]


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A line of a comparison. `type`: only before, only after, in both, or lines left out."""

    type: LineType
    text: str

    @property
    def sign(self) -> str:
        return {"old": "-", "new": "+", "same": " ", "gap": "…"}[self.type]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that a version changed. `note` says that it has a value on one side only."""

    label: str
    lines: Sequence[ChangedLine]
    note: str = ""


def changes(before: VersionRow | None, after: VersionRow) -> list[FieldChange]:
    """Return what differs in `after`; all that is set in it if there is none before."""
    new = dict(_values(after))
    if before is None:
        return differing({}, new)
    old = dict(_values(before))
    return [
        replace(change, note="" if new.get(change.label) else "no longer set")
        if old.get(change.label)
        else replace(change, note="not set before")
        for change in differing(old, new)
    ]


def differing(old: Mapping[str, str], new: Mapping[str, str]) -> list[FieldChange]:
    """Compare texts by their labels."""
    return [
        FieldChange(label, compare(old.get(label, ""), new.get(label, "")))
        for label in {**old, **new}
        if old.get(label, "") != new.get(label, "")
    ]


def compare(before: str, after: str) -> list[ChangedLine]:
    """Compare two texts line by line, with CONTEXT unchanged lines around each change."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > MAX_LINES:
        return [
            ChangedLine("old", f"{len(old)} lines"),
            ChangedLine("new", f"{len(new)} lines: too many to compare"),
        ]
    lines: list[ChangedLine] = []
    counts = Counter(new)
    matcher = difflib.SequenceMatcher(
        lambda line: counts[line] > MAX_REPEATED, old, new, autojunk=False
    )
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if group[0][1] > 0 or group[0][3] > 0:
            lines.append(ChangedLine("gap", ""))
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                lines += [ChangedLine("same", line) for line in old[old_from:old_to]]
                continue
            lines += [ChangedLine("old", line) for line in old[old_from:old_to]]
            lines += [ChangedLine("new", line) for line in new[new_from:new_to]]
    return lines


def _values(version: VersionRow) -> Iterator[tuple[str, str]]:
    """Yield the texts to compare by their labels: the operator's fields, then the code's."""
    yield from definition_texts(version.snapshot)
    for name, value in version.code.items():
        label = _label(name)
        yield (_FROM_CODE.format(label) if name in _OF_BOTH else label), as_text(value)


def definition_texts(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of an operator's fields by their labels; those of the configuration separately."""
    for name, value in fields.items():
        if name == "config" and isinstance(value, Mapping):
            yield from ((_label(key), as_text(field_value)) for key, field_value in value.items())
        else:
            yield _label(name), as_text(value)


def _label(name: str) -> str:
    return _NAMES.get(name, name.replace("_", " ").capitalize())


def as_text(value: Any) -> str:
    """Return a value as lines that can be compared; empty for one that is not set."""
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
