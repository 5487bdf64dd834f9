"""The part of a tool's form for the kind `http`: the request, its questions, and the response."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Final, TypeVar

from django.core.exceptions import ValidationError
from django.forms import BoundField
from pydantic import ValidationError as ConfigError

from mcphost.console.forms import forms
from mcphost.console.forms.json_texts import CODE, json_object, json_text, parse_json
from mcphost.console.forms.kind_parts import FormInput, FormPart
from mcphost.console.forms.prompts import plain
from mcphost.console.forms.rows import RowForm, Rows
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
_LISTS: Final = {
    "form": "a=1,2",
    "spaceDelimited": "a=1 2",
    "pipeDelimited": "a=1|2",
    "deepObject": "a[x]=1",
    "json": "JSON",
    "part": "objects as JSON, lists a=1,2",
}
WRITTEN: Final = tuple(
    (f"{style}:{explode}", label)
    for style, list_label in _LISTS.items()
    for explode, label in (
        (True, f"{list_label} ({style}, exploded)"),
        (False, f"{list_label} ({style})"),
    )
)
"""How a list or an object is written: the style and `explode` of OpenAPI."""
_SIMPLE: Final = "simple:False"
IN_HEADERS: Final = (
    (_SIMPLE, "a,b; x,1,y,2 (simple)"),
    ("simple:True", "a,b; x=1,y=2 (simple, exploded)"),
    ("json:False", "JSON"),
)
NO_ARGUMENTS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {},
    "required": [],
    "additionalProperties": False,
}
_VALUE_HINT = "A text with placeholders, such as {arguments.city}."


class FieldRow(RowForm):
    """A parameter of the query, or a field of a form."""

    CONTENT_FIELDS = ("name", "value")
    FIELD_BY_KEY: ClassVar[Mapping[str, str]] = {"style": "written", "explode": "written"}

    name = forms.text("Name", spellcheck="false")
    value = forms.text("Value", _VALUE_HINT, spellcheck="false")
    written = forms.select("Lists and objects", choices=WRITTEN)
    allow_reserved = forms.switch("Leave / : , and the like as they are")

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
    def starting(field: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of a row."""
        written = f"{field.get('style', 'form')}:{field.get('explode', True)}"
        return {**field, "written": written}


class BodyFieldRow(FieldRow):
    """A field of a form, or of one with files, where its part may have a type."""

    media_type = forms.text(
        "Content type",
        "Of a part of a form with files, such as application/json. Empty: none.",
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
    def starting(file: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of a row."""
        return {**file, "file_content": file["content"]}


class HeaderRow(RowForm):
    """A header."""

    CONTENT_FIELDS = ("name", "value")
    FIELD_BY_KEY: ClassVar[Mapping[str, str]] = {"style": "written", "explode": "written"}

    name = forms.text("Name", spellcheck="false")
    value = forms.text("Value", "Such as Bearer {secrets.api_key}.", spellcheck="false")
    written = forms.select("Lists and objects", choices=IN_HEADERS)

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
    def starting(header: Mapping[str, Any]) -> dict[str, Any]:
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
    def starting(question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of a row."""
        when = question.get("when")
        return {
            **question,
            "requested_schema": json_text(question["requested_schema"]),
            "when": json_text(when) if when else "",
        }


class HttpPart(FormPart):
    """An HTTP request. `secrets` are the names of the tenant's secrets."""

    template = "forms/part_http.html"

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
    input_schema = json_object(
        "Schema of the arguments", "A JSON Schema of an object. Each property is an argument.", 10
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
    retries = forms.number("Retries", "0 to 3 more attempts. Empty: 2.")
    redirects = forms.number("Redirects", "How many are followed, 0 to 5. Empty: none.")
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
        files = [FileRow.starting(file) for file in body.get("files", ())]
        self.body_files = Rows(FileRow, "files", sent, files)
        headers = [HeaderRow.starting(header) for header in request.get("headers", ())]
        self.headers = Rows(HeaderRow, "headers", sent, headers)
        questions = [
            RequestQuestionRow.starting(question) for question in before.get("questions", ())
        ]
        self.questions = Rows(RequestQuestionRow, "questions", sent, questions)

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
        return all(valid)

    @property
    def wrong(self) -> bool:
        return super().wrong or any(rows.wrong for rows in self._rows.values())

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
        for prefix, rows in self._rows.items():
            if f"{dotted}.".startswith(f"{prefix}."):
                rows.show_problems_at(dotted.removeprefix(prefix).strip(".").split("."), problems)
                return
        super().show_problems_at(path, problems)

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
        if any(rows.wrong for rows in self._rows.values()):
            return None
        cleaned = self.cleaned_data
        self.cleaned_data = {**dict.fromkeys(self.fields, ""), **_HARMLESS, **cleaned}
        try:
            return self._written()
        finally:
            self.cleaned_data = cleaned

    def _written(self) -> dict[str, Any]:
        submitted, before = self.cleaned_data, deepcopy(dict(self._before))
        schema = submitted["input_schema"]
        return before | {
            "input_schema": dict(NO_ARGUMENTS) if schema is None else schema,
            "output_schema": submitted["output_schema"],
            "questions": [row.as_config() for row in self.questions],
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
_HARMLESS: Final[Mapping[str, Any]] = {
    "input_schema": {"type": "object", "anyOf": [{}]},  # which arguments there are is not known
    **dict.fromkeys(("output_schema", "body_json", "timeout_seconds", "retries", "redirects")),
}
"""Values in place of those that cannot be read."""
_BODY_FIELDS: Final = {"json": "body_json", "text": "body_text", "bytes": "body_bytes"}

Field = TypeVar("Field", bound=FieldRow)


def _field_rows(
    row: type[Field], prefix: str, sent: FormInput, before: Sequence[Mapping[str, Any]]
) -> Rows[Field]:
    return Rows(row, prefix, sent, [row.starting(field) for field in before])


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
