"""Convert documents of Swagger 2.0 to OpenAPI 3.0 (https://spec.openapis.org/oas/v2.0).

Schemas stay where they are, below `definitions`: references to them lead there as before. Responses are
not converted, because nothing reads them. What has no equal in 3.0, such as `collectionFormat: tsv`, gets a
name that 3.0 does not know, so that the import refuses it with its reason, or leaves it out with a note.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mcphost.kinds.http.openapi_references import References, UnsupportedError

_METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch"})
_FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_SCHEMA: Final = (
    *("type", "format", "items", "default", "enum", "multipleOf", "pattern", "uniqueItems"),
    *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    *("maxLength", "minLength", "maxItems", "minItems", "x-nullable"),
)
"""The members of a parameter that are a schema in 3.0."""
_STYLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "multi": {"style": "form", "explode": True},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
}
"""How lists of a `collectionFormat` are written; `csv` depends on where the parameter is."""
_FLOWS: Final = {"application": "clientCredentials", "accessCode": "authorizationCode"}
_PARAMETERS: Final = "#/parameters/"


def as_openapi(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document of Swagger 2.0 as one of OpenAPI 3.0; any other as it is."""
    return _Converter(document).document() if "swagger" in document else document


class _Converter:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._references = References(document)

    def document(self) -> dict[str, Any]:
        shared = _members(self._document, "parameters")
        schemes = _members(self._document, "securityDefinitions")
        return {
            **self._document,
            "openapi": "3.0.3",
            "servers": self._servers(self._document.get("schemes")),
            "paths": {
                path: self._path_item(item) for path, item in self._document["paths"].items()
            },
            "components": {
                "parameters": {
                    name: _parameter(parameter)
                    for name, parameter in shared.items()
                    if isinstance(parameter, Mapping) and not _is_body(parameter)
                },
                "securitySchemes": {name: _scheme(scheme) for name, scheme in schemes.items()},
            },
        }

    def _servers(self, schemes: Any) -> list[dict[str, str]]:
        """Return a server for each scheme, https first. Without a host it is that of the document."""
        host, path = (self._document.get(name) for name in ("host", "basePath"))
        base = f"/{path.strip('/')}" if isinstance(path, str) else "/"
        if not isinstance(host, str) or not host:
            return [{"url": base}]
        best = {"https": 0, "http": 1}
        listed = sorted(_texts(schemes), key=lambda scheme: best.get(scheme, 2))
        urls = [f"{scheme}://{host}{base}" for scheme in listed]
        return [{"url": url} for url in urls or [f"//{host}{base}"]]

    def _path_item(self, written: Any) -> Any:
        try:
            item = self._references.follow(written)
        except UnsupportedError:
            return written  # the import says why
        if not isinstance(item, Mapping):
            return item
        beside = written if written is not item else {}
        item = {**item, **{key: value for key, value in beside.items() if key != "$ref"}}
        common = item.get("parameters")
        converted = {
            key: self._operation(value, common) if key in _METHODS else value
            for key, value in item.items()
        }
        if "parameters" in item:
            converted["parameters"] = self._plain_parameters(common)
        return converted

    def _operation(self, written: Any, common: Any) -> Any:
        if not isinstance(written, Mapping) or "$ref" in written:
            return written
        operation = dict(written)
        own = operation.get("parameters")
        if own is not None:
            operation["parameters"] = self._plain_parameters(own)
        if "schemes" in operation:
            operation["servers"] = self._servers(operation["schemes"])
        consumes = _texts(operation.get("consumes", self._document.get("consumes")))
        bodies = {
            (str(parameter.get("name")), str(parameter["in"])): parameter
            for parameter in [*self._bodies(common), *self._bodies(own)]
        }
        body = next((p for p in bodies.values() if p["in"] == "body"), None)
        fields = [p for p in bodies.values() if p["in"] == "formData"]
        if body is not None:
            about = {key: body[key] for key in ("description", "required") if key in body}
            media = {"schema": body.get("schema", {})}
            content = dict.fromkeys(consumes or ["application/json"], media)
            operation["requestBody"] = {**about, "content": content}
            # Both are not allowed: the import names the fields that it leaves out.
            operation["parameters"] = [*operation.get("parameters", ()), *fields]
        elif fields:
            operation["requestBody"] = _form(fields, consumes)
        return operation

    def _plain_parameters(self, listed: Any) -> Any:
        """Return the parameters of a list that stay parameters."""
        if not isinstance(listed, list):
            return listed
        return [
            self._shared(node) or _parameter(parameter)
            for node, parameter in self._followed(listed)
            if not _is_body(parameter)
        ]

    def _bodies(self, listed: Any) -> Iterator[Mapping[str, Any]]:
        """Yield the parameters of a list that are the body, or its fields."""
        if isinstance(listed, list):
            yield from (p for _, p in self._followed(listed) if _is_body(p))

    def _followed(self, listed: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each node with what it refers to: itself, if that cannot be told."""
        for node in listed:
            try:
                yield node, self._references.follow(node)
            except UnsupportedError:
                yield node, node

    def _shared(self, node: Any) -> Mapping[str, str] | None:
        """Return the reference to a parameter of the whole document where it is in 3.0."""
        reference = node.get("$ref") if isinstance(node, Mapping) else None
        if isinstance(reference, str) and reference.startswith(_PARAMETERS):
            return {"$ref": f"#/components/parameters/{reference.removeprefix(_PARAMETERS)}"}
        return None


def _parameter(written: Any) -> Any:
    """Return a parameter of the path, the query or a header."""
    if not isinstance(written, Mapping) or "$ref" in written:
        return written
    kept = {
        key: value for key, value in written.items() if key not in (*_SCHEMA, "collectionFormat")
    }
    csv = {"style": "form", "explode": False} if written.get("in") == "query" else {}
    return {**kept, "schema": _schema(written), **_style(written, csv)}


def _style(written: Mapping[str, Any], csv: Mapping[str, Any]) -> Mapping[str, Any]:
    if written.get("type") != "array":
        return {}
    collection = written.get("collectionFormat", "csv")
    return csv if collection == "csv" else _STYLES.get(str(collection), {"style": str(collection)})


def _schema(written: Mapping[str, Any]) -> dict[str, Any]:
    schema = {key: written[key] for key in _SCHEMA if key in written}
    return {**schema, "type": "string", "format": "binary"} if _is_file(written) else schema


def _form(fields: list[Mapping[str, Any]], consumes: list[str]) -> dict[str, Any]:
    """Return the body of fields. Files need multipart/form-data, whatever the document says."""
    types = [name for name in consumes if name.partition(";")[0].strip() in (_FORM, _MULTIPART)]
    if any(map(_is_file, fields)):
        types = [name for name in types if name.startswith(_MULTIPART)] or [_MULTIPART]
    properties, encoding = {}, {}
    for field in fields:
        name, about = str(field.get("name")), field.get("description")
        described = {"description": about} if isinstance(about, str) else {}
        properties[name] = {**_schema(field), **described}
        if style := _style(field, {"style": "form", "explode": False}):
            encoding[name] = style
    required = [str(field.get("name")) for field in fields if field.get("required") is True]
    schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    media = {"schema": schema, "encoding": encoding}
    return {"required": bool(required), "content": dict.fromkeys(types or [_FORM], media)}


def _scheme(written: Any) -> Any:
    """Return a security scheme."""
    kind = written.get("type") if isinstance(written, Mapping) else None
    if kind == "basic":
        return {**written, "type": "http", "scheme": "basic"}
    if kind == "oauth2":
        flow = str(written.get("flow"))
        urls = ("authorizationUrl", "tokenUrl", "scopes")
        details = {key: written[key] for key in urls if key in written}
        return {"type": "oauth2", "flows": {_FLOWS.get(flow, flow): details}}
    return written


def _is_body(parameter: Any) -> bool:
    return isinstance(parameter, Mapping) and parameter.get("in") in ("body", "formData")


def _is_file(parameter: Mapping[str, Any]) -> bool:
    return parameter.get("type") == "file"


def _members(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    members = document.get(name)
    return members if isinstance(members, Mapping) else {}


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
