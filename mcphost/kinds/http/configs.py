"""The configuration of an HTTP tool, stored in a catalogue row.

It is data: a request with placeholders (`http.templates`), questions to ask before it, and how its
response becomes the tool's result.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import AfterValidator, Field, field_validator, model_validator

from mcphost.egress.addresses import Target
from mcphost.egress.errors import EgressRequestError
from mcphost.egress.messages import RESERVED_HEADERS
from mcphost.kinds.http.templates import (
    SECRETS,
    JsonTemplate,
    Placeholder,
    TemplateError,
    TextTemplate,
)
from mcphost.kinds.kind import Strict
from mcphost.runtime.program import TaskSupport

SAFE: Final = frozenset({"GET", "HEAD"})
IDEMPOTENT: Final = SAFE | {"PUT", "DELETE"}
"""Methods that may be repeated (RFC 9110, section 9.2)."""
MAX_FIELDS: Final = 256
MAX_FILES: Final = 16
MAX_QUESTIONS: Final = 16
MAX_TEXT: Final = 64 * 1024
MAX_SECONDS: Final = 120.0

OWN_HEADERS: Final = RESERVED_HEADERS | {"idempotency-key"}
"""Headers that the platform sets, or that concern one connection only."""
_HEADER: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_STATUS: Final = re.compile(r"[1-5](?:[0-9]{2}|xx)")


def _template(text: str) -> str:
    try:
        TextTemplate(text)
    except TemplateError as error:
        raise ValueError(f"{error}.") from None
    return text


def _without_secrets(text: str) -> str:
    _template(text)
    if any(placeholder.root == SECRETS for placeholder in TextTemplate(text).placeholders):
        raise ValueError("A secret may stand in headers, in the query, and in a JSON or form body.")
    return text


def _header_name(name: str) -> str:
    if not _HEADER.fullmatch(name):
        raise ValueError("A header's name is 1 to 128 of A-Z, a-z, 0-9 and !#$%&'*+-.^_`|~.")
    if name.lower() in OWN_HEADERS:
        raise ValueError(f"The platform sets {name} itself, or it may not be set.")
    return name


def _header_value(text: str) -> str:
    if _CONTROL.search(text) or not text.isascii():
        raise ValueError("A header's value is one line of ASCII characters.")
    return _template(text)


def _url(text: str) -> str:
    _without_secrets(text)
    try:
        parts = urlsplit(text)
    except ValueError:
        raise ValueError("The address is malformed.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("Give a whole address, such as https://api.example.com/orders.")
    if "{" in f"{parts.scheme}{parts.netloc}":
        raise ValueError("The host must not have placeholders: secrets and limits depend on it.")
    if "@" in parts.netloc:
        raise ValueError("The address must not have a user name or a password: use a header.")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise ValueError("The address has no query and no fragment: add parameters below.")
    if _CONTROL.search(text) or " " in text:
        raise ValueError("The address must not have spaces or control characters.")
    try:
        Target.parse(text)
    except EgressRequestError as error:
        raise ValueError(str(error)) from None
    return text


def _expression(text: str) -> str:
    try:
        if text:
            jmespath.compile(text)
    except (JMESPathError, ValueError, RecursionError):
        raise ValueError("This is no JMESPath expression.") from None
    return text


def _status(text: str) -> str:
    if not _STATUS.fullmatch(text):
        raise ValueError("A status is a number such as 404, or a class such as 4xx.")
    return text


Text = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_template)]
PlainText = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_without_secrets)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, Field(max_length=8192), AfterValidator(_header_value)]
Url = Annotated[str, Field(max_length=8192), AfterValidator(_url)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
Status = Annotated[str, AfterValidator(_status)]
Expression = Annotated[str, Field(max_length=1000), AfterValidator(_expression)]
Style = Literal["form", "spaceDelimited", "pipeDelimited", "deepObject", "json", "part"]
JSON_TYPE: Final = "application/json"
MAX_MEDIA_TYPE: Final = 255
WRITABLE_TYPE: Final = re.compile(
    r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+"
    r'( ?; ?[A-Za-z0-9_.-]+=([A-Za-z0-9!#$%&\'*+.^_`|~/:-]+|"[ !#-\[\]-~]*"))*'
)
_JSON: Final = re.compile(r"application/json|[a-z0-9.+-]+/[a-z0-9.+-]+\+json|text/json")
MediaType = Annotated[str, Field(max_length=MAX_MEDIA_TYPE, pattern=f"^{WRITABLE_TYPE.pattern}$")]
"""A media type with its parameters (RFC 9110, section 8.3.1)."""


def is_json_type(media_type: str) -> bool:
    """Whether a media type is JSON, whatever its parameters."""
    return _JSON.fullmatch(media_type.partition(";")[0].strip().lower()) is not None


class FieldConfig(Strict):
    """A parameter of the query, or a field of a form. Left out if its value is missing.

    A value that is only a placeholder may be a list or an object, written by `style` and `explode`
    as OpenAPI says (3.1, "Style Values"), or as JSON; with the style `part` an object is JSON,
    and so is each element of a list if one of them is a list or an object. With `allow_reserved` characters such as `/` and
    `:` are not percent-encoded in a value.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    value: Text
    style: Style = "form"
    explode: bool = True
    allow_reserved: bool = False


