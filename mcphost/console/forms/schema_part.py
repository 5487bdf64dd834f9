"""The part of a form for a kind without a special one: drawn from its configuration's JSON Schema."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.forms import BoundField

from mcphost.console.forms.kind_parts import FormInput
from mcphost.console.forms.prompts import plain
from mcphost.console.forms.schema_forms import JSON, ArgumentsForm


class SchemaPart(ArgumentsForm):
    """A configuration, with a field for each property of its schema."""

    template = "forms/part_schema.html"
    sections = (("configuration", "Configuration"),)

    def __init__(
        self, sent: FormInput, before: Mapping[str, Any], schema: Mapping[str, Any]
    ) -> None:
        self._before = before
        super().__init__(schema, sent[0], "config", before or None)
        self.fields["json"].label = "Configuration as JSON"

    @property
    def wrong(self) -> bool:
        return bool(self.errors)

    def readable_config(self) -> Mapping[str, Any] | None:
        return None

    def config(self) -> dict[str, Any]:
        """Return the configuration. A field that was not changed keeps its value, shown or not."""
        if self.chosen_mode == JSON:
            return self.arguments()
        kept = {
            name: self._before[name]
            for name, key in self._names.items()
            if name in self._before and self._is_unchanged(key)
        }
        return self.filled_values() | kept

    def show_problems_at(self, path: Sequence[str], problems: Sequence[str]) -> None:
        field = self.field_at(path)
        self.show_problems({field.name if field else None: problems})

    def field_at(self, path: Sequence[str]) -> BoundField | None:
        if self.chosen_mode == JSON:
            return self["json"]
        field = self._names.get(path[0]) if path else None
        return self[field] if field else None

    def _is_unchanged(self, key: str) -> bool:
        shown, sent = self.fields[key].initial, self[key].data
        text = plain(sent) if isinstance(sent, str) else sent
        return bool(text == (shown or type(text)()))
