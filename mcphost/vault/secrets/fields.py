"""What a secret's name, value, hosts and places may be."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import Final

from mcphost.tenants.errors import InvalidError

NAME_LIMIT: Final = 64
VALUE_LEAST: Final = 8
VALUE_LIMIT: Final = 4096
MAX_HOSTS: Final = 20
DEFAULT_PORT: Final = 443
PLACES: Final = ("header", "query", "body")
"""The parts of a request that may contain a value, in the order in which they are shown."""

NAME_RULE: Final = (
    f"Use 1 to {NAME_LIMIT} lower-case letters, digits and underscores, beginning with a letter."
)
VALUE_RULE: Final = (
    f"Use {VALUE_LEAST} to {VALUE_LIMIT} characters: ASCII letters, digits, punctuation, and spaces "
    "inside. Encode other values, for example as Base64."
)
"""A shorter value could not be masked in a response, and line breaks could forge a header."""

VALUE_NEEDED: Final = "Type the value in, too: to add a host or a place, you must know the value that will be sent there."

HOST_RULE: Final = (
    "Write a name such as api.example.com, or api.example.com:8443 for another port than 443."
)

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_VALUE: Final = re.compile(r"[!-~][ -~]*[!-~]")
_HOST: Final = re.compile(r"(?P<name>[^:]{1,253})(?::(?P<port>[1-9][0-9]{0,4}))?")
_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_HIGHEST_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class SecretRules:
    """Where a secret may be sent: hosts (see UsableSecret), and places in the request."""

    hosts: tuple[str, ...]
    places: tuple[str, ...]


def is_name(text: str) -> bool:
    """Whether a secret may have this name."""
    return _NAME.fullmatch(text) is not None


def check_new(name: str, value: str, hosts: Iterable[str], places: Iterable[str]) -> SecretRules:
    """Check a new secret; return its rules as `check_rules`. Raises InvalidError, without the value."""
    problems: dict[str, list[str]] = {}
    if not is_name(name):
        problems["name"] = [NAME_RULE]
    if not _fits(value):
        problems["value"] = [VALUE_RULE]
    return _rules(hosts, places, problems)


def check_value(value: str) -> None:
    """Raises InvalidError for a bad value, which is in no message."""
    if not _fits(value):
        raise InvalidError({"value": [VALUE_RULE]})


def check_rules(hosts: Iterable[str], places: Iterable[str]) -> SecretRules:
    """Return hosts and places in their normal form: sorted, each once. Raises InvalidError."""
    return _rules(hosts, places, {})


def _fits(value: str) -> bool:
    return VALUE_LEAST <= len(value) <= VALUE_LIMIT and _VALUE.fullmatch(value) is not None


def _rules(
    hosts: Iterable[str], places: Iterable[str], problems: dict[str, list[str]]
) -> SecretRules:
    normal_hosts = {text: _normal_host(text) for text in hosts}
    wrong = [text for text, host in normal_hosts.items() if host is None]
    names = sorted({host for host in normal_hosts.values() if host is not None})
    if wrong:
        problems["hosts"] = [f"{text[:80]!r} is no host name. {HOST_RULE}" for text in wrong[:3]]
    elif not 1 <= len(names) <= MAX_HOSTS:
        problems["hosts"] = [f"Name 1 to {MAX_HOSTS} hosts."]
    selected_places = set(places)
    if not selected_places or not selected_places <= set(PLACES):
        problems["places"] = ["Choose at least one of header, query and body."]
    if problems:
        raise InvalidError(problems)
    return SecretRules(
        tuple(names),
        tuple(secret_place for secret_place in PLACES if secret_place in selected_places),
    )


def _normal_host(text: str) -> str | None:
    """Return the host in lower case, without the default port; None if it is no host.

    A name of which the last label is a number must be an IPv4 address in its usual form: HTTP
    clients read other forms as addresses too.
    """
    match = _HOST.fullmatch(text.lower())
    if match is None:
        return None
    name, port = match["name"], int(match["port"] or DEFAULT_PORT)
    labels = name.split(".")
    if port > _HIGHEST_PORT or not all(map(_LABEL.fullmatch, labels)):
        return None
    if _NUMBER.fullmatch(labels[-1]):
        try:
            IPv4Address(name)
        except AddressValueError:
            return None
    return name if port == DEFAULT_PORT else f"{name}:{port}"
