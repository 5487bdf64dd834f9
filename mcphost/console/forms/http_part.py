"""The part of a tool's form for the kind `http`: the request, its questions, and the response."""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any, Final, TypeVar

from django import forms as django_forms
from django.core.exceptions import ValidationError
from django.forms import BoundField
from pydantic import ValidationError as ConfigError

from mcphost.console.forms import forms
from mcphost.console.forms.argument_rows import (
    NoRowsError,
    accepts_more,
    argument_rows,
    is_same,
    rows_of,
)
from mcphost.console.forms.http_rows import (
    BodyFieldRow,
    FieldRow,
    FileRow,
    HeaderRow,
    RequestQuestionRow,
)
from mcphost.console.forms.json_texts import CODE, json_object, json_text, parse_json
from mcphost.console.forms.kind_parts import FormInput, FormPart
from mcphost.console.forms.prompts import plain
from mcphost.console.forms.rows import Rows
from mcphost.kinds.http.configs import MAX_SECONDS, HttpToolConfig, RequestConfig, ResponseConfig

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
BODIES: Final = (
    ("", "None"),
    ("json", "JSON"),
    ("form", "Form fields"),
    ("multipart", "Form with files"),
    ("text", "Text"),
    ("bytes", "Bytes"),
)
CONTENTS: Final = (
    ("auto", "By the media type"),
    ("text", "Text"),
    ("json", "Structured JSON"),
    ("image", "Image"),
    ("resource_link", "Links to resources"),
)
BY_METHOD: Final = (("", "By the method"), ("yes", "Yes"), ("no", "No"))
NO_ARGUMENTS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {},
    "required": [],
    "additionalProperties": False,
}
AS_ROWS, AS_SCHEMA = "rows", "schema"
"""How the arguments of a form are written. Without JavaScript it is always the schema."""


