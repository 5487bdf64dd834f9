"""The credentials of operations: security schemes as headers, parameters and cookies with secrets."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from mcphost.kinds.http.openapi_parameters import IGNORED, TOKEN
from mcphost.kinds.http.openapi_references import SHAPE, References, UnsupportedError

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNFIT: Final = re.compile(r"[^a-z0-9]+")


class Credential(NamedTuple):
    """A security scheme of the document that an operation uses, and what its secret must be.

    `secret` is the name that is used if no other is chosen.
    """

    scheme: str
    secret: str
    expected: str


class SchemeReader:
    """Reads the security schemes of one document. `chosen` are names of secrets by scheme."""

    def __init__(
        self, document: Mapping[str, Any], references: References, secrets: Mapping[str, str]
    ) -> None:
        self._document = document
        self._references = references
        self._secrets = secrets

    def schemes(
        self, operation: Mapping[str, Any], notes: list[str]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Return the schemes of the first security requirement that can be met, by name.

        Adds to `notes` why there is none. Raises UnsupportedError.
        """
        required = operation.get("security", self._document.get("security"))
        if not isinstance(required, list) or not required:
            return {}
        problems = []
        for alternative in required:
            if not isinstance(alternative, Mapping):
                continue
            try:
                schemes = {name: self._scheme(name) for name in alternative}
                _check_headers(schemes.values())
            except UnsupportedError as error:
                problems.append(error)
            else:
                if not schemes and len(required) > 1:
                    notes.append("Its security is optional: it is sent without credentials.")
                return schemes
        raise problems[0] if problems else UnsupportedError("its security cannot be read")

    def authorize(
        self, schemes: Mapping[str, Mapping[str, Any]], request: dict[str, Any]
    ) -> tuple[Credential, ...]:
        """Add the credentials of security schemes to a request.

        Schemes that write the same are one credential: documents with two flows of OAuth ask for both.
        """
        credentials: list[Credential] = []
        written: set[tuple[str, str, str]] = set()
        names = _secret_names(self._all if schemes else ())
        for name, scheme in schemes.items():
            proposed = names[name]
            used = self._secrets.get(name) or proposed
            expected, section, header, before = _describe_scheme(scheme)
            if (section, header, before) in written:
                continue
            written.add((section, header, before))
            request[section].append({"name": header, "value": f"{before}{{secrets.{used}}}"})
            credentials.append(Credential(name, proposed, expected))
        return tuple(credentials)

    @property
    def _all(self) -> Mapping[str, Any]:
        components = self._references.follow_object(self._document.get("components"))
        return self._references.follow_object(components.get("securitySchemes"))

    def _scheme(self, name: str) -> Mapping[str, Any]:
        scheme = self._references.follow(self._all.get(name))
        if not isinstance(scheme, Mapping):
            raise UnsupportedError(f"there is no security scheme {name!r}")
        return scheme


def fixed_names(schemes: Iterable[Mapping[str, Any]]) -> Collection[tuple[str, str]]:
    """Return the locations and names of parameters that are no arguments: a caller could send another
    value beside the secret."""
    names = {(str(scheme.get("in")), str(scheme.get("name")).lower()) for scheme in schemes}
    if any(location == "cookie" for location, _ in names):
        names.add(("header", "cookie"))
    return IGNORED | names


def _check_headers(schemes: Iterable[Mapping[str, Any]]) -> None:
    """Refuse schemes that need two values of one header. Raises UnsupportedError."""
    values: dict[str, str] = {}
    for scheme in schemes:
        _, section, header, before = _describe_scheme(scheme)
        is_single = section == "headers" and header.lower() != "cookie"
        if is_single and values.setdefault(header.lower(), before) != before:
            raise UnsupportedError(f"its security needs two values of {header}")


def _describe_scheme(scheme: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return what a scheme's secret must be, the list of the request that it belongs to, its name there,
    and what is written before it."""
    kind, location = scheme.get("type"), scheme.get("in")
    name = scheme.get("name") if kind == "apiKey" else "Authorization"
    if not isinstance(name, str):
        raise UnsupportedError(SHAPE)
    match kind:
        case "apiKey" if location in ("header", "query"):
            return "the API key", "headers" if location == "header" else "query", name, ""
        case "apiKey" if location == "cookie" and not TOKEN.fullmatch(name):
            raise UnsupportedError(f"{name[:100]!r} is no name of a cookie")
        case "apiKey" if location == "cookie":
            return "the API key", "headers", "Cookie", f"{name}="
        case "http" if str(scheme.get("scheme")).lower() == "bearer":
            return "the bearer token", "headers", name, "Bearer "
        case "http" if str(scheme.get("scheme")).lower() == "basic":
            return "user:password", "headers", name, "Basic "
        case "oauth2" | "openIdConnect":
            return "an access token", "headers", name, "Bearer "
        case _:
            raise UnsupportedError(f"security of type {kind!r} is not supported")


def _secret_names(schemes: Iterable[str]) -> Mapping[str, str]:
    """Return names that secrets may have, a different one for each scheme."""
    names: dict[str, str] = {}
    for scheme in schemes:
        plain = _UNFIT.sub("_", _HUMP.sub("_", scheme.replace("OAuth", "Oauth")).lower())
        name = plain.lstrip("_0123456789")[:64].rstrip("_") or "secret"
        number, unused = 1, name
        while unused in names.values():
            number += 1
            unused = f"{name[:60]}_{number}"
        names[scheme] = unused
    return names
