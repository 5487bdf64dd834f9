"""The request of an HTTP tool, with the values of a call."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
    JSON_TYPE,
    BytesBodyConfig,
    FieldConfig,
    FormBodyConfig,
    JsonBodyConfig,
    MultipartBodyConfig,
    PathConfig,
    RequestConfig,
    TextBodyConfig,
)
from mcphost.kinds.http.parts import FileTemplates, decoded
from mcphost.kinds.http.styles import FieldNames, FieldWriter, header_text, is_structured, path_text
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

BodyConfig = (
    JsonBodyConfig | FormBodyConfig | MultipartBodyConfig | TextBodyConfig | BytesBodyConfig
)


class RequestPart(NamedTuple):
    """A part of a request: its path in the configuration, and where the request has it."""

    field: str
    secret_place: str
    placeholders: Sequence[Placeholder]


class RequestTemplate:
    """The templates of a request, parsed once."""

    def __init__(self, config: RequestConfig) -> None:
        self._config = config
        self._url = TextTemplate(config.url)
        body = _BodyTemplate(config.body)
        self._query = [(field, TextTemplate(field.value)) for field in config.query]
        self._headers = [(header, TextTemplate(header.value)) for header in config.headers]
        self._path_styles = {TextTemplate(field.value).only: field for field in config.path}
        self._body = body
        # Some frameworks read query and form into one map, so a name of either is taken in both.
        self._names = FieldNames([*(field.name for field in config.query), *body.names])

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
        headers = [
            pair
            for header, template in self._headers
            if header.style == "json" or not is_without_values(template, values)
            for pair in _present(header.name, template, values, header_text(header))
        ]
        header_names = {name.lower() for name, _ in headers}
        content, media_type = self._body.fill(values, self._names), self._body.media_type
        if media_type and content is not None and "content-type" not in header_names:
            headers.append(("Content-Type", media_type))
        if not self._config.is_safe:
            headers.append((IDEMPOTENCY_KEY, idempotency_key))
        query = FieldWriter(self._names, is_encoded=True)
        return OutgoingRequest(
            url=self._path(values),
            method=self._config.method,
            headers=tuple(headers),
            query=tuple(_fields(self._query, values, query)),
            content=content,
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
        return "".join(
            piece if isinstance(piece, str) else path_text(self._style(piece), piece.value(values))
            for piece in self._url.pieces
        )

    def _style(self, placeholder: Placeholder) -> PathConfig:
        plain = PathConfig.model_construct(name=placeholder.steps[-1], value="")
        return self._path_styles.get(placeholder, plain)


class _BodyTemplate:
    def __init__(self, config: BodyConfig | None) -> None:
        self._config = config
        self._json = JsonTemplate(config.value) if isinstance(config, JsonBodyConfig) else None
        # The argument that is the whole body, which is null if the call has null for it.
        written = config.value if isinstance(config, JsonBodyConfig) else None
        whole = _only(written) if isinstance(written, str) else None
        self._null = whole if whole and len(whole.steps) == 1 else None
        self._is_multipart = isinstance(config, MultipartBodyConfig)
        self._files = FileTemplates(config.files if isinstance(config, MultipartBodyConfig) else ())
        fields: Sequence[FieldConfig] = ()
        if isinstance(config, FormBodyConfig | MultipartBodyConfig):
            fields = config.fields
        self._fields = [(field, TextTemplate(field.value)) for field in fields]
        self._text = TextTemplate(config.text) if isinstance(config, TextBodyConfig) else None
        more = config.more if isinstance(config, FormBodyConfig | MultipartBodyConfig) else ""
        self._more = _only(more)
        self._bytes = _only(config.content) if isinstance(config, BytesBodyConfig) else None
        self._media_types = {
            field.name: field.media_type
            for field in (config.fields if isinstance(config, MultipartBodyConfig) else ())
            if field.media_type
        }

    @property
    def parts(self) -> Iterator[RequestPart]:
        if self._json is not None:
            yield RequestPart("body.value", "body", self._json.placeholders)
        yield from _parts("body.fields", "body", self._fields)
        for path, placeholders in self._files.placeholders:
            yield RequestPart(f"body.files.{path}", "body", placeholders)
        if self._text is not None:
            yield RequestPart("body.text", "body", self._text.placeholders)
        if self._more is not None:
            yield RequestPart("body.more", "body", [self._more])
        if self._bytes is not None:
            yield RequestPart("body.content", "body", [self._bytes])

    @property
    def media_type(self) -> str:
        """The Content-Type that the configuration gives; empty where the body alone decides."""
        if isinstance(self._config, JsonBodyConfig | TextBodyConfig | BytesBodyConfig):
            return self._config.media_type
        return ""

    @property
    def names(self) -> Iterator[str]:
        """The names of the fields and files."""
        yield from (field.name for field, _ in self._fields)
        yield from self._files.names

    def fill(self, values: Values, names: "FieldNames") -> Content:
        if self._json is not None:
            filled = self._json.fill(values)
            if not isinstance(filled, Missing):
                return JsonBody(filled)
            null = self._null
            return JsonBody(None) if null and null.steps[0] in values.get(null.root, {}) else None
        if self._text is not None:
            text = self._text.fill(values, as_text)
            return None if isinstance(text, Missing) else str(text).encode()
        if self._bytes is not None:
            value = self._bytes.value(values)
            return None if isinstance(value, Missing) else decoded(self._bytes, value)
        if self._is_missing(values):
            return None
        writer = FieldWriter(names, is_encoded=not self._is_multipart)
        fields = (*_fields(self._fields, values, writer), *self._further(values, writer))
        if self._is_multipart:
            types = {**self._media_types, **dict.fromkeys(self._structured(values), JSON_TYPE)}
            return MultipartBody(fields, self._files.fill(values), types)
        return FormBody(fields) if isinstance(self._config, FormBodyConfig) else None

    def _is_missing(self, values: Values) -> bool:
        """Whether a form is made of nothing but members of one argument that the call does not have."""
        own = [self._more] if self._more else []
        own += [p for part in self.parts for p in part.placeholders if len(p.steps) > 1]
        arguments = {Placeholder(p.root, p.steps[:1]) for p in own}
        used = {p for part in self.parts for p in part.placeholders}
        is_one = len(arguments) == 1 and used == set(own)
        return is_one and isinstance(arguments.pop().value(values), Missing)

    def _structured(self, values: Values) -> Iterator[str]:
        """Yield the names of parts that are JSON because their value is an object."""
        for field, template in self._fields:
            only = template.only
            is_typed = field.name in self._media_types
            if (
                field.style == "part"
                and not is_typed
                and only
                and is_structured(only.value(values))
            ):
                yield field.name

    def _further(self, values: Values, writer: FieldWriter) -> Iterator[tuple[str, Text]]:
        """Yield the members of the object of `more` that have no field. Raises ToolError."""
        members = self._more.value(values) if self._more else None
        if isinstance(members, Mapping):
            paths = [template.only for _, template in self._fields]
            own = {path.steps[-1] for path in (*paths, *self._files.paths) if path is not None}
            yield from writer.further({n: v for n, v in members.items() if n not in own})


def _only(text: str) -> Placeholder | None:
    return TextTemplate(text).only


def _parts(
    field: str, location: str, templates: Sequence[tuple[Any, TextTemplate]]
) -> Iterator[RequestPart]:
    for number, (_, template) in enumerate(templates):
        yield RequestPart(f"{field}.{number}.value", location, template.placeholders)


def is_without_values(template: TextTemplate, values: Values) -> bool:
    """Whether a template is a list or an object with nothing in it, which is as undefined as a missing
    value (RFC 6570, section 2.3)."""
    only = template.only
    value = only.value(values) if only is not None and only.root != SECRETS else None
    if not isinstance(value, Mapping | list):
        return False
    return all(part is None for part in (value.values() if isinstance(value, Mapping) else value))


def _present(
    name: str, template: TextTemplate, values: Values, written: Callable[[Any], str] = as_text
) -> Iterator[tuple[str, Text]]:
    """Yield a name and its text, unless a value is missing."""
    filled = template.fill(values, written)
    if not isinstance(filled, Missing):
        yield name, filled


def _fields(
    templates: Iterable[tuple[FieldConfig, TextTemplate]], values: Values, writer: FieldWriter
) -> Iterator[tuple[str, Text]]:
    for field, template in templates:
        only = template.only
        if only is None or only.root == SECRETS:
            yield from _present(field.name, template, values)
        else:
            value = only.value(values)
            if not isinstance(value, Missing):
                yield from writer.pairs(field, value)
