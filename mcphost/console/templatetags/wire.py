"""Template filters for the page of a call: JSON in colours, fingerprints, stretches of time."""

import re
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from itertools import islice
from typing import Any

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

from mcphost.console.templatetags.console import beginning, duration, lasted, pretty, visible

register = template.Library()

MAX_COLOURED = 1_000
"""Names and values of JSON in colours; what follows is plain. They make a text several times as long."""
_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?P<text>"(?:[^"\\]|\\.)*")'
    r"|(?P<word>\b(?:true|false|null)\b)|(?P<number>-?\b\d[\d.eE+-]*)"
)
_SECRET = frozenset({"requestState", "taskId", "sessionId", "Mcp-Session-Id"})
"""Names of JSON whose value is a credential, or is as good as one."""


@register.filter
def coloured(value: Any) -> SafeString:
    """JSON, indented and in colours, with characters that are not seen named."""
    return _coloured(visible(pretty(value)))


@register.filter
def coloured_beginning(value: Any) -> SafeString:
    """The beginning of JSON in colours, which says that it is cut."""
    return _coloured(visible(beginning(pretty(value))), MAX_COLOURED // 4)


@register.filter
def coloured_text(text: str) -> SafeString:
    """JSON that is a text already, in colours."""
    return _coloured(visible(text), MAX_COLOURED // 4)


def _coloured(text: str, limit: int = MAX_COLOURED) -> SafeString:
    parts: list[str] = []
    end = 0
    for match in islice(_TOKEN.finditer(text), limit):
        parts.append(conditional_escape(text[end : match.start()]))
        parts.append(
            f'<span class="c-json-{match.lastgroup}">{conditional_escape(match[0])}</span>'
        )
        end = match.end()
    parts.append(conditional_escape(text[end:]))
    return mark_safe("".join(parts))  # noqa: S308 - every part is escaped


@register.filter
def fingerprint(value: object) -> str:
    """A short digest of a credential, state or id, by which two can be told apart or known again."""
    digest = sha256(str(value).encode()).hexdigest()[:12]
    return "-".join(digest[at : at + 4] for at in (0, 4, 8))


@register.filter
def fingerprinted(value: Any) -> Any:
    """JSON with fingerprints in place of states and of ids that give access."""
    if isinstance(value, Mapping):
        return {
            name: f"[fingerprint {fingerprint(member)}]"
            if name in _SECRET and isinstance(member, str)
            else fingerprinted(member)
            for name, member in value.items()
        }
    return [fingerprinted(member) for member in value] if isinstance(value, list | tuple) else value


@register.filter
def lapse(length: timedelta) -> str:
    """A stretch of time, in the units that suit it."""
    if length < timedelta(seconds=1):
        return duration(length // timedelta(microseconds=1))
    return lasted(length.total_seconds())
