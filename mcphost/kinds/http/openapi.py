"""Make configurations of HTTP tools of the operations of an OpenAPI document.

Nothing is fetched, and references outside the document are not followed. An operation that cannot
become a tool says why.
"""

import re
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urljoin, urlsplit

from pydantic import ValidationError

from mcphost.kinds.http.configs import MOST_FIELDS, SAFE, HttpToolConfig
from mcphost.kinds.http.openapi_documents import OpenApiError
from mcphost.kinds.http.openapi_multipart import uploads
from mcphost.kinds.http.openapi_schemas import SHAPE, References, Schemas, UnsupportedError
from mcphost.protocol.schemas import check_schema

MOST_OPERATIONS: Final = 5_000
METHODS: Final = ("get", "head", "post", "put", "patch", "delete")
BODY: Final = "body"
"""The argument with the request's body."""

_IGNORED: Final = frozenset(
    ("header", name) for name in ("accept", "content-type", "authorization")
)
"""A parameter of this name has no effect (OpenAPI 3.1, "Parameter Object")."""
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]+")
_VARIABLE: Final = re.compile(r"\{([^{}]+)\}")
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f\\]")
"""Characters that readers of URLs drop, or read as a slash."""
_HOST_BEGUN: Final = re.compile(r"([^/]*//)?[^/]*")
"""What is before a part of the host, or before the scheme."""
_PLAIN_STEP: Final = re.compile(r"[A-Za-z0-9_$@-]+")
_STYLES: Final = {"query": "form", "path": "simple", "header": "simple", "cookie": "form"}
_TEXTS: Final = re.compile(r"text/[a-z0-9.+-]+|application/xml")


class Credential(NamedTuple):
    """A security scheme of the document that an operation uses, and what its secret must be.

    `secret` is the name that is used if no other is chosen.
    """

    scheme: str
    secret: str
    expected: str


class ServerPlace(NamedTuple):
    """Where an API is: `base_url` replaces the servers of its document, or completes a relative one,
    as does `location`, from which the document was fetched."""

    base_url: str = ""
    location: str = ""


AS_DOCUMENTED: Final = ServerPlace()
FAULT: Final = "It could not be read because of a fault of the platform, which is in its log."
"""What users are told of an error that no document may cause."""
_PREFIXES: Final = {"simple": "", "label": ".", "matrix": ";{}="}
"""What stands before a variable of a path, by its style (OpenAPI 3.1, "Style Values")."""


class Operation(NamedTuple):
    """An operation of a document. `config` is None if it cannot become a tool: `problem` says why.

    `source` is its method and path, which stay the same when the document changes. `fault` is the
    traceback of an error of ours, for the log.
    """

    source: str
    name: str
    title: str
    description: str
    config: Mapping[str, Any] | None
    problem: str = ""
    credentials: tuple[Credential, ...] = ()
    fault: str = ""


def operations(
    document: Mapping[str, Any],
    place: ServerPlace = AS_DOCUMENTED,
    secrets: Mapping[str, str] | None = None,
    wanted: Callable[[str], bool] = lambda source: True,
) -> Iterator[Operation]:
    """Return the operations of a document, in its order.

    `secrets` are names of secrets by security scheme; without one the scheme's own name is used. Only
    those are converted whose `source` is wanted: the others have neither a configuration nor a
    problem. Raises OpenApiError.
    """
    reader = _Reader(document, place, secrets or {})
    names: set[str] = set()
    for number, (path, method, item) in enumerate(_listed(document)):
        if number == MOST_OPERATIONS:
            raise OpenApiError(f"The document has more than {MOST_OPERATIONS} operations.")
        said = _said(path, method, item[method])
        said = said._replace(name=_unused(said.name, names))
        yield reader.converted(said, path, method, item) if wanted(said.source) else said


