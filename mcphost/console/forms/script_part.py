"""The part of a tool's form for the kind `script`: its code, and hints for clients."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.forms import BoundField

from mcphost.console.forms import forms
from mcphost.console.forms.json_texts import CODE, json_text
from mcphost.console.forms.kind_parts import FormInput, FormPart
from mcphost.console.forms.prompts import plain
from mcphost.kinds.script.completions import offered
from mcphost.kinds.script.signature import ScriptProblemError, signature_of
from mcphost.kinds.script.surroundings import DESCRIBED
from mcphost.sdk import ToolAnnotations

START: Final = '''\
def greet(name: str) -> str:
    """Greet a person by name."""
    return f"Hello, {name}!"
'''
NEVER: Final = "never"
HINTS: Final = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
"""The fields of the hints, by their names on the wire."""
MIN_LINES: Final = 10
MAX_LINES: Final = 32
"""The height of the box for the code, which grows with the script between these."""

_CHOICES: Final = (("", "Not said"), ("yes", "Yes"), ("no", "No"))
_HINT_VALUES: Final[Mapping[str, bool | None]] = {"": None, "yes": True, "no": False}


class ScriptPart(FormPart):
    """A script. `secrets` are the names of the tenant's secrets."""

    template = "forms/part_script.html"
    sections = (("script", "Script"), ("hints", "Hints"))

    code = forms.lines(
        "Code",
        "Python with one public function: that is the tool. Its docstring describes it, and its "
        "type hints are its schemas.",
        24,
        **CODE,
    )
    read_only = forms.select("Read-only", "The call changes nothing.", choices=_CHOICES)
    destructive = forms.select("Destructive", "It may destroy something.", choices=_CHOICES)
    idempotent = forms.select("Idempotent", "Twice is the same as once.", choices=_CHOICES)
    open_world = forms.select(
        "Open world", "It uses services outside of the platform.", choices=_CHOICES
    )
    tasks = forms.tasks()

    functions = DESCRIBED

    def __init__(self, sent: FormInput, before: Mapping[str, Any], secrets: Sequence[str]) -> None:
        written = ToolAnnotations.model_validate(before.get("annotations", {}))
        self._annotations = written.model_dump(mode="json", by_alias=True, exclude_none=True)
        self._before = before
        words = {value: choice for choice, value in _HINT_VALUES.items()}
        hints = {field: words[self._annotations.get(name)] for field, name in HINTS.items()}
        super().__init__(*sent, initial=_starting(before) | hints)
        self.secrets = secrets
        lines = str(self["code"].value() or "").count("\n") + 1
        self.fields["code"].widget.attrs["rows"] = min(max(lines + 2, MIN_LINES), MAX_LINES)

    @property
    def completions(self) -> Mapping[str, Any]:
        """What the editor suggests: what scripts can use, and the tenant's secrets."""
        return {**offered(), "secrets": self.secrets}

    @property
    def arguments(self) -> str:
        """The schema of the arguments that clients see; empty while the function cannot be read."""
        try:
            return json_text(signature_of(plain(self["code"].value() or "")).input_schema)
        except ScriptProblemError:
            return ""

    @property
    def description(self) -> str:
        """What clients see without a description in the form: the docstring of the function."""
        try:
            return signature_of(plain(self["code"].value() or "")).description
        except ScriptProblemError:
            return ""

    def config(self) -> dict[str, Any]:
        submitted = self.cleaned_data
        selected_hints = {name: _HINT_VALUES[submitted[field]] for field, name in HINTS.items()}
        merged = {**self._annotations, **selected_hints}
        annotations = {name: value for name, value in merged.items() if value is not None}
        kept = annotations == self._annotations
        hints = self._before.get("annotations", {}) if kept else annotations
        return {
            "code": plain(submitted["code"]),
            **({"annotations": hints} if hints else {}),
            **self._tasks(),
        }

    def _tasks(self) -> dict[str, Any]:
        """Return the choice; nothing for the default, unless that was written before."""
        task_support = self.cleaned_data["tasks"] or NEVER
        return {"tasks": task_support} if task_support != NEVER or "tasks" in self._before else {}

    def field_at(self, path: Sequence[str]) -> BoundField | None:
        fields = {name: field for field, name in HINTS.items()}
        return super().field_at([fields.get(step, step) for step in path])


def _starting(before: Mapping[str, Any]) -> dict[str, Any]:
    return {"code": before.get("code", START), "tasks": before.get("tasks", NEVER)}
