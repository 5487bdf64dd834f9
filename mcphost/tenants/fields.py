"""The fields that an owner may set on a tenant, and their validation. No database here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from mcphost.egress.addresses import AllowedHost
from mcphost.protocol.images import matches_mime_type, parse_data_uri
from mcphost.tenants.errors import InvalidError

TITLE_LIMIT = 120
INSTRUCTIONS_LIMIT = 16 * 1024
HOSTS_LIMIT = 200
ORIGINS_LIMIT = 50
ICON_BYTES = 64 * 1024

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CONTROL_BUT_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ICON = re.compile(r"data:image/(?:png|jpeg|webp);base64,[A-Za-z0-9+/]+={0,2}")
_ICON_TEXT_LIMIT = ICON_BYTES * 4 // 3 + 64
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_HOST = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}|\[[0-9a-f:.]+\]")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class TenantFields:
    """All editable fields of a tenant. Limits are None when there is none.

    `outgoing_hosts` are the only ones that its tools may call (`egress.addresses.AllowedHost`); without
    any, all public ones over https. `metadata_documents_only`: members connect no OAuth client that
    registered itself.
    """

    title: str = ""
    icon: str = ""
    instructions: str = ""
    allowed_origins: tuple[str, ...] = ()
    outgoing_hosts: tuple[str, ...] = ()
    public: bool = False
    metadata_documents_only: bool = False
    calls_per_minute: int | None = None
    concurrent_calls: int | None = None


def check_slug(slug: str) -> str:
    """Return the slug. Raises InvalidError if no tenant can have it."""
    if not SLUG.fullmatch(slug):
        raise InvalidError(
            {
                "slug": [
                    "Use 1 to 40 lower-case letters, digits and hyphens; no hyphen first or last."
                ]
            }
        )
    return slug


def check_fields(fields: TenantFields) -> TenantFields:
    """Return the fields as they are stored: trimmed, origins as browsers send them, each once.

    Raises InvalidError with every problem of every field.
    """
    title, instructions = fields.title.strip(), fields.instructions
    title_problems, instructions_problems = [], []
    if not title:
        title_problems = ["Give a title."]
    elif len(title) > TITLE_LIMIT:
        title_problems = [f"Use at most {TITLE_LIMIT} characters."]
    elif _CONTROL.search(title):
        title_problems = ["Use one line of plain text."]
    if len(instructions) > INSTRUCTIONS_LIMIT:
        instructions_problems = [f"Use at most {INSTRUCTIONS_LIMIT} characters."]
    elif _CONTROL_BUT_LINES.search(instructions.replace("\r\n", "\n")):
        instructions_problems = ["Use plain text without control characters."]
    origins, origin_problems = _check_origins(fields.allowed_origins)
    hosts, host_problems = _check_hosts(fields.outgoing_hosts)
    problems_by_field: dict[str, Sequence[str]] = {
        "title": title_problems,
        "icon": icon_problems(fields.icon),
        "instructions": instructions_problems,
        "allowed_origins": origin_problems,
        "outgoing_hosts": host_problems,
        "calls_per_minute": limit_problems(fields.calls_per_minute),
        "concurrent_calls": limit_problems(fields.concurrent_calls),
    }
    problems = {name: texts for name, texts in problems_by_field.items() if texts}
    if problems:
        raise InvalidError(problems)
    return TenantFields(
        title=title,
        icon=fields.icon,
        instructions=instructions,
        allowed_origins=origins,
        outgoing_hosts=hosts,
        public=fields.public,
        metadata_documents_only=fields.metadata_documents_only,
        calls_per_minute=fields.calls_per_minute,
        concurrent_calls=fields.concurrent_calls,
    )


def icon_problems(icon: str) -> list[str]:
    """Return what is wrong with an icon: a data: URI of a small image whose type is right."""
    if not icon:
        return []
    if len(icon) > _ICON_TEXT_LIMIT:
        return [f"The image is larger than {ICON_BYTES // 1024} KiB."]
    if _ICON.fullmatch(icon) is None:
        return ["Give a data URI: data:image/png;base64,… (or jpeg, or webp)."]
    try:
        kind, data = parse_data_uri(icon)
    except ValueError:
        return ["The image is not valid Base64."]
    if len(data) > ICON_BYTES:
        return [f"The image is larger than {ICON_BYTES // 1024} KiB."]
    if not matches_mime_type(kind, data):
        return [f"The content does not match its MIME type ({kind})."]
    return []


def normal_origin(text: str) -> str:
    """Return an origin as browsers send it: lower case, without the scheme's default port.

    For loopback names, `*` stands for any port, because local programs choose theirs at run time.
    Raises ValueError, saying what is wrong, for everything that is not `scheme://host[:port]`.
    """
    lowered = text.strip().lower()
    scheme, separator, rest = lowered.partition("://")
    if not separator or not _SCHEME.fullmatch(scheme):
        raise ValueError(f"{text!r} is not scheme://host[:port].")
    if any(sign in rest for sign in "/?#@"):
        raise ValueError(f"{text!r} has more than scheme, host and port.")
    if rest.removesuffix(":*") in _LOOPBACK and rest.endswith(":*"):
        return f"{scheme}://{rest}"
    try:
        port = urlsplit(f"//{rest}").port
    except ValueError:
        raise ValueError(f"{text!r} has a bad host or port.") from None
    host = rest.removesuffix(f":{rest.rpartition(':')[2]}") if port is not None else rest
    if not _HOST.fullmatch(host):
        raise ValueError(f"{text!r} has a bad host or port; write other scripts in punycode.")
    if port is None or port == _DEFAULT_PORTS.get(scheme):
        return f"{scheme}://{host}"
    return f"{scheme}://{host}:{port}"


def limit_problems(limit: int | None) -> list[str]:
    """Return what is wrong with a limit: None, or a positive number that fits the database."""
    if limit is None or 0 < limit < 2**31:
        return []
    return ["Give a number above zero, or leave it empty for no limit."]


def _check_origins(origins: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    if len(origins) > ORIGINS_LIMIT:
        return (), [f"Give at most {ORIGINS_LIMIT} origins."]
    kept: dict[str, None] = {}
    problems = []
    for origin in origins:
        try:
            kept[normal_origin(origin)] = None
        except ValueError as error:
            problems.append(str(error))
    return tuple(kept), problems


def _check_hosts(hosts: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    if len(hosts) > HOSTS_LIMIT:
        return (), [f"Give at most {HOSTS_LIMIT} hosts."]
    kept: dict[str, None] = {}
    problems = []
    for host in map(str.lower, hosts):
        try:
            AllowedHost.parse(host)
        except ValueError as error:
            problems.append(str(error))
        kept[host] = None
    return tuple(kept), problems
