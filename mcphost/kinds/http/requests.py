"""The request of an HTTP tool, with the values of a call."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import orjson

from mcphost.egress.messages import (
    IDEMPOTENCY_KEY,
    Content,
    FormBody,
    JsonBody,
    OutgoingRequest,
)
from mcphost.egress.multipart import MultipartBody
from mcphost.egress.secret_values import Text
from mcphost.kinds.http.configs import (
    FieldConfig,
    FormBodyConfig,
    JsonBodyConfig,
    MultipartBodyConfig,
    RequestConfig,
    TextBodyConfig,
)
from mcphost.kinds.http.parts import FileTemplates
from mcphost.kinds.http.templates import (
    SECRETS,
    JsonTemplate,
    Missing,
    Placeholder,
    TextTemplate,
    Values,
    as_text,
)
from mcphost.sdk import ToolError

_IN_COOKIES: Final = "!#$&'()*+-./:<=>?@[]^_`{|}~"
"""The characters of a cookie's value (RFC 6265, section 4.1.1) that are not percent-encoded in it, beside
letters and digits. A percent sign is encoded, so that the service gets back what was written."""
_SEPARATOR: Final = re.compile(r"[\s.]")
_BETWEEN: Final = {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|", "deepObject": ","}


BodyConfig = JsonBodyConfig | FormBodyConfig | MultipartBodyConfig | TextBodyConfig


class RequestPart(NamedTuple):
    """A part of a request: its path in the configuration, and where the request has it."""

    field: str
    place: str
    placeholders: Sequence[Placeholder]


class RequestTemplate:
    """The templates of a request, parsed once."""

    def __init__(self, config: RequestConfig) -> None:
        self._config = config
        self._url = TextTemplate(config.url)
        body = _BodyTemplate(config.body)
        self._query = [(each, TextTemplate(each.value)) for each in config.query]
        self._headers = [(each.name, TextTemplate(each.value)) for each in config.headers]
        self._body = body
        # Some frameworks read query and form into one map, so a name of either is taken in both.
        self._names = FieldNames([*(each.name for each in config.query), *body.names])

    @property
    def parts(self) -> Sequence[RequestPart]:
        """The parts that may have placeholders."""
        return (
            RequestPart("url", "", self._url.placeholders),
            *_parts("query", "query", self._query),
            *_parts("headers", "header", self._headers),
            *self._body.parts,
        )

    def fill(self, values: Values, idempotency_key: str) -> OutgoingRequest:
        """Return the request. Raises ToolError for a value that the URL's path must not have, and for a
        member of an object that would be sent under the name of another field."""
        headers = [pair for each in self._headers for pair in _header(*each, values)]
        given = {name.lower() for name, _ in headers}
        media_type = self._body.media_type
        if media_type and "content-type" not in given:
            headers.append(("Content-Type", media_type))
        if not self._config.is_safe:
            headers.append((IDEMPOTENCY_KEY, idempotency_key))
        return OutgoingRequest(
            url=self._path(values),
            method=self._config.method,
            headers=tuple(headers),
            query=tuple(_fields(self._query, values, self._names)),
            content=self._body.fill(values, self._names),
            repeatable=self._config.may_repeat,
        )

    def json_body(self, values: Values) -> Any:
        """Return the JSON body for a request with answers; None if the body is not JSON."""
        content = self._body.fill(values, self._names)
        return content.value if isinstance(content, JsonBody) else None

    def _path(self, values: Values) -> str:
        missing = next(
            (p for p in self._url.placeholders if isinstance(p.value(values), Missing)), 0
        )
        if missing:
            raise ToolError(f"{missing} is missing: the address needs it")
        filled = self._url.fill(values, _segment)
        assert isinstance(filled, str)
        return filled


class _BodyTemplate:
    def __init__(self, config: BodyConfig | None) -> None:
        self._config = config
        self._json = JsonTemplate(config.value) if isinstance(config, JsonBodyConfig) else None
        self._is_multipart = isinstance(config, MultipartBodyConfig)
        self._files = FileTemplates(config.files if isinstance(config, MultipartBodyConfig) else ())
        fields: Sequence[FieldConfig] = ()
        if isinstance(config, FormBodyConfig | MultipartBodyConfig):
            fields = config.fields
        self._fields = [(each, TextTemplate(each.value)) for each in fields]
        self._text = TextTemplate(config.text) if isinstance(config, TextBodyConfig) else None

    @property
    def parts(self) -> Iterator[RequestPart]:
        if self._json is not None:
            yield RequestPart("body.value", "body", self._json.placeholders)
        yield from _parts("body.fields", "body", self._fields)
        for path, placeholders in self._files.placeholders:
            yield RequestPart(f"body.files.{path}", "body", placeholders)
        if self._text is not None:
            yield RequestPart("body.text", "body", self._text.placeholders)

    @property
    def media_type(self) -> str:
        return self._config.media_type if isinstance(self._config, TextBodyConfig) else ""

    @property
    def names(self) -> Iterator[str]:
        """The names of the fields and files."""
        yield from (field.name for field, _ in self._fields)
        yield from self._files.names

    def fill(self, values: Values, names: "FieldNames") -> Content:
        if self._json is not None:
            filled = self._json.fill(values)
            return None if isinstance(filled, Missing) else JsonBody(filled)
        if self._text is not None:
            text = self._text.fill(values, as_text)
            return None if isinstance(text, Missing) else str(text).encode()
        fields = tuple(_fields(self._fields, values, names))
        if self._is_multipart:
            return MultipartBody(fields, self._files.fill(values))
        return FormBody(fields) if self._fields else None


class FieldNames:
    """The names of all fields of a request. No caller may choose one of them as that of a member."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names: dict[tuple[str, ...], set[str]] = {}
        self._begun: dict[tuple[str, ...], set[str]] = {}
        for name in names:
            steps = _steps(name)
            self._names.setdefault(steps, set()).add(name)
            for count in range(1, len(steps) + 1):
                self._begun.setdefault(steps[:count], set()).add(name)
        self._longest = max(map(len, self._names), default=0)

    def of_member(self, field: FieldConfig, member: str) -> str:
        """Return the name that a member of the field's object is sent under. Raises ToolError."""
        sent = f"{field.name}[{member}]" if field.style == "deepObject" else member
        steps = _steps(sent)
        taken = set(self._begun.get(steps, ()))
        for count in range(1, min(len(steps), self._longest) + 1):
            taken |= self._names.get(steps[:count], set())
        taken.discard(field.name)  # which is not sent beside its members
        if taken:
            raise ToolError(
                f"The request has the field {min(taken)!r} itself: leave out {member[:100]!r}"
            )
        return sent


