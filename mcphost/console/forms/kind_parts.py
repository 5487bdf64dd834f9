"""The part of a form that belongs to a kind: the function to run, or the written content.

A part reads and writes the kind's configuration, and shows problems at the right fields.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from django.core.exceptions import ValidationError
from django.forms import BoundField

from mcphost.catalogue.rows import FunctionRow
from mcphost.console.forms import forms
from mcphost.console.forms.prompts import MAX_BYTES as MAX_IN_A_MESSAGE
from mcphost.console.forms.prompts import ArgumentRow, MessageRow, blobs, lines_of, plain
from mcphost.console.forms.rows import RowForm, Rows
from mcphost.console.forms.uploads import Blob, FileForm, in_words, stored

FormInput = tuple[Any, Any]

_URI_HINT = "The URI that clients read, such as docs://handbook or https://example.com/terms."
_TEMPLATE_HINT = (
    "The pattern of the URIs that it serves, such as docs://{page} or files:///{+path}{?version}."
)
MAX_BYTES = 1024 * 1024


class Part(Protocol):
    """One part. `template` renders it; `config` returns the configuration, once it is valid.

    `sections` are the anchors and titles of its headings.
    """

    @property
    def template(self) -> str: ...

    @property
    def sections(self) -> forms.Choices: ...

    def is_valid(self) -> bool: ...

    @property
    def wrong(self) -> bool: ...

    def config(self) -> dict[str, Any]: ...

    def readable_config(self) -> Mapping[str, Any] | None:
        """Return the configuration of a part with errors, with harmless values in place of what cannot be
        read; None if too little can be read."""
        return None

    def show_problems_at(self, path: Sequence[str], problems: Sequence[str]) -> None:
        """Show problems at a path within the configuration."""

    def field_at(self, path: Sequence[str]) -> BoundField | None:
        """Return the field that shows what is at a path within the configuration."""


class FormPart(forms.ConsoleForm):
    """A part that is a form."""

    @property
    def wrong(self) -> bool:
        return bool(self.errors)

    def readable_config(self) -> Mapping[str, Any] | None:
        return None

    def show_problems_at(self, path: Sequence[str], problems: Sequence[str]) -> None:
        field = self.field_at(path)
        self.show_problems({field.name if field else None: problems})

    def field_at(self, path: Sequence[str]) -> BoundField | None:
        named = ("file" if part == "blob" else part for part in reversed(path))
        field = next((part for part in named if part in self.fields), None)
        return self[field] if field else None


class FunctionPart(FormPart):
    """A Python function, chosen from those granted to the tenant (`functions`)."""

    template = "forms/part_function.html"
    sections = (("function", "Function"),)

    function = forms.select("Function", "The code that runs. Platform staff grant functions.")

    def __init__(
        self, sent: FormInput, before: Mapping[str, Any], functions: Sequence[FunctionRow]
    ) -> None:
        super().__init__(*sent, initial=dict(before))
        self.functions = functions
        choices = {"": "Choose a function…"}
        choices |= {row.reference: row.label for row in functions if row.in_code}
        selected = before.get("function", "")
        choices.setdefault(selected, f"{selected} (not available)")
        self.fields["function"].choices = list(choices.items())  # type: ignore[attr-defined]

    def config(self) -> dict[str, Any]:
        return {"function": self.cleaned_data["function"]}


class PromptPart:
    """Arguments and messages."""

    template = "forms/part_prompt.html"
    sections = (("arguments", "Arguments"), ("messages", "Messages"))

    def __init__(self, sent: FormInput, before: Mapping[str, Any]) -> None:
        messages = before.get("messages", ())
        self.arguments = Rows(
            ArgumentRow,
            "arguments",
            sent,
            [ArgumentRow.initial_values(argument) for argument in before.get("arguments", ())],
        )
        self.messages = Rows(
            MessageRow,
            "messages",
            sent,
            [MessageRow.initial_values(message) for message in messages],
            stored=stored(blobs(messages)),
            max_bytes=MAX_IN_A_MESSAGE,
        )

    def is_valid(self) -> bool:
        wrong = [rows for rows in (self.arguments, self.messages) if not rows.is_valid()]
        return self._is_small() and not wrong

    def _is_small(self) -> bool:
        """Return whether the files together are at most MAX_BYTES; if not, drop the new ones.

        A form that carried them back would be too large to be accepted.
        """
        if sum(row.blob.size for row in self.messages if row.blob) <= MAX_BYTES:
            return True
        for row in self.messages:
            row.forget_new()
        problem = f"All files together are larger than {in_words(MAX_BYTES)}. Choose smaller ones."
        self.messages.errors.append(problem)
        return False

    @property
    def wrong(self) -> bool:
        return self.arguments.wrong or self.messages.wrong

    def readable_config(self) -> Mapping[str, Any] | None:
        return None

    def config(self) -> dict[str, Any]:
        return {
            "arguments": [row.as_config() for row in self.arguments],
            "messages": [row.as_config() for row in self.messages],
        }

    def show_problems_at(self, path: Sequence[str], problems: Sequence[str]) -> None:
        self._rows(path).show_problems_at(path[1:], problems)

    def field_at(self, path: Sequence[str]) -> BoundField | None:
        return self._rows(path).field_at(path[1:])

    def _rows(self, path: Sequence[str]) -> Rows[Any]:
        return self.arguments if path and path[0] == "arguments" else self.messages


class ResourcePart(FormPart, FileForm):
    """A text, or a file."""

    template = "forms/part_resource.html"
    sections = (("content-part", "Content"),)

    uri = forms.text("URI", _URI_HINT, inputmode="url", spellcheck="false")
    holds = forms.select("Type", choices=(("text", "Text"), ("file", "File")))
    text = forms.lines("Text", "Clients receive this text unchanged.", rows=12)
    file = forms.file(
        "File", f"Any file, such as an image or a PDF, of at most {in_words(MAX_BYTES)}."
    )
    mime_type = forms.text(
        "MIME type",
        "Such as text/markdown or application/pdf. Empty: text/plain, or the type of the file.",
        spellcheck="false",
    )

    def __init__(self, sent: FormInput, before: Mapping[str, Any]) -> None:
        blob = Blob.of(before.get("mime_type", ""), before["blob"]) if before.get("blob") else None
        # The stored file keeps its type; the field is empty, so that another file brings its own.
        file = {"holds": "file", "mime_type": "", "kept": blob.digest if blob else ""}
        shown = file if blob else {"holds": "text"}
        super().__init__(
            *sent,
            initial={**before, **shown},
            stored=stored([blob] if blob else []),
            max_bytes=MAX_BYTES,
        )

    def config(self) -> dict[str, Any]:
        submitted = self.cleaned_data
        blob = self.blob if submitted["holds"] == "file" else None
        if blob is not None:
            typed = {"mime_type": submitted["mime_type"] or blob.mime_type}
            return {"uri": submitted["uri"], **typed, "blob": blob.base64}
        return {"uri": submitted["uri"], **_typed(submitted), "text": plain(submitted["text"])}

    def clean(self) -> dict[str, Any]:
        submitted = super().clean() or self.cleaned_data
        if submitted.get("holds") == "file" and self.blob is None and "file" not in self.errors:
            raise ValidationError({"file": "Choose a file."})
        return submitted


class VariableRow(RowForm):
    """The suggested values of one variable of a template."""

    CONTENT_FIELDS = ("name", "choices")

    name = forms.text("Variable", spellcheck="false")
    choices = forms.lines("Choices", "One per line; suggested while users type.", rows=2)


class TemplatePart(FormPart):
    """A text with placeholders for the variables of its URI."""

    template = "forms/part_template.html"
    sections = (("content-part", "Content"),)

    uri = forms.text("URI template", _TEMPLATE_HINT, inputmode="url", spellcheck="false")
    text = forms.lines(
        "Text", "{variables} of the URI template are replaced by their values.", rows=12
    )
    mime_type = forms.text("MIME type", "Empty: text/plain.", spellcheck="false")

    def __init__(self, sent: FormInput, before: Mapping[str, Any]) -> None:
        super().__init__(*sent, initial=dict(before))
        choices = before.get("choices", {})
        starting = [
            {"name": name, "choices": "\n".join(values)} for name, values in choices.items()
        ]
        self.variables = Rows(VariableRow, "variables", sent, starting)

    def is_valid(self) -> bool:
        valid = [super().is_valid(), self.variables.is_valid()]
        return all(valid)

    @property
    def wrong(self) -> bool:
        return super().wrong or self.variables.wrong

    def show_problems_at(self, path: Sequence[str], problems: Sequence[str]) -> None:
        if not path or path[0] != "choices":
            super().show_problems_at(path, problems)
            return
        names, variable = [row.cleaned_data["name"] for row in self.variables], path[1:2]
        is_variable = bool(variable) and variable[0] in names
        row = (str(names.index(variable[0])), "choices") if is_variable else ()
        self.variables.show_problems_at(row, problems)

    def config(self) -> dict[str, Any]:
        submitted = self.cleaned_data
        choices: dict[str, list[str]] = {}
        for row in self.variables:
            values = lines_of(row.cleaned_data["choices"])
            choices.setdefault(row.cleaned_data["name"], []).extend(values)
        text = plain(submitted["text"])
        return {"uri": submitted["uri"], **_typed(submitted), "text": text, "choices": choices}


def _typed(submitted: Mapping[str, Any]) -> dict[str, str]:
    """Return the MIME type, if one is given."""
    return {"mime_type": submitted["mime_type"]} if submitted["mime_type"] else {}
