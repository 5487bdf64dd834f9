"""The parameters of an operation as arguments of its tool, and as parts of its request."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mcphost.kinds.http.configs import MAX_FIELDS, OWN_HEADERS, is_json_type
from mcphost.kinds.http.openapi_keywords import plain_text
from mcphost.kinds.http.openapi_references import SHAPE, References, UnsupportedError, object_of
from mcphost.kinds.http.openapi_schemas import Schemas
from mcphost.protocol.clients import fits_argument, fitting_argument

BODY: Final = "body"
"""The argument with the request's body."""
IGNORED: Final = frozenset(("header", name) for name in ("accept", "content-type", "authorization"))
"""A parameter of this name has no effect (OpenAPI 3.1, "Parameter Object")."""
MAX_DESCRIPTION: Final = 1_000
_STYLES: Final = {
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "path": ("simple", "label", "matrix"),
    "header": ("simple",),
    "cookie": ("form", "cookie"),
}
"""The styles of each location, the default first."""
_PLAIN_STEP: Final = re.compile(r"[A-Za-z0-9_$@-]+")
_STEP: Final = re.compile(r'[^"{}]+')
TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")


class OperationArgument(NamedTuple):
    """An argument of the tool, and the parameter `wire` of the request that it becomes. Style `json`
    stands for `content` of JSON."""

    name: str
    wire: str
    location: str
    schema: Any
    required: bool
    style: str = "json"
    explode: bool = False
    allow_reserved: bool = False

    @property
    def placeholder(self) -> str:
        return placeholder(self.name)

    @property
    def query_field(self) -> dict[str, Any]:
        """The argument as a parameter of the query, in the format of the configuration."""
        field = {"name": self.wire, "value": self.placeholder}
        reserved = {"allow_reserved": True} if self.allow_reserved else {}
        return {**field, "style": self.style, "explode": self.explode, **reserved}

    @property
    def header(self) -> dict[str, Any]:
        """The argument as a header, or as one of the cookies."""
        style = {"style": "json"} if self.style == "json" else {}
        if self.location == "cookie":
            return {"name": "Cookie", "value": f"{self.wire}={self.placeholder}", **style}
        explode = {"explode": True} if self.explode else {}
        return {"name": self.wire, "value": self.placeholder, **style, **explode}

    @property
    def path_style(self) -> dict[str, Any] | None:
        """How it is written into the path; None for the default of values and lists."""
        if self.style == "simple" and not self.explode and not self.allow_reserved:
            return None
        style = {"style": self.style, "explode": self.explode}
        reserved = {"allow_reserved": True} if self.allow_reserved else {}
        return {"name": self.wire, "value": self.placeholder, **style, **reserved}


class _Parameter(NamedTuple):
    """A parameter whose location and style can be written."""

    wire: str
    location: str
    written: Mapping[str, Any]
    schema: Any
    style: str

    @property
    def is_required(self) -> bool:
        return self.location == "path" or self.written.get("required") is True


def placeholder(*steps: str) -> str:
    """Return the placeholder of an argument, or of a part of it. Raises UnsupportedError for a name that
    would end it: what follows would be read as another placeholder, such as that of a secret."""
    unfit = next((step for step in steps if not _STEP.fullmatch(step)), None)
    if unfit is not None:
        raise UnsupportedError(
            f"the name {unfit[:100]!r} is empty, or has a brace or a quotation mark"
        )
    quoted = (step if _PLAIN_STEP.fullmatch(step) else f'"{step}"' for step in steps)
    return f"{{{'.'.join(('arguments', *quoted))}}}"


def cut(text: str, longest: int) -> str:
    """Return a text of at most so many characters, cut at the end of a word."""
    if len(text) <= longest:
        return text
    whole = text[: longest - 2]
    begun = whole.rpartition(" ")[0]
    return f"{(begun if len(begun) > longest // 2 else whole).rstrip()} …"


