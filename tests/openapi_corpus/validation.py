"""Validate requests on the wire with `openapi-core`, which shares no code with the product."""

import json
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urljoin

from jsonschema_path import SchemaPath
from openapi_core import V30RequestValidator, V31RequestValidator
from openapi_core.datatypes import RequestParameters
from werkzeug.datastructures import Headers, ImmutableMultiDict

LOCATION: Final = "https://api.example.com/openapi.json"
"""Where documents are said to be from, which completes a relative server."""


class WireRequest:
    """A request as it is sent, in the protocol of `openapi-core`."""

    def __init__(
        self, method: str, origin: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        self.target = path
        self.headers = headers
        path, _, query = path.partition("?")
        self.method = method.lower()
        self.host_url = origin
        self.path = path
        self.content_type = headers.get("content-type", "")
        self.body = body or None
        cookies = [
            pair.strip().partition("=")[::2]
            for pair in headers.get("cookie", "").split(";")
            if pair
        ]
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(parse_qsl(query, keep_blank_values=True)),
            header=Headers(list(headers.items())),
            cookie=ImmutableMultiDict((name, unquote(v)) for name, v in cookies),
        )


class _MediaTypes(dict[str, Any]):
    """Readers of media types that the library does not know: it hands their bytes to the schema."""

    def __contains__(self, name: object) -> bool:
        return not str(name).startswith(("application/x-www-form", "multipart/"))

    def __getitem__(self, name: str) -> Any:
        return _read_json if name.endswith("json") or name in _ANY else _read_text


def _read_json(body: bytes, **parameters: str) -> Any:
    return json.loads(body)


def _read_text(body: bytes, **parameters: str) -> Any:
    text = body.decode("utf-8", "surrogateescape")
    with suppress(ValueError):  # a text of an integer, where the schema says so
        return value if isinstance(value := json.loads(text), int | float) else text
    return text


class Validator:
    """Validates requests of the operations of one document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        is_30 = str(document["openapi"]).startswith("3.0")
        self._class = V30RequestValidator if is_30 else V31RequestValidator
        servers = list(map(_with_defaults, document.get("servers") or ()))
        self._document = {**document, "servers": servers}

        self._refers_to_paths = '"#/paths/' in json.dumps(document["paths"])

    def problems(self, source: str, request: WireRequest) -> list[BaseException]:
        """Return what is wrong with the request of an operation, as the library says it."""
        method, _, path = source.partition(" ")
        item = self._document["paths"][path]
        kept = {key: value for key, value in item.items() if key in _ITEM or key == method.lower()}
        plain = path.partition("#")[0].partition("?")[0]
        others = self._document["paths"] if self._refers_to_paths else {}
        spec = SchemaPath.from_dict(
            {**self._document, "paths": {**others, plain: self._prepared(kept)}}
        )
        request.parameters.path = _path_values(plain, request.path)
        try:
            validator = self._class(
                spec, base_url=urljoin(LOCATION, "/"), extra_media_type_deserializers=_MediaTypes()
            )
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", DeprecationWarning
                )  # of the document's `deprecated`
                return list(validator.iter_errors(request))
        except Exception as error:  # noqa: BLE001 - a fault of the library is a result, too
            return [error]

    def _prepared(self, node: Any) -> Any:
        """Return a part of the document without what the library reads otherwise than the specification.

        Parameters that the specification says to ignore are left out ("Parameter Object", `in`), and the
        variables of servers have their defaults: the library looks for a value without a slash.
        """
        if not isinstance(node, Mapping):
            return node
        prepared = {
            key: self._prepared(value) if key in _METHODS else value for key, value in node.items()
        }
        if isinstance(node.get("parameters"), list):
            prepared["parameters"] = [p for p in node["parameters"] if not self._is_ignored(p)]
        if any("servers" in operation for key, operation in node.items() if key in _METHODS):
            prepared.pop("servers", None)  # those of an operation replace those of its path
        elif isinstance(node.get("servers"), list):
            prepared["servers"] = list(map(_with_defaults, node["servers"]))
        return prepared

    def _is_ignored(self, parameter: Any) -> bool:
        if isinstance(parameter, Mapping) and str(parameter.get("$ref")).startswith(_COMPONENT):
            name = parameter["$ref"].removeprefix(_COMPONENT)
            parameter = self._document.get("components", {}).get("parameters", {}).get(name)
        return (
            isinstance(parameter, Mapping)
            and parameter.get("in") == "header"
            and str(parameter.get("name")).lower() in _IGNORED
        )


def _path_values(template: str, path: str) -> dict[str, str]:
    """Return the values of a path, decoded after it was divided: a value may have a slash."""
    pieces = re.split(r"\{([^{}]+)\}", template)
    expression = "".join(
        "([^/]*)" if number % 2 else re.escape(quote(piece, safe="/:@!$&'()*+,;=~%"))
        for number, piece in enumerate(pieces)
    )
    matched = re.search(f"{expression}$", path)
    return dict(zip(pieces[1::2], map(unquote, matched.groups()), strict=True)) if matched else {}


def _with_defaults(server: Any) -> Any:
    if not isinstance(server, Mapping):
        return server
    url = str(server.get("url"))
    for name, variable in (server.get("variables") or {}).items():
        url = url.replace(f"{{{name}}}", str(variable.get("default", "")))
    if url.startswith("//"):
        url = urljoin(LOCATION, url)
    scheme, mark, rest = url.partition("://")
    if not mark:
        return {"url": url}
    # As RFC 3986, section 6.2, normalises it: the library compares texts.
    host, slash, path = rest.partition("/")
    port = {"http": ":80", "https": ":443"}.get(scheme.lower(), ":")
    return {"url": f"{scheme.lower()}://{host.lower().removesuffix(port)}{slash}{path}"}


_ITEM: Final = frozenset({"parameters", "servers", "$ref", "summary", "description"})
_METHODS: Final = frozenset({"get", "head", "post", "put", "patch", "delete"})
_IGNORED: Final = frozenset({"accept", "content-type", "authorization"})
_COMPONENT: Final = "#/components/parameters/"
_ANY: Final = ("*/*", "application/*")
