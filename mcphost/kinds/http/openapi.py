"""Make configurations of HTTP tools of the operations of an OpenAPI document.

Nothing is fetched, and references outside the document are not followed. An operation that cannot
become a tool says why; what is left out of one that can is in its notes.
"""

import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote

from pydantic import ValidationError

from mcphost.kinds.config_problems import problem_sentence
from mcphost.kinds.http.configs import HttpToolConfig
from mcphost.kinds.http.openapi_bodies import BodyReader
from mcphost.kinds.http.openapi_documents import OpenApiError
from mcphost.kinds.http.openapi_keywords import plain_text
from mcphost.kinds.http.openapi_parameters import (
    OperationArgument,
    arguments_of,
    cut,
    input_schema,
    unused_name,
)
from mcphost.kinds.http.openapi_places import place_in_document
from mcphost.kinds.http.openapi_references import (
    SHAPE,
    References,
    UnsupportedError,
)
from mcphost.kinds.http.openapi_schemas import Schemas, shorten
from mcphost.kinds.http.openapi_security import Credential, SchemeReader, fixed_names
from mcphost.kinds.http.openapi_servers import (
    AS_DOCUMENTED,
    VARIABLE,
    ServerAddress,
    base_of,
    server_notes,
)
from mcphost.protocol.json_values import check_json
from mcphost.protocol.schemas import check_schema

MAX_OPERATIONS: Final = 5_000
MAX_TITLE: Final = 200
MAX_DESCRIPTION: Final = 2_000
METHODS: Final = ("get", "head", "post", "put", "patch", "delete")
_OTHER_METHODS: Final = ("options", "trace", "query")
_ITEM: Final = frozenset(
    {*METHODS, *_OTHER_METHODS, "$ref", "summary", "description", "servers", "parameters"}
)
"""The members of a path that are read, or counted."""
_IN_PATHS: Final = "/:@!$&'()*+,;=~%{}[]\"\\^`|<>"
"""What stays in a path as the document has it: blanks and letters that no address has are encoded."""
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]+")
FAULT: Final = "It could not be read because of a fault of the platform, which is in its log."
"""What users are told of an error that no document may cause."""


class Operation(NamedTuple):
    """An operation of a document. `config` is None if it cannot become a tool: `problem` says why.

    `source` is its method and path, which stay the same when the document changes; the method of a path
    that cannot be read is `*`. `notes` are sentences about what the tool has not, or has otherwise.
    `fault` is the traceback of an error of ours, for the log.
    """

    source: str
    name: str
    title: str
    description: str
    config: Mapping[str, Any] | None
    problem: str = ""
    credentials: tuple[Credential, ...] = ()
    fault: str = ""
    notes: tuple[str, ...] = ()


def operations(
    document: Mapping[str, Any],
    address: ServerAddress = AS_DOCUMENTED,
    secrets: Mapping[str, str] | None = None,
    is_selected: Callable[[str], bool] = lambda source: True,
) -> Iterator[Operation]:
    """Return the operations of a document, in its order.

    `secrets` are names of secrets by security scheme; without one a name is made of the scheme's. Only
    those are converted whose `source` is selected: the others have neither a configuration nor a
    problem. Raises OpenApiError.
    """
    reader = _Reader(document, address, secrets or {})
    names: set[str] = set()
    for number, listed in enumerate(_listed(document, reader.references)):
        if number == MAX_OPERATIONS:
            raise OpenApiError(f"The document has more than {MAX_OPERATIONS} operations.")
        operation = _described(listed)
        operation = operation._replace(name=unused_name(operation.name, names))
        yield reader.converted(operation, listed) if is_selected(operation.source) else operation


def document_notes(document: Mapping[str, Any]) -> list[str]:
    """Return what holds for all operations of a document, and what is not read, in sentences."""
    items = [
        path_item for path_item in document["paths"].values() if isinstance(path_item, Mapping)
    ]
    skipped = sum(method in item for item in items for method in _OTHER_METHODS)
    converted = "swagger" in document
    notes = ["It is a document of Swagger 2.0, and was converted to OpenAPI 3.0."] * converted
    notes += server_notes(document)
    if skipped:
        notes.append(
            f"{skipped} operations with the methods OPTIONS, TRACE and QUERY are left out."
        )
    unknown = {
        str(key)[:40]: None
        for item in items
        for key in item
        if key not in _ITEM and not str(key).startswith("x-")
    }
    if unknown:
        notes.append(f"Not read in paths: {', '.join(list(unknown)[:10])}.")
    return [*notes, "Responses are not read: the tools have no schema of their results."]