def unused_name(name: str, names: set[str]) -> str:
    """Return the name with a number if it is taken, and take it."""
    number, unused = 1, name
    while unused in names:
        number += 1
        unused = f"{name[:60]}_{number}"
    names.add(unused)
    return unused


def arguments_of(
    listed: Sequence[Any],
    references: References,
    schemas: Schemas,
    fixed: Collection[tuple[str, str]],
    path: str,
    notes: list[str],
) -> list[OperationArgument]:
    """Return the arguments for lists of parameters, of which later ones replace earlier ones.

    `fixed` are locations and names of parameters that are no arguments. What is left out is added to
    `notes`. Raises UnsupportedError.
    """
    parameters = []
    for (wire, location), written in _merged(listed, references).items():
        if (location, wire.lower()) in fixed:
            continue
        if location == "path" and f"{{{wire}}}" not in path:
            notes.append(f"The path parameter {wire!r} is left out: the path does not have it.")
            continue
        try:
            parameters.append(_parameter(wire, location, written, references))
        except UnsupportedError as error:
            if written.get("required") is True and not _is_ours(wire, location):
                raise
            notes.append(f"The {location} parameter {wire!r} is left out: {error}.")
    kept = _at_most(parameters, notes)
    names = _names([(parameter.location, parameter.wire) for parameter in kept])
    return [
        _argument(parameter, name, schemas, keeps_reserved(parameter, references, notes), notes)
        for parameter, name in zip(kept, names, strict=True)
    ]


def _merged(
    listed: Sequence[Any], references: References
) -> Mapping[tuple[str, str], Mapping[str, Any]]:
    parameters: dict[tuple[str, str], Mapping[str, Any]] = {}
    for several in map(references.follow, listed):
        if several is not None and not isinstance(several, list):
            raise UnsupportedError(SHAPE)
        for node in several or ():
            parameter = references.follow(node)
            if not isinstance(parameter, Mapping) or not isinstance(parameter.get("name"), str):
                raise UnsupportedError("a parameter has no name")
            parameters[parameter["name"], str(parameter.get("in"))] = parameter
    return parameters


def _is_ours(wire: str, location: str) -> bool:
    return location == "header" and wire.lower() in OWN_HEADERS


def _parameter(
    wire: str, location: str, written: Mapping[str, Any], references: References
) -> _Parameter:
    """Raises UnsupportedError for one that cannot be written as the document says."""
    if location not in _STYLES:
        raise UnsupportedError(f"the parameter {wire!r} is in {location!r}")
    if _is_ours(wire, location):
        raise UnsupportedError("the platform sets this header itself")
    if location in ("header", "cookie") and not TOKEN.fullmatch(wire):
        raise UnsupportedError(f"{wire!r} is no name of a {location}")
    content = written.get("content")
    style = written.get("style") or _STYLES[location][0]
    schema = written.get("schema", True)
    if content is not None:
        media_type, media = _content(wire, references.follow_object(content), references)
        schema = media.get("schema", True)
        style = "json" if is_json_type(media_type) else _STYLES[location][0]
        if style != "json" and references.has_parts(schema):
            raise UnsupportedError(f"the parameter {wire!r} is {media_type}")
    elif style not in _STYLES[location]:
        raise UnsupportedError(f"the style {style!r} of {wire!r} is not one of a {location}")
    if style not in ("json", "deepObject") and references.is_nested(schema):
        raise UnsupportedError(
            f"the {location} parameter {wire!r} has lists or objects inside a list or an object, "
            f"which style {style} does not define"
        )
    if location == "cookie" and style != "json" and references.has_parts(schema):
        raise UnsupportedError(f"the cookie {wire!r} is a list or an object")
    return _Parameter(wire, location, written, schema, style)


def _content(
    wire: str, content: Mapping[str, Any], references: References
) -> tuple[str, Mapping[str, Any]]:
    media_types = {name.partition(";")[0].strip().lower(): media for name, media in content.items()}
    for name in sorted(media_types, key=lambda name: not is_json_type(name)):
        if is_json_type(name) or name.startswith("text/"):
            return name, references.follow_object(media_types[name])
    raise UnsupportedError(f"the parameter {wire!r} is {', '.join(media_types) or 'of no type'}")