class PartConfig(FieldConfig):
    """A field of a form with files. Its part has a Content-Type if there is a `media_type`, and one of the
    style `part` if its value is JSON (OpenAPI 3.0, "Encoding Object")."""

    media_type: Literal[""] | MediaType = ""


class PathConfig(Strict):
    """How a placeholder of the address is written if it is not a plain value or a list: the styles of
    a path (OpenAPI 3.1, "Style Values"), or JSON. `name` is the parameter's, for `matrix`."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    value: PlainText
    style: Literal["simple", "label", "matrix", "json"] = "simple"
    explode: bool = False
    allow_reserved: bool = False

    @field_validator("value")
    @classmethod
    def _is_one_value(cls, value: str) -> str:
        return _one_value(value, "argument")


class HeaderConfig(Strict):
    """A header. Left out if its value is missing.

    A list is written as `a,b`, an object as `x,1,y,2`, or `x=1,y=2` if it is exploded, or as JSON.
    """

    name: HeaderName
    value: HeaderValue
    style: Literal["simple", "json"] = "simple"
    explode: bool = False


class JsonBodyConfig(Strict):
    """A body of JSON: any JSON, whose strings are templates."""

    type: Literal["json"]
    value: Any
    media_type: MediaType = JSON_TYPE

    @model_validator(mode="after")
    def _readable(self) -> Self:
        try:
            JsonTemplate(self.value)
        except TemplateError as error:
            raise ValueError(f"{error}.") from None
        return self


def _one_value(text: str, example: str) -> str:
    if TextTemplate(text).only is None:
        raise ValueError(f"Name the value, and nothing else, such as {{arguments.{example}}}.")
    return text


def _further_fields(text: str) -> str:
    return _one_value(text, "argument") if text else ""


FurtherFields = Annotated[PlainText, AfterValidator(_further_fields)]
"""The placeholder of an object whose members are sent as fields; empty for none."""


class FormBodyConfig(Strict):
    """A body of URL-encoded fields. `more` is the placeholder of an object whose other members are sent
    as fields, too."""

    type: Literal["form"]
    fields: Annotated[list[FieldConfig], Field(max_length=MAX_FIELDS)] = []
    more: FurtherFields = ""

    @model_validator(mode="after")
    def _has_fields(self) -> Self:
        if not self.fields and not self.more:
            raise ValueError("The form needs a field.")
        return self


class FileConfig(Strict):
    """A file of a multipart body. `content` is the placeholder of a value in Base64, or of a list of
    such values, each a file. Left out if the value is missing.

    Without a file name it is called as the field; without a media type it is just bytes.
    """

    name: Annotated[str, Field(min_length=1, max_length=200)]
    content: PlainText
    file_name: Annotated[PlainText, Field(max_length=1000)] = ""
    media_type: Annotated[PlainText, Field(max_length=1000)] = ""

    @field_validator("content")
    @classmethod
    def _is_one_value(cls, content: str) -> str:
        return _one_value(content, "file")


class MultipartBodyConfig(Strict):
    """A body of fields and files (`multipart/form-data`). `more` is as that of a form."""

    type: Literal["multipart"]
    fields: Annotated[list[PartConfig], Field(max_length=MAX_FIELDS)] = []
    files: Annotated[list[FileConfig], Field(max_length=MAX_FILES)] = []
    more: FurtherFields = ""

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        if not self.fields and not self.files and not self.more:
            raise ValueError("The body needs a field or a file.")
        return self


class TextBodyConfig(Strict):
    """A body of text."""

    type: Literal["text"]
    text: PlainText
    media_type: MediaType = "text/plain"


class BytesBodyConfig(Strict):
    """A body of bytes. `content` is the placeholder of a value in Base64."""

    type: Literal["bytes"]
    content: PlainText
    media_type: MediaType = "application/octet-stream"

    @field_validator("content")
    @classmethod
    def _is_one_value(cls, content: str) -> str:
        return _one_value(content, "file")


Body = Annotated[
    JsonBodyConfig | FormBodyConfig | MultipartBodyConfig | TextBodyConfig | BytesBodyConfig,
    Field(discriminator="type"),
]


class QuestionConfig(Strict):
    """A question that is asked before the request.

    `when` has conditions, all of which must hold: the path of a value, and the values of which it
    must have one. Without any it is always asked. `requested_schema` is a form's.
    """

    key: Name
    message: PlainText
    requested_schema: dict[str, Any]
    when: Annotated[dict[str, list[Any]], Field(max_length=8)] = {}

    @model_validator(mode="after")
    def _conditions(self) -> Self:
        for path in self.when:
            condition(path)
        return self


def condition(path: str) -> Placeholder:
    """Read the path of a condition. Raises ValueError."""
    try:
        only = TextTemplate(f"{{{path}}}").only
    except TemplateError:
        only = None
    if only is None or only.root == SECRETS:
        raise ValueError(f"{path!r} is no path such as arguments.state or answers.reason.comment.")
    return only


class RequestConfig(Strict):
    """The request. Placeholders in the path of the URL are encoded as one segment each, as `path` says
    for some of them."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    url: Url
    path: Annotated[list[PathConfig], Field(max_length=MAX_FIELDS)] = []
    query: Annotated[list[FieldConfig], Field(max_length=MAX_FIELDS)] = []
    headers: Annotated[list[HeaderConfig], Field(max_length=MAX_FIELDS)] = []
    body: Body | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=MAX_SECONDS)] = 30.0
    retries: Annotated[int, Field(ge=0, le=3)] = 2
    repeatable: bool | None = None
    redirects: Annotated[int, Field(ge=0, le=5)] = 0

    @model_validator(mode="after")
    def _fits_method(self) -> Self:
        if self.body is not None and self.method in SAFE:
            raise ValueError(f"A {self.method} request has no body.")
        named = {header.name.lower() for header in self.headers}
        if isinstance(self.body, MultipartBodyConfig) and "content-type" in named:
            raise ValueError("The platform sets Content-Type itself for a form with files.")
        return self

    @property
    def is_safe(self) -> bool:
        """Whether the method changes nothing (RFC 9110, section 9.2.1)."""
        return self.method in SAFE

    @property
    def may_repeat(self) -> bool:
        """Whether an attempt without a response may be repeated."""
        return self.method in IDEMPOTENT if self.repeatable is None else self.repeatable


