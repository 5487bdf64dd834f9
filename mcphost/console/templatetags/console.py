"""Template filters for times, durations, sizes, states and JSON."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince, timeuntil

register = template.Library()

NEAR = timedelta(days=31)
"""Beyond this, a date is shown, because it says more than "2 months ago"."""

_TONES: Mapping[str, str] = {
    "published": "good",
    "live": "good",
    "active": "good",
    "standby": "info",
    "retiring": "info",
    "retired": "plain",
    "destroyed": "plain",
    "complete": "good",
    "draft": "plain",
    "input_required": "info",
    "yielded": "info",
    "deferred": "info",
    "disabled": "plain",
    "cancelled": "plain",
    "revoked": "plain",
    "expired": "plain",
    "closed": "plain",
    "unknown": "warn",
    "orphaned": "warn",
    "without consent": "warn",
    "open": "info",
    "void": "warn",
    "accepted": "good",
    "declined": "plain",
    "withdrawn": "plain",
    "tool_error": "warn",
    "invalid_arguments": "warn",
}
"""The colour of each state or outcome; one that is not listed is a failure."""


@register.filter
def when(moment: datetime | None) -> str | SafeString:
    """A relative time, with the exact time as its title."""
    if moment is None:
        return "never"
    exact = moment.astimezone(timezone.get_current_timezone()).strftime("%Y-%m-%d %H:%M:%S %Z")
    iso = moment.isoformat()
    return format_html('<time datetime="{}" title="{}">{}</time>', iso, exact, _said(moment))


def _said(moment: datetime) -> str:
    now = timezone.now()
    if abs(now - moment) > NEAR:
        return moment.astimezone(timezone.get_current_timezone()).strftime("%Y-%m-%d")
    if abs(now - moment) < timedelta(minutes=1):
        return "just now" if moment <= now else "in a moment"
    if moment > now:
        return f"in {timeuntil(moment, now, depth=1)}"
    return f"{timesince(moment, now, depth=1)} ago"


@register.filter
def took(microseconds: int | None) -> str:
    """A duration in the unit that suits it."""
    if microseconds is None:
        return "-"
    if microseconds < 1_000_000:
        return f"{microseconds / 1000:.1f} ms"
    return f"{microseconds / 1_000_000:.2f} s"


@register.filter
def lasted(seconds: float | None) -> str:
    """How long a person took, in at most two units."""
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if hours else f"{minutes} min {rest} s"


@register.filter
def size(count: int | None) -> str:
    """A number of bytes in the unit that suits it."""
    if count is None:
        return "-"
    return f"{count} B" if count < 1024 else f"{count / 1024:.1f} KiB"


@register.filter
def badge(word: str) -> SafeString:
    """A state or an outcome as a badge in its colour."""
    tone = _TONES.get(word, "bad")
    return toned(tone, word.replace("_", " "))


def toned(tone: str, said: str) -> SafeString:
    """A text as a badge in a colour."""
    return format_html('<span class="c-badge c-{}">{}</span>', tone, said)


@register.filter
def pretty(value: Any) -> str:
    """Indented JSON. The template escapes it like any other text."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


MOST_SHOWN = 500
"""Characters shown of a string within JSON: long Base64 is not worth reading."""


@register.filter
def shortened(value: Any) -> Any:
    """JSON with long strings cut and their full length appended."""
    if isinstance(value, str) and len(value) > MOST_SHOWN:
        return f"{value[:MOST_SHOWN]}… ({len(value)} characters)"
    if isinstance(value, Mapping):
        return {name: shortened(each) for name, each in value.items()}
    return [shortened(each) for each in value] if isinstance(value, list | tuple) else value


# Not repeated: a version's label has its number and digest, and a user is shown as the target.
_TOLD = frozenset({"digest", "number", "user"})


@register.filter
def brief(facts: Mapping[str, Any]) -> str:
    """The facts of an entry in one line, without those that its row shows elsewhere."""
    return ", ".join(
        f"{name.replace('_', ' ')}: {_plain(value)}"
        for name, value in facts.items()
        if value not in (None, "", []) and name not in _TOLD
    )


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@register.filter
def at(mapping: Mapping[Any, Any], key: Any) -> Any:
    """The value of a key in a mapping, or None."""
    return mapping.get(key)
