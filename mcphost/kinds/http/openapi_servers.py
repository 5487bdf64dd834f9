"""Where the API of an OpenAPI document is."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from mcphost.kinds.http.openapi_references import References, UnsupportedError

VARIABLE: Final = re.compile(r"\{([^{}]+)\}")
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f\\]")
"""Characters that readers of URLs drop, or read as a slash."""
_HOST_BEGUN: Final = re.compile(r"([^/]*//)?[^/]*")
"""What is before a part of the host, or before the scheme."""
_HOST_AND_PATH: Final = re.compile(r"((?:[^/]*//[^/]*)?)(.*)", re.DOTALL)
_MAX_SHOWN: Final = 5


class ServerAddress(NamedTuple):
    """Where an API is: `base_url` replaces the servers of its document, or completes a relative one,
    as does `location`, from which the document was fetched."""

    base_url: str = ""
    location: str = ""


AS_DOCUMENTED: Final = ServerAddress()


def base_of(listed: Any, address: ServerAddress, references: References) -> str:
    """Return the address that paths are added to, from a list of servers. Raises UnsupportedError."""
    servers = references.follow(listed)
    url = ""
    if isinstance(servers, list) and servers:
        url = _server(references.follow_object(servers[0]))
    if _UNSAFE.search(url):
        raise UnsupportedError("its server is neither a whole address nor a path")
    try:
        base, own = address.base_url, urlsplit(url)
        if base:
            url = base if own.scheme or own.netloc or not url else urljoin(base, url)
        elif not own.scheme and (address.location or own.netloc):
            # Without a scheme it has that of the document (RFC 3986, section 5.2.2).
            url = urljoin(address.location or "https:", url or "/")
        host = urlsplit(url).hostname
    except ValueError:
        raise UnsupportedError(f"the address of its server cannot be read: {url[:200]}") from None
    if not host:
        raise UnsupportedError("the document does not say where the API is: give its address")
    return url.rstrip("/")


def server_notes(document: Mapping[str, Any]) -> list[str]:
    """Return what is chosen of the servers of a document, in sentences."""
    listed = document.get("servers")
    servers = (
        [server for server in listed if isinstance(server, Mapping)]
        if isinstance(listed, list)
        else []
    )
    notes = []
    if len(servers) > 1:
        urls = ", ".join(str(server.get("url"))[:200] for server in servers[1 : 1 + _MAX_SHOWN])
        notes.append(f"The first server is used. Others: {urls}.")
    variables = servers[0].get("variables") if servers else None
    if isinstance(variables, Mapping):
        for name, variable in list(variables.items())[:_MAX_SHOWN]:
            if isinstance(variable, Mapping):
                choice = variable.get("enum")
                choices = (
                    f" of {', '.join(map(str, choice[:9]))}" if isinstance(choice, list) else ""
                )
                notes.append(
                    f"The variable {name} of the server is {str(variable.get('default'))[:200]!r}"
                    f"{choices}, its default."
                )
    return [*notes, "Give another address of the API to change that."] if notes else []


def _server(server: Mapping[str, Any]) -> str:
    variables = server.get("variables") or {}

    url = str(server.get("url", ""))

    def default(match: re.Match[str]) -> str:
        variable = variables.get(match[1]) if isinstance(variables, Mapping) else None
        value = variable.get("default") if isinstance(variable, Mapping) else None
        if value is None:
            raise UnsupportedError(f"the variable {match[1][:100]!r} of its server has no default")
        value = str(value)
        rest_of_host = url[match.end() :].partition("/")[0]
        if "/" in value and rest_of_host and _HOST_BEGUN.fullmatch(url, 0, match.start()):
            raise UnsupportedError(f"the variable {match[1]!r} of its server ends the host")
        return value

    filled = VARIABLE.sub(default, url)
    if "{" in filled or "}" in filled:  # it would be read as a placeholder
        raise UnsupportedError("the address of its server has a brace")
    if filled == url:
        return url
    # The value of a variable may begin or end with the slash that is beside the variable, too.
    is_path = url.startswith("/") and not url.startswith("//")
    host, path = ("", filled) if is_path else _HOST_AND_PATH.findall(filled)[0]
    return host + re.sub("/{2,}", "/", path)