def _steps(name: str) -> tuple[str, ...]:
    """Return what services may read in the name of a field: `a[b]` is a part of `a`, many know one case,
    and PHP ends a name at NUL, and reads dots and spaces as underscores."""
    plain = name.partition("\0")[0].strip().casefold().replace("]", "")
    return tuple(_SEPARATOR.sub("_", step) for step in plain.split("["))


def _parts(
    field: str, place: str, templates: Sequence[tuple[Any, TextTemplate]]
) -> Iterator[RequestPart]:
    for number, (_, template) in enumerate(templates):
        yield RequestPart(f"{field}.{number}.value", place, template.placeholders)


def _segment(value: Any) -> str:
    """Write a value as one segment of a path: a list as OpenAPI's style `simple`."""
    if isinstance(value, list) and value:
        return ",".join(map(_segment, value))
    text = "" if isinstance(value, list) else quote(as_text(value), safe="")
    if text in ("", ".", ".."):
        raise ToolError("A value in the address must not be empty, '.' or '..'")
    return text


def _cookie(value: Any) -> str:
    """Write a value as a cookie's: it must not end the cookie and begin another one."""
    return quote(as_text(value), safe=_IN_COOKIES)


def _present(
    name: str, template: TextTemplate, values: Values, written: Callable[[Any], str] = as_text
) -> Iterator[tuple[str, Text]]:
    """Yield a name and its text, unless a value is missing."""
    filled = template.fill(values, written)
    if not isinstance(filled, Missing):
        yield name, filled


def _header(name: str, template: TextTemplate, values: Values) -> Iterator[tuple[str, Text]]:
    return _present(name, template, values, _cookie if name.lower() == "cookie" else as_text)


def _fields(
    templates: Iterable[tuple[FieldConfig, TextTemplate]], values: Values, names: FieldNames
) -> Iterator[tuple[str, Text]]:
    for field, template in templates:
        only = template.only
        if only is None or only.root == SECRETS:
            yield from _present(field.name, template, values)
        else:
            value = only.value(values)
            if not isinstance(value, Missing):
                yield from _styled(field, value, names)


def _styled(field: FieldConfig, value: Any, names: FieldNames) -> Iterator[tuple[str, Text]]:
    """Write a value by its style (OpenAPI 3.1, "Style Values")."""
    if field.style == "json":
        yield field.name, orjson.dumps(value).decode()
    elif isinstance(value, Mapping):
        members = {name: each for name, each in value.items() if each is not None}
        if field.style == "deepObject" or field.explode:
            yield from ((names.of_member(field, name), as_text(v)) for name, v in members.items())
        else:
            flat = [text for name, each in members.items() for text in (name, as_text(each))]
            yield field.name, _BETWEEN[field.style].join(flat)
    elif isinstance(value, list):
        texts = [as_text(each) for each in value]
        if field.explode:
            yield from ((field.name, text) for text in texts)
        elif texts:
            yield field.name, _BETWEEN[field.style].join(texts)
    else:
        yield field.name, as_text(value)