class ResponseConfig(Strict):
    """How the response becomes the result.

    `select` is a JMESPath expression over a JSON body; without one the whole body is the result.
    `content` is what it becomes: by the media type ("auto"), text, structured JSON, an image, or a
    link to a resource. Statuses in `errors` are errors, such as "404" and "4xx".
    """

    select: Expression = ""
    content: Literal["auto", "text", "json", "image", "resource_link"] = "auto"
    errors: Annotated[list[Status], Field(max_length=64)] = ["4xx", "5xx"]
    most_bytes: Annotated[int, Field(gt=0, le=8 * 1024 * 1024)] = 1024 * 1024

    def is_error(self, status: int) -> bool:
        return f"{status}" in self.errors or f"{status // 100}xx" in self.errors


class HttpToolConfig(Strict):
    """An HTTP tool. `read_only`, `destructive` and `idempotent` are hints; None: by the method.

    `source` is the operation of an OpenAPI document that it was imported from.
    """

    source: Annotated[str, Field(max_length=2048)] = ""
    input_schema: dict[str, Any] = {"type": "object", "properties": {}}
    output_schema: dict[str, Any] | None = None
    questions: Annotated[list[QuestionConfig], Field(max_length=MAX_QUESTIONS)] = []
    request: RequestConfig
    response: ResponseConfig = ResponseConfig()
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    tasks: TaskSupport = TaskSupport.NEVER

    @property
    def annotations(self) -> Mapping[str, bool]:
        """The hints as `ToolAnnotations` has them."""
        method = self.request.method
        hints = {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
        }
        by_method = {
            "readOnlyHint": method in SAFE,
            "destructiveHint": method in ("PUT", "PATCH", "DELETE"),
            "idempotentHint": method in IDEMPOTENT,
        }
        resolved_hints = {
            name: by_method[name] if hint is None else hint for name, hint in hints.items()
        }
        return {**resolved_hints, "openWorldHint": True}
