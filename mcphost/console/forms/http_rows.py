"""The rows of an HTTP tool's form: parameters, fields, files, headers and questions."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from mcphost.console.forms import forms
from mcphost.console.forms.json_texts import json_object, json_text
from mcphost.console.forms.prompts import plain
from mcphost.console.forms.rows import RowForm

_LISTS: Final = {
    "form": "a=1,2",
    "spaceDelimited": "a=1 2",
    "pipeDelimited": "a=1|2",
    "deepObject": "a[x]=1",
    "json": "JSON",
    "part": "objects as JSON, lists a=1,2",
}
STYLE_CHOICES: Final = tuple(
    (f"{style}:{explode}", label)
    for style, list_label in _LISTS.items()
    for explode, label in (
        (True, f"{list_label} ({style}, exploded)"),
        (False, f"{list_label} ({style})"),
    )
)
"""How a list or an object is written: the style and `explode` of OpenAPI."""
_SIMPLE: Final = "simple:False"
HEADER_STYLE_CHOICES: Final = (
    (_SIMPLE, "a,b; x,1,y,2 (simple)"),
    ("simple:True", "a,b; x=1,y=2 (simple, exploded)"),
    ("json:False", "JSON"),
)
_VALUE_HINT = "A text with placeholders, such as {arguments.city}."


class FieldRow(RowForm):
    """A parameter of the query, or a field of a form."""

    CONTENT_FIELDS = ("name", "value")
    FIELD_BY_KEY: ClassVar[Mapping[str, str]] = {"style": "written", "explode": "written"}

    name = forms.text("Name", spellcheck="false")
    value = forms.text("Value", _VALUE_HINT, spellcheck="false")
    written = forms.select("Lists and objects", choices=STYLE_CHOICES)
    allow_reserved = forms.switch("Do not percent-encode reserved characters such as / : ,")

    def as_config(self) -> dict[str, Any]:
        """Return the field in the format of the kind's configuration."""
        submitted = self.cleaned_data
        style, _, explode = (submitted["written"] or "form:True").partition(":")
        return {
            "name": submitted["name"],
            "value": submitted["value"],
            "style": style,
            "explode": explode == "True",
            **({"allow_reserved": True} if submitted["allow_reserved"] else {}),
        }

    @staticmethod
    def initial_values(field: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of a row."""
        written = f"{field.get('style', 'form')}:{field.get('explode', True)}"
        return {**field, "written": written}


class BodyFieldRow(FieldRow):
    """A field of a form body. In a form with files (multipart) its part may have a content type."""

    media_type = forms.text(
        "Content type",
        "Of this part in a form with files, such as application/json. Empty: none.",
        spellcheck="false",
    )

    def part(self) -> dict[str, Any]:
        """Return the field of a form with files in the format of the kind's configuration."""
        media_type = self.cleaned_data["media_type"]
        return {**self.as_config(), **({"media_type": media_type} if media_type else {})}


class FileRow(RowForm):
    """A file of a form."""

    CONTENT_FIELDS = ("name", "file_content")
    FIELD_BY_KEY: ClassVar[Mapping[str, str]] = {"content": "file_content"}

    name = forms.text("Name", spellcheck="false")
    file_content = forms.text(
        "Content", "An argument in Base64, such as {arguments.file}.", spellcheck="false"
    )
    file_name = forms.text("File name", "Empty: the name of the field.", spellcheck="false")
    media_type = forms.text(
        "Content type", "Such as image/png. Empty: application/octet-stream.", spellcheck="false"
    )

    def as_config(self) -> dict[str, Any]:
        """Return the file in the format of the kind's configuration."""
        submitted = self.cleaned_data
        return {
            "name": submitted["name"],
            "content": submitted["file_content"],
            "file_name": submitted["file_name"],
            "media_type": submitted["media_type"],
        }

    @staticmethod
    def initial_values(file: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of a row."""
        return {**file, "file_content": file["content"]}


class HeaderRow(RowForm):
    """A header."""

    CONTENT_FIELDS = ("name", "value")
    FIELD_BY_KEY: ClassVar[Mapping[str, str]] = {"style": "written", "explode": "written"}

    name = forms.text("Name", spellcheck="false")
    value = forms.text("Value", "Such as Bearer {secrets.api_key}.", spellcheck="false")
    written = forms.select("Lists and objects", choices=HEADER_STYLE_CHOICES)

    def as_config(self) -> dict[str, Any]:
        """Return the header in the format of the kind's configuration."""
        submitted = self.cleaned_data
        style, _, explode = (submitted["written"] or _SIMPLE).partition(":")
        is_default = submitted["written"] in ("", _SIMPLE)
        return {
            "name": submitted["name"],
            "value": submitted["value"],
            **({} if is_default else {"style": style, "explode": explode == "True"}),
        }

    @staticmethod
    def initial_values(header: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of a row."""
        written = f"{header.get('style', 'simple')}:{header.get('explode', False)}"
        return {**header, "written": written}


class RequestQuestionRow(RowForm):
    """A question that is asked before the request."""

    CONTENT_FIELDS = ("key", "message", "requested_schema", "when")

    key = forms.text("Key", "Its answer is {answers.<key>.<field>}.", spellcheck="false")
    message = forms.lines("Message", "What the user reads. It may have placeholders.", rows=2)
    requested_schema = json_object(
        "Schema of the answer",
        'Such as {"type": "object", "properties": {"comment": {"type": "string"}}}.',
        required=True,
    )
    when = json_object(
        "Only if",
        'Values that must be there, such as {"arguments.state": ["closed"]}. Empty: always.',
        rows=2,
    )

    def as_config(self) -> dict[str, Any]:
        """Return the question in the format of the kind's configuration."""
        submitted = self.cleaned_data
        return {
            "key": submitted["key"],
            "message": plain(submitted["message"]),
            "requested_schema": submitted["requested_schema"],
            "when": submitted["when"] or {},
        }

    @staticmethod
    def initial_values(question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of a row."""
        when = question.get("when")
        return {
            **question,
            "requested_schema": json_text(question["requested_schema"]),
            "when": json_text(when) if when else "",
        }
