"""How a service's response becomes a tool's result."""

import codecs
import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import orjson
from pydantic import AnyUrl

from mcphost.kinds.http.configs import ResponseConfig
from mcphost.protocol.exact_numbers import STRING, changed_number
from mcphost.protocol.json_values import parse_json
from mcphost.protocol.nesting import is_deeper
from mcphost.sdk.content import (
    NOTHING,
    Audio,
    BlobResource,
    Content,
    EmbeddedResource,
    Image,
    ResourceLink,
    Result,
    Text,
)

ASKS: Final = "application/vnd.mcphost.input-required+json"
"""The media type of a response that asks questions."""
ANSWERS: Final = "application/vnd.mcphost.input-responses+json"
"""The media type of a request with the answers."""
MAX_SHOWN: Final = 2_000
"""How many characters of an error's body the caller is shown."""
MAX_VALUES: Final = 250_000
"""Values in a body of JSON, because a value of one byte costs as much as a large one."""
MAX_DEPTH: Final = 100
"""Levels of objects and lists in a body of JSON: what records and checks a result is recursive."""
MAX_LINKS: Final = 1_000
MAX_CONTENT_TYPE: Final = 512
_CHARSETS: Final = re.compile(
    r"(utf[-_]?(8|16|32)([-_]?[bl]e)?|(us-)?ascii|latin-?1|iso[-_]?8859-([1-9]|1[013-6])"
    r"|windows-125[0-8]|koi8-[ru]|shift[-_]jis|euc-(jp|kr)|iso-2022-jp|big5|gbk?|gb2312|gb18030)"
)
"""Encodings that services use. Python has others, which are no text or take very long, and remembers
each unknown name."""
_MEDIA_TYPE: Final = re.compile(r"\s*([!#$&^_.+a-z0-9-]{1,127}/[!#$&^_.+a-z0-9-]{1,127})\s*(?:;|$)")
_CHARSET: Final = re.compile(r";\s*charset=\"?([a-z0-9_-]{1,40})")
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte-order marks, which count more than the header (https://encoding.spec.whatwg.org, "decode")."""
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Bytes that no text has; it may have the escape character, of colours."""


class BadReplyError(Exception):
    """The response is not what the configuration or its media type promises. The message is for the
    caller, and quotes no value of the response: only names of fields."""


class Response(NamedTuple):
    """A response: its status, its media type without parameters, and its body."""

    status: int
    media_type: str
    charset: str
    body: bytes
    url: str

    @property
    def is_json(self) -> bool:
        return self.media_type == "application/json" or self.media_type.endswith("+json")

    @property
    def text(self) -> str:
        try:
            text = self.body.decode(self._encoding, "replace")
        except LookupError:
            text = self.body.decode("utf-8", "replace")
        return text.removeprefix("\ufeff")

    @property
    def _encoding(self) -> str:
        """The encoding that the body begins with, or that the header names."""
        marked = next((name for mark, name in _MARKS if self.body.startswith(mark)), "")
        return marked or (self.charset if _CHARSETS.fullmatch(self.charset) else "utf-8")

    @property
    def json_text(self) -> bytes:
        """The body as JSON has to be encoded (RFC 8259, section 8.1)."""
        if self._encoding in ("utf-8", "utf8"):
            return self.body.removeprefix(codecs.BOM_UTF8)
        return self.text.encode()

    @property
    def is_text(self) -> bool:
        """Whether the body is text: by its type, or because it can be read as text, whatever the type. Many
        clients do not show bytes to the model."""
        kind, _, subtype = self.media_type.partition("/")
        if kind == "text" or self.is_json or subtype.endswith("+xml"):
            return True
        if kind in ("image", "audio", "video", "font") or subtype == "pdf":
            return False
        try:
            text = self.body.decode(self._encoding)
            return not _CONTROL.search(text.encode()) and bool(text)
        except (UnicodeDecodeError, LookupError):
            return False

    @property
    def json(self) -> Any:
        """The body as JSON. Raises BadReplyError."""
        body = self.json_text
        if has_more_values(body, MAX_VALUES):
            raise BadReplyError(f"The service's response has more than {MAX_VALUES} values of JSON")
        try:
            value = parse_json(body)
        except orjson.JSONDecodeError as error:
            raise BadReplyError(
                f"The service's response is not the JSON that it should be: {error.msg}"
            ) from None
        if changed_number(body):
            raise BadReplyError(
                "The service's response has an integer of more than 64 bits. It can be passed on as text only"
            )
        if is_deeper(value, MAX_DEPTH):
            raise BadReplyError(
                f"The service's response is nested deeper than {MAX_DEPTH} levels of JSON"
            )
        return value


def has_more_values(body: bytes, limit: int) -> bool:
    """Return whether JSON has more than so many values and names, without parsing it."""

    def bound(text: bytes) -> int:
        return 1 + sum(map(text.count, (b",", b":", b"[", b"{")))

    return bound(body) > limit and bound(STRING.sub(b"", body)) > limit


def media_type_of(header: str) -> tuple[str, str]:
    """Return the media type and the charset of a `Content-Type` header, in lower case."""
    shown = header[:MAX_CONTENT_TYPE].lower()
    media_type, charset = _MEDIA_TYPE.match(shown), _CHARSET.search(shown)
    if media_type is None:
        return "application/octet-stream" if not header.strip() else "text/plain", "utf-8"
    return media_type[1], charset[1] if charset else "utf-8"


def error_of(response: Response) -> Result:
    """Return the result for a status that is an error, with the beginning of what it says."""
    shown = response.text.strip() if response.is_text else ""
    text = f"The service answered with status {response.status}"
    if shown:
        cut = "…" if len(shown) > MAX_SHOWN else ""
        text = f"{text}:\n{shown[:MAX_SHOWN]}{cut}"
    return Result([Text(type="text", text=text)], is_error=True)


def result_of(response: Response, config: ResponseConfig, selected: Any = NOTHING) -> Any:
    """Return the tool's result. `selected` is what the expression selected, if there is one.

    Raises BadReplyError for a body that cannot become it.
    """
    whole = selected is NOTHING
    match config.content:
        case "auto" if whole:
            return _by_media_type(response)
        case "auto" | "json":
            return Result(structured=response.json if whole else selected)
        case "text":
            return Result([_text(response.text if whole else _as_text(selected))])
        case "image":
            return Result([_image(response) if whole else _selected_image(selected)])
        case _:
            return Result(_links(response.json if whole else selected))


def _by_media_type(response: Response) -> Result:
    kind = response.media_type.partition("/")[0]
    if not response.body:
        return Result([_text(f"The service answered with status {response.status}")])
    if response.is_json and not changed_number(response.json_text):
        return Result(structured=response.json)
    if response.is_text:
        return Result([_text(response.text)])
    data = b64encode(response.body).decode()
    if kind == "image":
        return Result([Image(type="image", data=data, mime_type=response.media_type)])
    if kind == "audio":
        return Result([Audio(type="audio", data=data, mime_type=response.media_type)])
    blob = BlobResource(uri=response.url, mime_type=response.media_type, blob=data)
    return Result([EmbeddedResource(type="resource", resource=blob)])


def _text(text: str) -> Text:
    return Text(type="text", text=text)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def _image(response: Response) -> Image:
    if not response.media_type.startswith("image/"):
        raise BadReplyError("The service's response is not the image that it should be")
    data = b64encode(response.body).decode()
    return Image(type="image", data=data, mime_type=response.media_type)


_SIGNATURES: Final[Mapping[bytes, str]] = {
    rb"\x89PNG": "image/png",
    rb"\xff\xd8\xff": "image/jpeg",
    rb"GIF8": "image/gif",
    rb"RIFF....WEBP": "image/webp",
}


def _selected_image(selected: Any) -> Image:
    try:
        data = b64decode(selected, validate=True) if isinstance(selected, str) else b""
    except (Error, ValueError):
        data = b""
    matches = (kind for start, kind in _SIGNATURES.items() if re.match(start, data, re.DOTALL))
    mime_type = next(matches, None)
    if mime_type is None:
        raise BadReplyError("What the expression selects is not an image in Base64")
    return Image(type="image", data=selected, mime_type=mime_type)


def _links(selected: Any) -> Sequence[Content]:
    links = selected if isinstance(selected, list) else [selected]
    if len(links) > MAX_LINKS:
        raise BadReplyError(f"The service's response has more than {MAX_LINKS} links")
    return [_link(link) for link in links]


def _link(link: Any) -> ResourceLink:
    fields = {"uri": link} if isinstance(link, str) else link
    if isinstance(fields, Mapping) and "uri" in fields:
        optional = {key: fields[key] for key in ("title", "description") if key in fields}
        with suppress(ValueError):  # as those of pydantic are
            uri = str(AnyUrl(str(fields["uri"])))
            name, mime_type = str(fields.get("name") or uri), fields.get("mimeType")
            return ResourceLink(
                type="resource_link", uri=uri, name=name, mime_type=mime_type, **optional
            )
    raise BadReplyError("A link to a resource is an address, or an object with uri and name")