def _at_most(parameters: Sequence[_Parameter], notes: list[str]) -> Sequence[_Parameter]:
    """Leave out optional parameters beyond the limit."""
    excess = len(parameters) - MAX_FIELDS
    if excess <= 0:
        return parameters
    optional = [parameter for parameter in parameters if not parameter.is_required]
    if len(optional) < excess:
        raise UnsupportedError(f"it has more than {MAX_FIELDS} parameters")
    removed = [(parameter.location, parameter.wire) for parameter in optional[-excess:]]
    notes.append(f"Left out, for there are too many: {', '.join(name for _, name in removed)}.")
    return [p for p in parameters if (p.location, p.wire) not in removed]


def _names(parameters: Sequence[tuple[str, str]]) -> Sequence[str]:
    """Return the names of arguments for locations and names of parameters, in the same order.

    What large clients take keeps the document's name; the others get a similar one that is free.
    """
    used_names: set[str] = {BODY}
    names: dict[int, str] = {}
    for fits in (True, False):
        for number, (location, wire) in enumerate(parameters):
            if fits_argument(wire) is fits:
                name = fitting_argument(wire) if not fits else wire
                if name in used_names:
                    name = fitting_argument(f"{location}_{name}") if fits or name == BODY else name
                names[number] = unused_name(name, used_names)
    return [names[number] for number in range(len(parameters))]


def keeps_reserved(parameter: _Parameter, references: References, notes: list[str]) -> bool:
    """Whether reserved characters stay as they are: in a query, and since 3.2 in a path."""
    if parameter.written.get("allowReserved") is not True:
        return False
    if parameter.location == "query" or (parameter.location == "path" and references.is_3_2):
        return True
    notes.append(
        f"`allowReserved` of the {parameter.location} parameter {parameter.wire!r} has no effect there."
    )
    return False


def _argument(
    parameter: _Parameter, name: str, schemas: Schemas, allow_reserved: bool, notes: list[str]
) -> OperationArgument:
    written, style = parameter.written, parameter.style
    converted = schemas.convert(parameter.schema)
    description = written.get("description")
    text = plain_text(description).strip() if isinstance(description, str) else ""
    if len(text) > MAX_DESCRIPTION:
        notes.append(f"The description of {name} is cut to {MAX_DESCRIPTION:,} characters.")
    if name != parameter.wire and name != f"{parameter.location}_{parameter.wire}":
        sent = f"Sent as `{plain_text(parameter.wire)}`."
        text = f"{cut(text, MAX_DESCRIPTION - len(sent) - 1)} {sent}".strip()
    if text:
        converted = {} if converted is True else converted
        if isinstance(converted, dict):
            converted.setdefault("description", cut(text, MAX_DESCRIPTION))
    if written.get("deprecated") is True and isinstance(converted, dict):
        converted["deprecated"] = True
    explode = written.get("explode")
    return OperationArgument(
        name=name,
        wire=parameter.wire,
        location=parameter.location,
        schema=converted,
        required=parameter.is_required,
        style=style,
        explode=explode if isinstance(explode, bool) else style in ("form", "cookie"),
        allow_reserved=allow_reserved,
    )


def input_schema(arguments: Sequence[OperationArgument], schemas: Schemas) -> dict[str, Any]:
    """Return the schema of the arguments."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {argument.name: argument.schema for argument in arguments},
        "required": [argument.name for argument in arguments if argument.required],
        "additionalProperties": False,
    }
    if schemas.definitions:
        schema["$defs"] = schemas.definitions
    return schema


def encoding_of(
    media: Mapping[str, Any], references: References
) -> Mapping[str, Mapping[str, Any]]:
    """Return how a media type writes its properties. Raises UnsupportedError."""
    encoding = object_of(references.follow(media.get("encoding")))
    return {name: references.follow_object(how) for name, how in encoding.items()}