class HttpPart(FormPart):
    """An HTTP request. `secrets` are the names of the tenant's secrets."""

    template = "forms/part_http.html"
    sections = (
        ("request", "Request"),
        ("arguments", "Arguments"),
        ("questions", "Questions"),
        ("preview", "Preview"),
        ("response", "Response"),
        ("attempts", "Attempts"),
        ("hints", "Hints"),
    )

    method = forms.select("Method", choices=[(http_method, http_method) for http_method in METHODS])
    url = forms.text(
        "Address",
        "Such as https://api.example.com/orders/{arguments.id}. Without a query.",
        inputmode="url",
        spellcheck="false",
    )
    body = forms.select("Body", choices=BODIES)
    body_json = forms.lines(
        "JSON",
        'Its texts may have placeholders. "{arguments.items}" alone becomes the value itself.',
        8,
        **CODE,
    )
    body_text = forms.lines("Text", "It may have placeholders, but not for secrets.", 8, **CODE)
    body_bytes = forms.text(
        "Bytes", "An argument in Base64, such as {arguments.file}.", spellcheck="false"
    )
    more = forms.text(
        "Further fields",
        "An argument that is an object, such as {arguments.more}: its members are fields, too.",
        spellcheck="false",
    )
    media_type = forms.text(
        "Media type",
        "Empty: application/json for JSON, text/plain for text, application/octet-stream for bytes.",
        spellcheck="false",
    )
    arguments_as = django_forms.CharField(
        required=False, initial=AS_SCHEMA, widget=django_forms.HiddenInput()
    )
    input_schema = json_object(
        "Schema of the arguments", "A JSON Schema of an object. Each property is an argument.", 10
    )
    further_arguments = forms.switch(
        "Accept other arguments", "Arguments that are not listed here."
    )
    output_schema = json_object(
        "Schema of the result", "Empty: none. If there is one, results must match it.", 4
    )
    select = forms.text(
        "Expression",
        "JMESPath that selects a part of a JSON response, such as items[].name. Empty: all of it.",
        spellcheck="false",
    )
    content = forms.select("Result", choices=CONTENTS)
    statuses = forms.text(
        "Statuses that are errors", "Such as 404 and 5xx, separated by spaces.", spellcheck="false"
    )
    timeout_seconds = forms.seconds(
        "Time-out", f"Seconds for the request, at most {MAX_SECONDS:g}. Empty: 30."
    )
    retries = forms.number("Retries", "more attempts", "0 to 3, if an attempt fails. Empty: 2.")
    redirects = forms.number(
        "Redirects", "redirects", "How many are followed, 0 to 5. Empty: none."
    )
    repeatable = forms.select(
        "May be repeated",
        "Whether an attempt without a response may be repeated.",
        choices=BY_METHOD,
    )
    read_only = forms.select("Read-only", "The call changes nothing.", choices=BY_METHOD)
    destructive = forms.select("Destructive", "It may destroy something.", choices=BY_METHOD)
    idempotent = forms.select("Idempotent", "Twice is the same as once.", choices=BY_METHOD)
    tasks = forms.tasks()

    def __init__(self, sent: FormInput, before: Mapping[str, Any], secrets: Sequence[str]) -> None:
        super().__init__(*sent, initial=_starting(before))
        self._before = before
        self.secrets = [f"{{secrets.{name}}}" for name in secrets]
        request = before.get("request", {})
        body = request.get("body") or {}
        self.query = _field_rows(FieldRow, "query", sent, request.get("query", ()))
        self.body_fields = _field_rows(BodyFieldRow, "fields", sent, body.get("fields", ()))
        files = [FileRow.initial_values(file) for file in body.get("files", ())]
        self.body_files = Rows(FileRow, "files", sent, files)
        headers = [HeaderRow.initial_values(header) for header in request.get("headers", ())]
        self.headers = Rows(HeaderRow, "headers", sent, headers)
        questions = [
            RequestQuestionRow.initial_values(question) for question in before.get("questions", ())
        ]
        self.questions = Rows(RequestQuestionRow, "questions", sent, questions)
        starting, self.why_no_rows = _starting_rows(before)
        self.arguments = argument_rows(sent, starting)

    @property
    def has_rows(self) -> bool:
        """Whether the arguments that were sent are written as rows."""
        return self.is_bound and self["arguments_as"].value() == AS_ROWS

    @property
    def begins_with(self) -> str:
        """How a browser shows the arguments first: as they were sent, or as rows where that is possible."""
        if self.is_bound:
            return AS_ROWS if self.has_rows else AS_SCHEMA
        return AS_SCHEMA if self.why_no_rows else AS_ROWS

    @property
    def _rows(self) -> Mapping[str, Rows[Any]]:
        """The rows by the path of their list in the configuration."""
        return {
            "request.query": self.query,
            "request.headers": self.headers,
            "request.body.fields": self.body_fields,
            "request.body.files": self.body_files,
            "questions": self.questions,
        }

    def is_valid(self) -> bool:
        valid = [super().is_valid(), *(rows.is_valid() for rows in self._rows.values())]
        if self.has_rows:
            valid.append(self.arguments.is_valid())
        return all(valid)

    @property
    def wrong(self) -> bool:
        return (
            super().wrong
            or self._wrong_arguments
            or any(rows.wrong for rows in self._rows.values())
        )

    @property
    def _wrong_arguments(self) -> bool:
        return self.has_rows and self.arguments.wrong

    def clean(self) -> dict[str, Any]:
        submitted = super().clean() or self.cleaned_data
        if self.has_rows:  # the text of the schema is not what the browser showed
            self.errors.pop("input_schema", None)
            submitted["input_schema"] = None
        return submitted

    def clean_body_json(self) -> Any:
        """Return the JSON of the body; None if the body is of another type."""
        text = self.cleaned_data["body_json"]
        if self.cleaned_data.get("body") != "json":
            return None
        if not text.strip():
            raise ValidationError("Write the JSON of the body.")
        return parse_json(text)

    def show_problems_at(self, path: Sequence[str], problems: Sequence[str]) -> None:
        dotted = ".".join(path)
        if dotted == "input_schema" and self.has_rows:
            self.arguments.errors.extend(problems)
            return
        for prefix, rows in self._rows.items():
            if f"{dotted}.".startswith(f"{prefix}."):
                rows.show_problems_at(dotted.removeprefix(prefix).strip(".").split("."), problems)
                return
        super().show_problems_at(path, problems)

    def field_of_argument(self, name: str) -> BoundField:
        """Return the field that shows what is said of an argument."""
        row = self.arguments.row_of(name) if self.has_rows else None
        return self["input_schema"] if row is None else row["name"]

    @property
    def bound_fields(self) -> Iterator[BoundField]:
        """The fields of the part and of its filled rows, as far as they were sent."""
        yield from self
        arguments = self.arguments if self.has_rows else ()
        for row in chain(*self._rows.values(), arguments):
            yield from row

    def field_at(self, path: Sequence[str]) -> BoundField | None:
        dotted = ".".join(path)
        for prefix, rows in self._rows.items():
            if dotted.startswith(f"{prefix}."):
                return rows.field_at(dotted.removeprefix(f"{prefix}.").split("."))
        if list(path) == ["request"]:  # what does not fit the method
            return self["body"]
        if list(path[:2]) == ["request", "body"]:
            field = _BODY_FIELDS.get(self["body"].value() or "", "body")
            path = [field, *(step for step in path if step in ("media_type", "more"))]
        renamed = {"errors": "statuses"}
        return super().field_at([renamed.get(step, step) for step in path])

    def config(self) -> dict[str, Any]:
        config = self._written()
        return dict(self._before) if _same(config, self._before) else config

    def readable_config(self) -> Mapping[str, Any] | None:
        if any(rows.wrong for rows in self._rows.values() if rows is not self.questions):
            return None
        cleaned = self.cleaned_data
        self.cleaned_data = {**dict.fromkeys(self.fields, ""), **_HARMLESS, **cleaned}
        try:
            return self._written()
        finally:
            self.cleaned_data = cleaned

    def _written(self) -> dict[str, Any]:
        submitted, before = self.cleaned_data, deepcopy(dict(self._before))
        return before | {
            "input_schema": self._input_schema(),
            "output_schema": submitted["output_schema"],
            "questions": [self._question(row) for row in self.questions],
            "request": before.get("request", {}) | self._request(),
            "response": before.get("response", {})
            | {
                "select": submitted["select"],
                "content": submitted["content"] or "auto",
                "errors": submitted["statuses"].replace(",", " ").split(),
            },
            "read_only": _HINT_VALUES[submitted["read_only"]],
            "destructive": _HINT_VALUES[submitted["destructive"]],
            "idempotent": _HINT_VALUES[submitted["idempotent"]],
            "tasks": submitted["tasks"] or "never",
        }

    def _question(self, row: RequestQuestionRow) -> dict[str, Any]:
        """Return a question; one with errors has the fields that placeholders name."""
        if not row.errors:
            return row.as_config()
        written = dict.fromkeys(row.fields, "") | row.cleaned_data
        named = _ANSWER.findall(" ".join(map(str, self.data.values())))
        fields = {field: {"type": "string"} for key, field in named if key == written["key"]}
        schema = {"type": "object", "properties": fields or {"x": {"type": "string"}}}
        row.cleaned_data = written | {
            "requested_schema": written["requested_schema"] or schema,
            "when": written["when"] or {},
        }
        return row.as_config()

    def _input_schema(self) -> dict[str, Any]:
        if self._wrong_arguments:
            return dict(_UNKNOWN_ARGUMENTS)
        if not self.has_rows:
            schema = self.cleaned_data["input_schema"]
            return dict(NO_ARGUMENTS) if schema is None else schema
        schema = self.arguments.schema(accepts_more=self.cleaned_data["further_arguments"])
        stored = self._before.get("input_schema", {})
        return dict(stored) if is_same(schema, stored) else schema

    def _request(self) -> dict[str, Any]:
        submitted = self.cleaned_data
        numbers = {
            name: RequestConfig.model_fields[name].default
            if submitted[name] is None
            else submitted[name]
            for name in ("timeout_seconds", "retries", "redirects")
        }
        return {
            "method": submitted["method"] or "GET",
            "url": submitted["url"],
            "query": [row.as_config() for row in self.query],
            "headers": [row.as_config() for row in self.headers],
            "body": self._body(),
            "repeatable": _HINT_VALUES[submitted["repeatable"]],
            **numbers,
        }

    def _body(self) -> dict[str, Any] | None:
        submitted = self.cleaned_data
        media_type = {"media_type": submitted["media_type"]} if submitted["media_type"] else {}
        more = {"more": submitted["more"]} if submitted["more"] else {}
        match submitted["body"]:
            case "json":
                return {"type": "json", "value": submitted["body_json"], **media_type}
            case "form":
                fields = [row.as_config() for row in self.body_fields]
                return {"type": "form", "fields": fields, **more}
            case "multipart":
                parts = [row.part() for row in self.body_fields]
                files = [row.as_config() for row in self.body_files]
                return {"type": "multipart", "fields": parts, "files": files, **more}
            case "text":
                return {"type": "text", "text": plain(submitted["body_text"]), **media_type}
            case "bytes":
                return {"type": "bytes", "content": submitted["body_bytes"], **media_type}
            case _:
                return None