class _Listed(NamedTuple):
    """An operation as it is listed: the path and its item, and what is at the method there. `problem`
    is why it cannot be read."""

    path: str
    method: str
    item: Mapping[str, Any]
    operation: Any
    problem: str = ""

    @property
    def source(self) -> str:
        return f"{self.method.upper()} {self.path}"


def _listed(document: Mapping[str, Any], references: References) -> Iterator[_Listed]:
    for path, written in document["paths"].items():
        if path.startswith("x-"):
            continue
        try:
            item = _path_item(written, references)
        except UnsupportedError as error:
            yield _Listed(path, "*", {}, None, _sentence(error))
            continue
        for method in METHODS:
            if method in item:
                yield _operation(path, method, item, references)


def _path_item(written: Any, references: References) -> Mapping[str, Any]:
    item = references.follow(written)
    if item is None:
        return {}
    if not isinstance(item, Mapping):
        raise UnsupportedError(SHAPE)
    beside = written if isinstance(written, Mapping) and written is not item else {}
    return {**item, **{key: value for key, value in beside.items() if key != "$ref"}}


def _operation(path: str, method: str, item: Mapping[str, Any], references: References) -> _Listed:
    try:
        operation = references.follow(item[method])
    except UnsupportedError as error:
        return _Listed(path, method, item, None, _sentence(error))
    problem = "" if isinstance(operation, Mapping) else "It is not an object."
    return _Listed(path, method, item, operation, problem)


def _described(listed: _Listed) -> Operation:
    """Return what an operation says of itself, with the name that it suggests."""
    source, operation = listed.source, listed.operation
    if not isinstance(operation, Mapping):
        return Operation(source, _name(source), "", "", None, listed.problem)
    title, description = (
        plain_text(text).strip() if isinstance(text, str) else ""
        for text in (operation.get("summary"), operation.get("description"))
    )
    title = " ".join(title.split())
    notes = []
    if operation.get("deprecated") is True:
        notes.append("It is deprecated.")
    if len(title) > MAX_TITLE:
        notes.append(f"Its summary is cut to {MAX_TITLE} characters.")
    if len(description) > MAX_DESCRIPTION:
        notes.append(f"Its description is cut to {MAX_DESCRIPTION:,} characters.")
    return Operation(
        source,
        _name(operation.get("operationId") or source),
        cut(title, MAX_TITLE),
        cut(description or title, MAX_DESCRIPTION),
        None,
        notes=tuple(notes),
    )


class _Reader:
    """Reads the operations of one document."""

    def __init__(
        self,
        document: Mapping[str, Any],
        address: ServerAddress,
        secrets: Mapping[str, str],
    ) -> None:
        self.references = References(document)
        self._document = document
        self._address = address
        self._schemes = SchemeReader(document, self.references, secrets)

    def converted(self, operation: Operation, listed: _Listed) -> Operation:
        """Return the operation with its configuration, or with the reason why it has none."""
        if listed.problem:
            return operation
        notes: list[str] = []
        try:
            config, credentials = self._config(listed, notes)
            _check(config)
        except UnsupportedError as error:
            return operation._replace(problem=_sentence(error))
        except (OpenApiError, RecursionError, MemoryError):  # of the whole document
            raise
        except Exception:  # noqa: BLE001 - logged where the operation is read: this process has no log
            return operation._replace(problem=FAULT, fault=traceback.format_exc())
        return operation._replace(
            config=config, credentials=credentials, notes=(*operation.notes, *notes)
        )

    def _config(
        self, listed: _Listed, notes: list[str]
    ) -> tuple[dict[str, Any], tuple[Credential, ...]]:
        path, method, item, operation = listed[:4]
        schemas = Schemas(self.references)
        schemes = self._schemes.schemes(operation, notes)
        both = [item.get("parameters"), operation.get("parameters")]
        fixed = fixed_names(schemes.values())
        arguments = arguments_of(both, self.references, schemas, fixed, path, notes)
        body = BodyReader(self.references, schemas, notes).read(
            operation.get("requestBody"), method
        )
        plain, _, query = path.partition("#")[0].partition("?")
        constant, in_path = _query_of_path(query, arguments)
        servers = operation.get("servers") or item.get("servers") or self._document.get("servers")
        request: dict[str, Any] = {
            "method": method.upper(),
            "url": base_of(servers, self._address, self.references) + _path(plain, arguments),
            "query": constant
            + [a.query_field for a in arguments if a.location == "query" and a.wire not in in_path],
            "headers": [a.header for a in arguments if a.location in ("header", "cookie")],
        }
        styles = [a.path_style for a in arguments if a.location == "path" and a.path_style]
        if styles:
            request["path"] = styles
        if body is not None:
            request["body"] = body.config
            arguments.append(body.argument)
        credentials = self._schemes.authorize(schemes, request)
        if not credentials and self._takes_authorization(both):
            notes.append("It takes Authorization as a parameter, which no call sends.")
        _check_repeated(constant, request)
        schema = input_schema(arguments, schemas)
        if shorten(schema):
            notes.append("Its schema is large: descriptions and examples deep inside are left out.")
        return {"source": listed.source, "input_schema": schema, "request": request}, credentials

    def _takes_authorization(self, parameters: Sequence[Any]) -> bool:
        nodes = (node for several in parameters for node in self.references.follow(several) or ())
        objects = (self.references.follow_object(node) for node in nodes)
        return any(
            parameter.get("in") == "header"
            and str(parameter.get("name")).lower() == "authorization"
            for parameter in objects
        )


