"""Web addresses in texts and in URL-mode questions (spec: client/elicitation, "Safe URL Handling").

An address that the user is asked to open has a field of its own, which clients show in full before
they ask for consent. The texts of a form must contain no address: users would follow it unchecked.
"""

import re
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from mcphost.protocol.uris import normalize

_MENTIONED: Final = re.compile(r"https?://|(?<![\w.-])www\.\w", re.IGNORECASE)
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that need no encryption: the traffic does not leave the machine."""


_SECRET_PARAMETERS: Final = frozenset(
    [
        "token",
        "access_token",
        "accesstoken",
        "id_token",
        "refresh_token",
        "auth_token",
        "authtoken",
        "session_token",
        "bearer",
        "jwt",
        "key",
        "api_key",
        "apikey",
        "api-key",
        "access_key",
        "secret",
        "client_secret",
        "secret_key",
        "private_key",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "pass",
        "pin",
        "otp",
        "code",
        "auth_code",
        "authorization_code",
        "credential",
        "credentials",
        "authorization",
        "session",
        "sessionid",
        "session_id",
        "sid",
        "email",
        "e-mail",
        "mail",
        "username",
        "user_name",
        "user",
        "login",
        "phone",
        "phone_number",
        "ssn",
    ]
)
"""Names of parameters that hold credentials or identify a person (spec: client/elicitation, "Safe
URL Handling": no sensitive information about the end user, and no pre-authenticated address)."""


def mentions_one(text: str) -> bool:
    """Whether a text contains something that clients would turn into a link."""
    return _MENTIONED.search(text) is not None


def url_problem(url: Any) -> str | None:
    """Return the problem that keeps an address from being one that users are asked to open, or
    None."""
    if not isinstance(url, str):
        return "the address must be a text"
    try:
        normalize(url)
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("https", "http"):
        return "the address must begin with https://"
    if not parts.hostname:
        return "the address must name a host"
    if "@" in parts.netloc:
        return "the address must not contain a user name or password"
    _, _, routed = parts.fragment.rpartition("?")
    for text in (parts.query, parts.fragment, routed):
        for name, _ in parse_qsl(text.replace(";", "&"), keep_blank_values=True):
            if name.lower() in _SECRET_PARAMETERS:
                return (
                    f"the address must not contain the parameter {name!r}: "
                    "users would share its value"
                )
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        return "the address must begin with https:// (http:// is for localhost only)"
    return None
