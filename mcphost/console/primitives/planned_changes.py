"""What a file would change in a tenant, as its page shows it: each difference line by line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.urls import reverse

from mcphost.catalogue.batches import PreparedChange, served_fields
from mcphost.catalogue.fields import PrimitiveFields, changed, snapshot, working_copy
from mcphost.catalogue.models import Primitive
from mcphost.console.primitive_words import WORDS
from mcphost.console.primitives.version_changes import (
    FieldChange,
    as_text,
    definition_texts,
    differing,
)
from mcphost.console.tenants.tenants import TenantForm
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenant_file.errors import FileProblem, InvalidFileError
from mcphost.tenant_file.plans import Plan, PlannedChange
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.selectors import snapshot as tenant_snapshot

MAX_COMPARED: Final = 5000
"""Lines that one page compares and shows. Changes beyond them are listed without their lines."""
MAX_PROBLEMS: Final = 100
_MAX_LINE: Final = 160

_TONES: Final = {"added": "info", "archived": "bad", "changed": "warn"}
_GRANTED: Final = "The tenant may use it."
_ORDER: Final = "Only the order of its members differs."
_DRAFT: Final = "The draft that is not published"
_ICON: Final = "Icon"


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A difference between the file and the tenant.

    `link` leads to what is there now, "" if there is nothing. `compared` is False where the page has too
    many lines already. `note` says what lines do not show.
    """

    planned: PlannedChange
    label: str
    link: str
    fields: Sequence[FieldChange]
    compared: bool
    note: str = ""

    @property
    def effect(self) -> str:
        """What happens to it."""
        verbs = self.planned.verbs
        if "created" in verbs or "granted" in verbs:
            return "added"
        return "archived" if "archived" in verbs else "changed"

    @property
    def tone(self) -> str:
        return _TONES[self.effect]


@dataclass(frozen=True, slots=True)
class ShownProblem:
    """A problem of the file, with the text of its line."""

    problem: FileProblem
    text: str


@dataclass(frozen=True, slots=True)
class ShownProblems:
    """The problems of a file in its order. `more` are not shown."""

    problems: Sequence[ShownProblem]
    more: int


def shown_problems(refusal: InvalidFileError, data: bytes) -> ShownProblems:
    """Return the first problems of a file."""
    lines = data.decode("utf-8", "replace").splitlines()
    problems = [
        ShownProblem(problem, _line(lines, problem.line))
        for problem in refusal.problems[:MAX_PROBLEMS]
    ]
    return ShownProblems(problems, len(refusal.problems) - len(problems))


def _line(lines: Sequence[str], number: int) -> str:
    text = lines[number - 1].strip() if number <= len(lines) else ""
    return text if len(text) <= _MAX_LINE else f"{text[:_MAX_LINE]}…"


def shown_changes(plan: Plan) -> Sequence[ShownChange]:
    """Return the changes of a plan in its order, with their lines as far as a page can hold them."""
    return list(_ChangesReader(plan).changes())


class _ChangesReader:
    """Compares what is there with what would be, until MAX_COMPARED lines were compared."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._lines = plan, 0
        self._rows = {row.id: row for row in plan.basis.rows.values()}

    def changes(self) -> Iterator[ShownChange]:
        primitives = iter(self._plan.primitives)
        for planned in self._plan.changes:
            if planned.section == "tenant":
                yield self._settings(planned)
            elif planned.section == "functions":
                yield ShownChange(planned, "Python function", "", (), True, _GRANTED)
            else:
                yield self._primitive(planned, next(primitives))

    def _settings(self, planned: PlannedChange) -> ShownChange:
        before, after = tenant_snapshot(self._plan.basis.tenant).fields, self._plan.settings
        fields = self._compared(_setting_texts(before), _setting_texts(after))
        link = reverse("admin:settings", args=[self._plan.basis.tenant.slug])
        return ShownChange(
            planned, "Settings of the tenant", link, fields or (), fields is not None
        )

    def _primitive(self, planned: PlannedChange, change: PreparedChange) -> ShownChange:
        row = change.row
        old = self._rows.get(row.id)
        words = WORDS[PrimitiveType(row.primitive_type)]
        link = "" if old is None else reverse(words.detail, args=[row.tenant.slug, row.id])
        before, after = _primitive_texts(old, row, change.version is not None)
        fields = self._compared(before, after)
        is_edit = bool({"created", "updated"} & set(planned.verbs))
        note = _ORDER if is_edit and fields is not None and not fields else ""
        label = words.singular.capitalize()
        return ShownChange(planned, label, link, fields or (), fields is not None, note)

    def _compared(
        self, before: Mapping[str, str], after: Mapping[str, str]
    ) -> Sequence[FieldChange] | None:
        """Return the texts that differ; None if these lines are too many for what remains."""
        pairs = [(before.get(label, ""), after.get(label, "")) for label in {**before, **after}]
        # Counted before they are compared, which takes the time.
        lines = sum(old.count("\n") + new.count("\n") + 2 for old, new in pairs if old != new)
        if self._lines + lines > MAX_COMPARED:
            return None
        self._lines += lines
        return differing(before, after)


def _setting_texts(fields: TenantFields) -> dict[str, str]:
    labels = {name: str(field.label) for name, field in TenantForm.base_fields.items()}
    texts = {}
    for name in TenantFields.__dataclass_fields__:
        value: Any = getattr(fields, name)
        label = labels.get(name, _ICON)
        texts[label] = "\n".join(value) if isinstance(value, tuple) else as_text(value)
    return texts


def _primitive_texts(
    old: Primitive | None, new: Primitive, publishes: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of a primitive before and after: of what clients get if that is published, else of
    the working copy; and of the working copy beside it, if it is another one afterwards."""
    if not publishes:
        return ({} if old is None else _texts(working_copy(old))), _texts(working_copy(new))
    served, working = served_fields(new), working_copy(new)
    before = {} if old is None else _texts(served_fields(old))
    after = _texts(served)
    if changed(served, working):
        after[_DRAFT] = as_text(_members(working))
        before[_DRAFT] = after[_DRAFT] if old and not changed(working_copy(old), working) else ""
    return before, after


def _texts(fields: PrimitiveFields) -> dict[str, str]:
    return dict(definition_texts(_members(fields)))


def _members(fields: PrimitiveFields) -> dict[str, Any]:
    return {**snapshot(fields), "target_seconds": fields.target_seconds}
