"""How times, durations, sizes, states and JSON look on our pages."""

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
"""Farther away, a date says more than "2 months ago"."""

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
    "disabled": "plain",
    "cancelled": "plain",
    "revoked": "plain",
    "expired": "plain",
    "closed": "plain",
    "unknown": "warn",
    "orphaned": "warn",
    "tool_error": "warn",
    "invalid_arguments": "warn",
}
"""The colour of a word; what is not here is a failure."""


@register.filter
def when(moment: datetime | None) -> str | SafeString:
    """A time as people say it, with the exact one as its title."""
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
    """How long a person took, in the two units that matter."""
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
    """A state or an outcome, in its colour."""
    tone = _TONES.get(word, "bad")
    return toned(tone, word.replace("_", " "))


def toned(tone: str, said: str) -> SafeString:
    """Some words in a colour."""
    return format_html('<span class="c-badge c-{}">{}</span>', tone, said)


@register.filter
def pretty(value: Any) -> str:
    """JSON for people. It is escaped like any other text."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


MOST_SHOWN = 500
"""Characters of a text within JSON; nobody reads Base64."""


@register.filter
def shortened(value: Any) -> Any:
    """JSON whose long texts are cut, each saying how long it is."""
    if isinstance(value, str) and len(value) > MOST_SHOWN:
        return f"{value[:MOST_SHOWN]}… ({len(value)} characters)"
    if isinstance(value, Mapping):
        return {name: shortened(each) for name, each in value.items()}
    return [shortened(each) for each in value] if isinstance(value, list | tuple) else value


# The label of a version has its number and digest; a user stands in the place of the target.
_TOLD = frozenset({"digest", "number", "user"})


@register.filter
def brief(facts: Mapping[str, Any]) -> str:
    """The facts of an entry in a line, without what is told elsewhere in it."""
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
    """What a mapping has for a key."""
    return mapping.get(key)