_HINT_VALUES: Final[Mapping[str, bool | None]] = {"": None, "yes": True, "no": False}
_ANSWER: Final = re.compile(r"answers\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_$@-]+)", re.ASCII)
_UNKNOWN_ARGUMENTS: Final[Mapping[str, Any]] = {"type": "object", "anyOf": [{}]}
"""A schema that says nothing of which arguments there are."""
_HARMLESS: Final[Mapping[str, Any]] = {
    "input_schema": _UNKNOWN_ARGUMENTS,
    **dict.fromkeys(("output_schema", "body_json", "timeout_seconds", "retries", "redirects")),
}
"""Values in place of those that cannot be read."""
_BODY_FIELDS: Final = {"json": "body_json", "text": "body_text", "bytes": "body_bytes"}

Field = TypeVar("Field", bound=FieldRow)


def _field_rows(
    row: type[Field], prefix: str, sent: FormInput, before: Sequence[Mapping[str, Any]]
) -> Rows[Field]:
    return Rows(row, prefix, sent, [row.initial_values(field) for field in before])


def _starting_rows(before: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Return the initial rows of the arguments, and why there are none."""
    try:
        return rows_of(before.get("input_schema", NO_ARGUMENTS)), ""
    except NoRowsError as refusal:
        return [], str(refusal)


def _starting(before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the initial values of the fields."""
    request, response = before.get("request", {}), before.get("response", {})
    body = request.get("body") or {}
    output = before.get("output_schema")
    hints = {name: before.get(name) for name in ("read_only", "destructive", "idempotent")}
    errors = response.get("errors", ResponseConfig().errors)
    return {
        **{name: request.get(name) for name in ("method", "timeout_seconds")},
        **{name: request.get(name) for name in ("retries", "redirects")},
        "url": request.get("url", ""),
        "body": body.get("type", ""),
        "body_json": json_text(body["value"]) if "value" in body else "",
        "body_text": body.get("text", ""),
        "body_bytes": body.get("content", ""),
        "more": body.get("more", ""),
        "media_type": body.get("media_type", ""),
        "input_schema": json_text(before.get("input_schema", NO_ARGUMENTS)),
        "further_arguments": accepts_more(before.get("input_schema", NO_ARGUMENTS)),
        "output_schema": "" if output is None else json_text(output),
        "select": response.get("select", ""),
        "content": response.get("content", "auto"),
        "statuses": " ".join(errors),
        **{name: _hint_choice(hint) for name, hint in hints.items()},
        "repeatable": _hint_choice(request.get("repeatable")),
        "tasks": before.get("tasks", "never"),
    }


def _hint_choice(hint: bool | None) -> str:
    return next(choice for choice, value in _HINT_VALUES.items() if value is hint)


def _same(config: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Return whether two configurations mean the same, so that nothing is to be saved."""
    try:
        return HttpToolConfig.model_validate(config) == HttpToolConfig.model_validate(before)
    except ConfigError:
        return False
