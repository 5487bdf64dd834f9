"""Repeated rows in a form: arguments, messages, icons.

A row is a small form of its own. The order of the rows is that of the page, whatever their numbers,
so a script can move rows without renumbering them. Without scripts, a few spare rows are shown, and
the user removes a row with its switch.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from django.forms import BoundField
from django.utils.functional import cached_property

from mcphost.console.forms import forms

SPARE = 2
MAX_ROWS = 256
"""The most rows that may be sent; more are refused with a message."""

Row = TypeVar("Row", bound="RowForm")


class RowForm(forms.ConsoleForm):
    """One row. It is blank, and left out, if none of the fields in `CONTENT_FIELDS` has a value."""

    CONTENT_FIELDS: ClassVar[Sequence[str]] = ()
    FIELD_BY_KEY: ClassVar[Mapping[str, str]] = {}
    """The fields beside which problems are shown, by the names of the wire format."""

    remove = forms.switch("Leave out")
    is_spare = False

    def is_blank(self) -> bool:
        """Return whether the row has no content, or is marked for removal."""
        values = (self[name].data for name in self.CONTENT_FIELDS)
        return bool(self["remove"].data) or not any(
            value.strip() if isinstance(value, str) else value for value in values
        )

    def field_name_at(self, path: Sequence[str]) -> str | None:
        """Return the name of the field beside which a problem at this path is shown."""
        parts = (self.FIELD_BY_KEY.get(part, part) for part in reversed(path))
        return next((part for part in parts if part in self.fields), None)


class Rows(Generic[Row]):
    """All rows of one kind in a form.

    `sent` is what the browser sent (fields and files), or None twice. `starting` has the initial
    values of the existing rows. `options` are passed to every row. `errors` are sentences about the
    rows as a whole.
    """

    def __init__(
        self,
        row: type[Row],
        prefix: str,
        sent: tuple[Any, Any],
        starting: Sequence[Mapping[str, Any]],
        **options: Any,
    ) -> None:
        self._row, self._prefix, self._options = row, prefix, options
        self._data, self._files = sent
        self._starting = starting
        self.errors: list[str] = []

    @cached_property
    def filled(self) -> list[Row]:
        """The rows with content, in order."""
        if self._data is None:
            return [self._make(n, initial=values) for n, values in enumerate(self._starting)]
        rows = (self._make(n, data=self._data, files=self._files) for n in self._sent_numbers())
        return [row for row in rows if not row.is_blank()]

    @cached_property
    def shown(self) -> list[Row]:
        """The filled rows, and some spare ones."""
        first = max([len(self._starting), *(number + 1 for number in self._sent_numbers())])
        spare = [self._make(first + number) for number in range(SPARE)]
        for row in spare:
            row.is_spare = True
        return [*self.filled, *spare]

    @cached_property
    def empty(self) -> Row:
        """The row that a script copies for a new one, with `__n__` in place of its number."""
        return self._make("__n__")

    def is_valid(self) -> bool:
        """Return whether every row is valid, and there are no errors about the rows as a whole."""
        if len(self._sent_numbers()) > MAX_ROWS:
            self.errors.append(f"At most {MAX_ROWS} are allowed.")
        wrong = [row for row in self.filled if not row.is_valid()]
        return not wrong and not self.errors

    @property
    def wrong(self) -> bool:
        """Whether there is an error in a row or above the rows."""
        return bool(self.errors) or any(row.errors for row in self.filled if row.is_bound)

    def show_problems_at(self, path: Sequence[str], problems: Sequence[str]) -> None:
        """Show problems at `<number of a filled row>.<field>…`, or above the rows."""
        row = self._row_at(path)
        if row is not None:
            row.show_problems({row.field_name_at(path[1:]): problems})
        else:
            self.errors.extend(problems)

    def field_at(self, path: Sequence[str]) -> BoundField | None:
        """Return the field of `<number of a filled row>.<field>…`, if there is one."""
        row = self._row_at(path)
        name = None if row is None else row.field_name_at(path[1:])
        return None if row is None or name is None else row[name]

    def _row_at(self, path: Sequence[str]) -> Row | None:
        number = int(path[0]) if path and path[0].isdecimal() else -1
        return self.filled[number] if 0 <= number < len(self.filled) else None

    def __iter__(self) -> Iterator[Row]:
        return iter(self.filled)

    def _sent_numbers(self) -> list[int]:
        """Return the numbers of the rows that were sent, in the order of the page."""
        if self._data is None:
            return []
        pattern = re.compile(rf"{self._prefix}-([0-9]{{1,6}})-")
        names = [*self._data, *self._files]
        matches = (pattern.match(name) for name in names)
        return list(dict.fromkeys(int(match[1]) for match in matches if match))

    def _make(self, number: int | str, **values: Any) -> Row:
        return self._row(prefix=f"{self._prefix}-{number}", **values, **self._options)