def _listed(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    references = References(document)
    for path, item in document["paths"].items():
        try:
            found = references.follow(item)
        except UnsupportedError:
            continue
        if isinstance(found, Mapping):
            yield from ((path, method, found) for method in METHODS if method in found)


def _said(path: str, method: str, operation: Any) -> Operation:
    """Return what an operation says of itself, with the name that it suggests."""
    source = f"{method.upper()} {path}"
    if not isinstance(operation, Mapping):
        return Operation(source, _name(source), "", "", None)
    texts = [operation.get(key) for key in ("summary", "description")]
    title, description = (text.strip() if isinstance(text, str) else "" for text in texts)
    name = _name(operation.get("operationId") or source)
    return Operation(source, name, title[:200], (description or title)[:2000], None)


def _unused(name: str, names: set[str]) -> str:
    number, unused = 1, name
    while unused in names:
        number += 1
        unused = f"{name[:60]}_{number}"
    names.add(unused)
    return unused


class _Argument(NamedTuple):
    """An argument of the tool, and the parameter of the request that it becomes."""

    name: str
    placeholder: str
    parameter: Mapping[str, Any]
    place: str
    schema: Any
    required: bool
    is_json: bool


class _Reader:
    """Reads the operations of one document."""

    def __init__(
        self, document: Mapping[str, Any], place: ServerPlace, secrets: Mapping[str, str]
    ) -> None:
        self._document = document
        self._place = place
        self._secrets = secrets
        self._references = References(document)

    def converted(
        self, said: Operation, path: str, method: str, item: Mapping[str, Any]
    ) -> Operation:
        """Return the operation with its configuration, or with the reason why it has none."""
        operation = item[method]
        if not isinstance(operation, Mapping):
            return said._replace(problem="It is not an object.")
        try:
            config, credentials = self._config(path, method, item, operation)
            HttpToolConfig.model_validate(config)
        except UnsupportedError as error:
            problem = f"{error}"
            return said._replace(problem=f"{problem[:1].upper()}{problem[1:]}.")
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            return said._replace(problem=f"{where}: {first['msg'].removeprefix('Value error, ')}")
        except (OpenApiError, RecursionError, MemoryError):  # of the whole document
            raise
        except Exception:  # noqa: BLE001 - logged where the operation is read: this process has no log
            return said._replace(problem=FAULT, fault=traceback.format_exc())
        return said._replace(config=config, credentials=credentials)

    def _config(
        self,
        path: str,
        method: str,
        item: Mapping[str, Any],
        operation: Mapping[str, Any],
    ) -> tuple[dict[str, Any], tuple[Credential, ...]]:
        schemas = Schemas(self._references)
        schemes = self._schemes(operation.get("security", self._document.get("security")))
        arguments = self._arguments(item, operation, schemas, _set_by(schemes.values()))
        body, body_argument = self._body(operation, schemas, method)
        plain, _, query = path.partition("?")
        constant = [{"name": n, "value": v} for n, v in parse_qsl(query, keep_blank_values=True)]
        request: dict[str, Any] = {
            "method": method.upper(),
            "url": self._url(plain, item, operation, arguments),
            "query": constant + [_field(each) for each in arguments if each.place == "query"],
            "headers": [_single(each) for each in arguments if each.place == "header"],
        }
        cookies = [each for each in arguments if each.place == "cookie"]
        if len(cookies) > 1 or any(not each.required for each in cookies):
            raise UnsupportedError("it has optional cookies")
        if body is not None:
            request["body"] = body
        credentials = self._authorize(schemes, request, cookies)
        _check_repeated(constant, request)
        if body_argument is not None:
            arguments.append(body_argument)
        schema = _input_schema(arguments, schemas)
        problems = check_schema(schema, role="input")
        if problems:
            first = problems[0]
            raise UnsupportedError(f"its input schema cannot be used: {first.message}")
        source = f"{method.upper()} {path}"
        return {"source": source, "input_schema": schema, "request": request}, credentials

    def _arguments(
        self,
        item: Mapping[str, Any],
        operation: Mapping[str, Any],
        schemas: Schemas,
        left_out: Collection[tuple[str, str]],
    ) -> list[_Argument]:
        parameters: dict[tuple[str, str], Mapping[str, Any]] = {}
        for listed in (item.get("parameters"), operation.get("parameters")):
            for each in listed if isinstance(listed, list) else ():
                found = self._references.follow(each)
                if not isinstance(found, Mapping) or not isinstance(found.get("name"), str):
                    raise UnsupportedError("a parameter has no name")
                parameters[found["name"], str(found.get("in"))] = found
        if len(parameters) > MOST_FIELDS:
            raise UnsupportedError(f"it has more than {MOST_FIELDS} parameters")
        names: set[str] = {BODY}
        return [
            self._argument(parameter, schemas, names)
            for (name, place), parameter in parameters.items()
            if (place, name.lower()) not in left_out
        ]

    def _argument(
        self, parameter: Mapping[str, Any], schemas: Schemas, names: set[str]
    ) -> _Argument:
        wire, place = parameter["name"], str(parameter.get("in"))
        if place not in _STYLES:
            raise UnsupportedError(f"the parameter {wire!r} is in {place!r}")
        content = parameter.get("content")
        is_json = isinstance(content, Mapping)
        if isinstance(content, Mapping):
            media = content.get("application/json")
            if not isinstance(media, Mapping):
                raise UnsupportedError(f"the parameter {wire!r} is not JSON")
            schema = media.get("schema", True)
        else:
            schema = parameter.get("schema", True)
        converted = schemas.convert(schema)
        if isinstance(converted, dict) and isinstance(parameter.get("description"), str):
            converted.setdefault("description", parameter["description"][:1000])
        name = wire if wire not in names else f"{place}_{wire}"
        name = _unused(name.replace('"', "'").replace("{", "(").replace("}", ")"), names)
        required = place == "path" or parameter.get("required") is True
        placeholder = f"{{arguments.{_step(name)}}}"
        return _Argument(name, placeholder, parameter, place, converted, required, is_json)

    def _url(
        self,
        path: str,
        item: Mapping[str, Any],
        operation: Mapping[str, Any],
        arguments: Sequence[_Argument],
    ) -> str:
        in_path = {each.parameter["name"]: each for each in arguments if each.place == "path"}

        def placed(match: re.Match[str]) -> str:
            argument = in_path.get(match[1])
            if argument is None:
                raise UnsupportedError(f"the path has no parameter for {match[0]}")
            style = argument.parameter.get("style", "simple")
            if style != "simple" and _holds_several(argument.schema):
                raise UnsupportedError(f"{match[1]!r} is a list or an object in style {style}")
            if not isinstance(style, str) or style not in _PREFIXES:
                raise UnsupportedError(f"the style {style!r} is not one of a path")
            return f"{_PREFIXES[style].format(match[1])}{argument.placeholder}"

        if not path.startswith("/"):  # it would go on with the host of the server
            raise UnsupportedError("its path does not begin with /")
        return f"{self._base(item, operation)}{_VARIABLE.sub(placed, path)}"

    def _base(self, item: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
        listed = operation.get("servers") or item.get("servers") or self._document.get("servers")
        url = ""
        if isinstance(listed, list) and listed and isinstance(listed[0], Mapping):
            url = _server(listed[0])
        try:
            base, own = self._place.base_url, urlsplit(url)
            if _UNSAFE.search(url) or (own.netloc and not own.scheme):
                raise UnsupportedError("its server is neither a whole address nor a path")
            if base:
                url = base if own.scheme or not url else urljoin(base, url)
            elif not own.scheme and self._place.location:
                url = urljoin(self._place.location, url or "/")
            host = urlsplit(url).hostname
        except ValueError:
            raise UnsupportedError(
                f"the address of its server cannot be read: {url[:200]}"
            ) from None
        if not host:
            raise UnsupportedError("the document does not say where the API is: give its address")
        return url.rstrip("/")

    def _body(
        self, operation: Mapping[str, Any], schemas: Schemas, method: str
    ) -> tuple[dict[str, Any] | None, _Argument | None]:
        found = self._references.follow(operation.get("requestBody"))
        if found is None:
            return None, None
        content = found.get("content") if isinstance(found, Mapping) else None
        if not isinstance(content, Mapping):
            raise UnsupportedError("its body has no content")
        required = found.get("required") is True
        if method.upper() in SAFE:
            if required:
                raise UnsupportedError(f"a body is not possible with {method.upper()}")
            return None, None
        by_type = {name.partition(";")[0].strip().lower(): media for name, media in content.items()}
        for name, media in by_type.items():
            body = _body_of(name, media)
            if body is not None:
                others, schema = media, media.get("schema", True)
                if body["type"] == "multipart":
                    schema, body["files"], others = uploads(media, self._references, _of_body)
                argument = _Argument(
                    BODY, f"{{arguments.{BODY}}}", {}, BODY, schemas.convert(schema), required, True
                )
                if body["type"] in ("form", "multipart"):
                    body["fields"] = self._form_fields(others)
                    if not body["fields"] and not body.get("files") and not required:
                        return None, None
                return body, argument
        raise UnsupportedError(f"a body of {', '.join(by_type) or 'no type'} is not supported")

    def _form_fields(self, media: Mapping[str, Any]) -> list[dict[str, Any]]:
        schema = self._references.follow(media.get("schema"))
        properties = schema.get("properties", {}) if isinstance(schema, Mapping) else None
        if not isinstance(properties, Mapping):
            raise UnsupportedError("its form does not say which fields it has")
        encoding = media.get("encoding")
        fields = []
        for name in properties:
            how = encoding.get(name) if isinstance(encoding, Mapping) else None
            how = how if isinstance(how, Mapping) else {}
            style = how.get("style", "form")
            fields.append(
                {
                    "name": name,
                    "value": _of_body(name),
                    "style": style,
                    "explode": how.get("explode", style == "form"),
                }
            )
        return fields

    def _authorize(
        self,
        schemes: Mapping[str, Mapping[str, Any]],
        request: dict[str, Any],
        cookies: Sequence[_Argument],
    ) -> tuple[Credential, ...]:
        """Add the credentials of security schemes."""
        written = [f"{each['name']}={each['value']}" for each in map(_single, cookies)]
        credentials: list[Credential] = []
        for name, scheme in schemes.items():
            own = _UNFIT.sub("_", name).strip("_") or "secret"
            secret = self._secrets.get(name) or own
            expected, place, field = _credential(scheme)
            value = f"{field}{{secrets.{secret}}}"
            if place == "cookie":
                written.append(value)
            else:
                header = scheme.get("name", "Authorization")
                if not isinstance(header, str):
                    raise UnsupportedError(SHAPE)
                request[place].append({"name": header, "value": value})
            credentials.append(Credential(name, own, expected))
        if written:
            request["headers"].append({"name": "Cookie", "value": "; ".join(written)})
        return tuple(credentials)

    def _schemes(self, required: Any) -> Mapping[str, Mapping[str, Any]]:
        """Return the schemes of the first security requirement that can be met, by name."""
        if not isinstance(required, list) or not required:
            return {}
        problems = []
        for alternative in required:
            if not isinstance(alternative, Mapping):
                continue
            try:
                schemes = {name: self._scheme(name) for name in alternative}
                for scheme in schemes.values():
                    _credential(scheme)
            except UnsupportedError as error:
                problems.append(error)
            else:
                return schemes
        raise problems[0] if problems else UnsupportedError("its security cannot be read")

    def _scheme(self, name: str) -> Mapping[str, Any]:
        components = self._document.get("components")
        schemes = components.get("securitySchemes") if isinstance(components, Mapping) else None
        found = schemes.get(name) if isinstance(schemes, Mapping) else None
        scheme = self._references.follow(found)
        if not isinstance(scheme, Mapping):
            raise UnsupportedError(f"there is no security scheme {name!r}")
        return scheme


def _credential(scheme: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what a scheme's secret must be, where it goes, and what is written there before it."""
    kind, place = scheme.get("type"), scheme.get("in")
    match kind:
        case "apiKey" if place in ("header", "query"):
            where = "headers" if place == "header" else "query"
            return "the API key", where, ""
        case "apiKey" if place == "cookie":
            return "the API key", "cookie", f"{scheme.get('name')}="
        case "http" if str(scheme.get("scheme")).lower() == "bearer":
            return "the bearer token", "headers", "Bearer "
        case "http" if str(scheme.get("scheme")).lower() == "basic":
            return "user:password in Base64", "headers", "Basic "
        case "oauth2" | "openIdConnect":
            return "an access token", "headers", "Bearer "
        case _:
            raise UnsupportedError(f"security of type {kind!r} is not supported")


def _set_by(schemes: Iterable[Mapping[str, Any]]) -> Collection[tuple[str, str]]:
    """Return the places and names of parameters that are no arguments: a caller could send another
    value beside the secret."""
    names = {(str(scheme.get("in")), str(scheme.get("name")).lower()) for scheme in schemes}
    if any(place == "cookie" for place, _ in names):
        names.add(("header", "cookie"))
    return _IGNORED | names


def _check_repeated(constant: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> None:
    """Refuse a header that is there twice, and an argument with the name of a part of the path's query."""
    fixed = {field["name"].lower() for field in constant}
    headers = [field["name"].lower() for field in request["headers"]]
    query = [field["name"].lower() for field in request["query"][len(constant) :]]
    repeated = [*fixed.intersection(query), *(name for name in headers if headers.count(name) > 1)]
    if repeated:
        raise UnsupportedError(f"it has {repeated[0]!r} twice")


def _server(server: Mapping[str, Any]) -> str:
    variables = server.get("variables") or {}

    url = str(server.get("url", ""))

    def default(match: re.Match[str]) -> str:
        variable = variables.get(match[1]) if isinstance(variables, Mapping) else None
        if not isinstance(variable, Mapping):
            return match[0]
        value = str(variable.get("default", ""))
        rest_of_host = url[match.end() :].partition("/")[0]
        if "/" in value and rest_of_host and _HOST_BEGUN.fullmatch(url, 0, match.start()):
            raise UnsupportedError(f"the variable {match[1]!r} of its server ends the host")
        return value

    return _VARIABLE.sub(default, url)


def _body_of(media_type: str, media: Any) -> dict[str, Any] | None:
    """Return the body for a media type, without its fields; None if it is not supported."""
    if not isinstance(media, Mapping):
        return None
    if media_type in ("application/json", "*/*") or media_type.endswith("+json"):
        return {"type": "json", "value": f"{{arguments.{BODY}}}"}
    if media_type == "application/x-www-form-urlencoded":
        return {"type": "form"}
    if media_type == "multipart/form-data":
        return {"type": "multipart"}
    if _TEXTS.fullmatch(media_type):
        return {"type": "text", "text": f"{{arguments.{BODY}}}", "media_type": media_type}
    return None


def _field(argument: _Argument) -> dict[str, Any]:
    parameter = argument.parameter
    style = "json" if argument.is_json else parameter.get("style", "form")
    explode = parameter.get("explode", style == "form")
    name, value = parameter["name"], argument.placeholder
    return {"name": name, "value": value, "style": style, "explode": explode}


def _single(argument: _Argument) -> dict[str, Any]:
    """Return a header or a cookie."""
    if _holds_several(argument.schema):
        name = argument.parameter["name"]
        raise UnsupportedError(f"the {argument.place} {name!r} is a list or an object")
    return {"name": argument.parameter["name"], "value": argument.placeholder}


def _holds_several(schema: Any) -> bool:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = kind if isinstance(kind, list) else [kind]
    return "array" in kinds or "object" in kinds


def _input_schema(arguments: Sequence[_Argument], schemas: Schemas) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {each.name: each.schema for each in arguments},
        "required": [each.name for each in arguments if each.required],
        "additionalProperties": False,
    }
    if schemas.definitions:
        schema["$defs"] = schemas.definitions
    return schema


def _of_body(name: str) -> str:
    return f"{{arguments.{BODY}.{_step(name)}}}"


def _step(name: str) -> str:
    return name if _PLAIN_STEP.fullmatch(name) else f'"{name}"'


def _name(text: Any) -> str:
    """Return a tool's name made of an operation's id, or of its method and path."""
    return _UNFIT.sub("_", str(text)).strip("_")[:64] or "operation"