def _query_of_path(
    query: str, arguments: Sequence[OperationArgument]
) -> tuple[list[dict[str, str]], frozenset[str]]:
    """Return the parameters that a path has in a query of its own, and the names of the arguments of
    the query that are in their values. One that is nothing but an argument of its name is left to that."""
    by_wire = {a.wire: a for a in arguments if a.location in ("path", "query")}
    constant = []
    used: set[str] = set()
    for name, value in parse_qsl(query, keep_blank_values=True):
        variables = [match[1] for match in VARIABLE.finditer(value)]
        unknown = [variable for variable in variables if variable not in by_wire]
        if unknown:
            raise UnsupportedError(f"the path has no parameter for {{{unknown[0]}}}")
        own = by_wire.get(name)
        if variables == [name] and value == f"{{{name}}}" and own and own.location == "query":
            continue
        used.update(variables)
        filled = VARIABLE.sub(lambda match: by_wire[match[1]].placeholder, value)
        constant.append({"name": name, "value": filled})
    return constant, frozenset(used)


def _path(path: str, arguments: Sequence[OperationArgument]) -> str:
    """Return a path with placeholders. Raises UnsupportedError."""
    in_path = {argument.wire: argument for argument in arguments if argument.location == "path"}

    def placed(name: str) -> str:
        argument = in_path.get(name)
        if argument is None:
            raise UnsupportedError(f"the path has no parameter for {{{name}}}")
        return argument.placeholder

    if not path.startswith("/"):  # it would go on with the host of the server
        raise UnsupportedError("its path does not begin with /")
    pieces = VARIABLE.split(path)
    return "".join(
        placed(piece) if number % 2 else quote(piece, safe=_IN_PATHS)
        for number, piece in enumerate(pieces)
    )


def _check_repeated(constant: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> None:
    """Refuse a header that is there twice, and an argument with the name of a part of the path's query."""
    fixed = {field["name"].lower() for field in constant}
    headers = [field["name"].lower() for field in request["headers"]]
    cookies = [field["value"] for field in request["headers"] if field["name"] == "Cookie"]
    query = [field["name"].lower() for field in request["query"][len(constant) :]]
    repeated = [
        *fixed.intersection(query),
        *(name for name in headers if headers.count(name) > 1 and name != "cookie"),
        *(["Cookie"] if len(cookies) > 1 and not all("=" in value for value in cookies) else []),
    ]
    if repeated:
        raise UnsupportedError(f"it has {repeated[0]!r} twice")


def _check(config: Mapping[str, Any]) -> None:
    """Refuse what could not be stored or called. Raises UnsupportedError."""
    problems = check_schema(config["input_schema"], role="input")
    if problems:
        where = f" (at {problems[0].path})" if problems[0].path else ""
        raise UnsupportedError(f"its input schema cannot be used: {problems[0].message}{where}")
    try:
        HttpToolConfig.model_validate(config)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        part, reason = place_in_document(first["loc"], config), problem_sentence(first)
        raise UnsupportedError(": ".join(filter(None, (part, reason.rstrip("."))))) from None
    for part in ("input_schema", "request"):
        if sentences := check_json(config[part]):
            raise UnsupportedError(f"it cannot be stored: {sentences[0].rstrip('.')}")


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."


def _name(text: Any) -> str:
    """Return a tool's name made of an operation's id, or of its method and path."""
    return _UNFIT.sub("_", str(text)).strip("_")[:64] or "operation"
