"""Template filters for times, durations, sizes, the colours of states, the ends of sandbox workers, and JSON."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

from django import template
from django.utils import timezone
from django.utils.html import conditional_escape, escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince, timeuntil

from mcphost.console.invisible_characters import code_points, with_code_points
from mcphost.identity.selectors import TokenListing

register = template.Library()
MAX_NAMED = 20
"""Members of a list in one line."""

NEAR = timedelta(days=31)
"""Beyond this, a date is shown, because it says more than "2 months ago"."""

_TONES: Mapping[str, str] = {
    "published": "good",
    "live": "good",
    "active": "good",
    "standby": "plain",
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


_ENDED_WORKERS: Mapping[str, str] = {
    "late": "silent for too long",
    "lost": "died",
    "cancelled": "with a cancelled call",
    "unclean": "not clean after a job",
    "worn": "after their share of jobs",
    "tenant": "to make room for another tenant",
    "check": "after checking a script",
    "closed": "as the process ended",
}


@register.filter
def ended_worker(reason: str) -> str:
    """Why workers of the sandbox were ended, in words."""
    return _ENDED_WORKERS.get(reason, reason)


@register.filter
def when(moment: datetime | None) -> str | SafeString:
    """A relative time, with the exact time in UTC as its title.

    The page's script writes the exact time in the viewer's zone beside it, in tables and lists.
    """
    if moment is None:
        return "never"
    iso, exact = moment.isoformat(), _exact(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', iso, exact, _relative_time(moment)
    )


@register.filter
def elapsed(moment: datetime) -> SafeString:
    """For how long something goes on that began at a moment, with the exact time in UTC as its title."""
    now = timezone.now()
    lasted_for = timesince(moment, now, depth=1)
    if now - moment < timedelta(minutes=1):
        lasted_for = "less than a minute"
    return format_html(
        '<time datetime="{}" title="since {}">for {}</time>',
        moment.isoformat(),
        _exact(moment),
        lasted_for,
    )


def _exact(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(" ", "milliseconds").replace("+00:00", " UTC")


def _relative_time(moment: datetime) -> str:
    now = timezone.now()
    if abs(now - moment) > NEAR:
        return moment.astimezone(timezone.get_current_timezone()).strftime("%Y-%m-%d")
    if abs(now - moment) < timedelta(minutes=1):
        return "just now" if moment <= now else "in a moment"
    if moment > now:
        return f"in\u00a0{_in_one_unit(nearly(moment - now), now)}"
    return f"{timesince(moment, now, depth=1)}\u00a0ago"


def _in_one_unit(remaining: timedelta, now: datetime) -> str:
    """A time that is left in its largest unit; weeks only if they are whole, for 13 days are not one week."""
    days = remaining.days
    if days > 7 and days % 7:
        return f"{days}\u00a0days"
    return timeuntil(now + remaining, now, depth=1)


def nearly(remaining: timedelta) -> timedelta:
    """A time that is left, rounded up if it is just below a whole unit: what lasts a week is not "6 days" at once.

    More than a day is rounded to the nearest one, so that two days are not called one after an hour.
    """
    day = timedelta(days=1)
    for unit in (day, timedelta(hours=1), timedelta(minutes=1)):
        if remaining > unit - unit / 24:
            whole = -(-remaining // unit) * unit
            margin = day / 2 if remaining > day else unit / 24
            return whole if whole - remaining < margin else remaining
    return remaining


@register.filter
def duration(microseconds: int | None) -> str:
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
    hours, spare_minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (spare_minutes, "min")) if hours else ((minutes, "min"), (rest, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


@register.filter
def milliseconds(count: int) -> str:
    """A time in milliseconds, as `lasted`."""
    return lasted(count / 1000)


@register.filter
def size(count: int | None) -> str:
    """A number of bytes in the unit that suits it."""
    if count is None:
        return "-"
    return f"{count} B" if count < 1024 else f"{count / 1024:.1f} KiB"


@register.filter
def badge(state: str) -> SafeString:
    """A state or an outcome as a badge in its colour."""
    return toned(tone(state), state.replace("_", " "))


@register.filter
def tone(state: str) -> str:
    """The colour of a state or an outcome: the same in badges and pictures."""
    return _TONES.get(state, "bad")


def toned(color: str, text: str) -> SafeString:
    """A text as a badge in a colour."""
    return format_html('<span class="c-badge c-{}">{}</span>', color, text)


_CODE = re.compile(r"`([^`]+)`")


@register.filter
def coded(text: object) -> SafeString:
    """A text with what stands between backticks as `<code>`; a formatted sentence as it is."""
    shown = str(text)  # of a formatted sentence, and of a message that is one, still a SafeString
    if isinstance(shown, SafeString):
        return shown
    return SafeString(_CODE.sub(r"<code>\1</code>", escape(shown)))


def format_sentence(text: str, *values: object) -> SafeString:
    """Return a text as `coded`, with values in place of each `{}`: their own backticks are shown.

    For names that people choose freely, such as a tenant's title, and for links within a sentence.
    """
    return format_html(coded(text), *values)


@register.filter
def visible(text: object) -> str:
    """A foreign text with the characters that are not seen named, where it is cut afterwards."""
    return with_code_points(str(text))


@register.filter
def unseen(text: object) -> str:
    """The code points of the characters in a field's text that are not seen; empty without any."""
    return code_points(text) if isinstance(text, str) else ""


MAX_INDENTED = 200_000
"""Characters of indented JSON. Indenting makes a text many times as long."""
MAX_BEGINNING = 20_000


@register.filter
def pretty(value: Any) -> str:
    """Indented JSON; on one line if indenting makes it long, as of long lists deep inside.

    The template escapes it like any other text.
    """
    written, length = [], 0
    for part in json.JSONEncoder(indent=2, ensure_ascii=False, default=str).iterencode(value):
        written.append(part)
        length += len(part)
        if length > MAX_INDENTED:
            return json.dumps(value, ensure_ascii=False, default=str)
    return "".join(written)


@register.filter
def beginning(text: str) -> str:
    """The beginning of a long text, which says that it is cut."""
    if len(text) <= MAX_BEGINNING:
        return text
    return f"{text[:MAX_BEGINNING]}… ({len(text)} characters)"


MAX_SHOWN = 500
"""Characters shown of a string within JSON: long Base64 is not worth reading."""


@register.filter
def shortened(value: Any) -> Any:
    """JSON with long strings cut and their full length appended."""
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        return f"{value[:MAX_SHOWN]}… ({len(value)} characters)"
    if isinstance(value, Mapping):
        return {name: shortened(member) for name, member in value.items()}
    return [shortened(member) for member in value] if isinstance(value, list | tuple) else value


@register.filter
def without_reference(label: str, reference: str) -> str:
    """The title in the label of a function, which ends in its name in brackets."""
    title, _, name = label.rpartition(" (")
    return title if title and reference.endswith(name.removesuffix(")")) else label


# Not repeated: a version's label has its number and digest, and a user is shown as the target.
_SHOWN_ELSEWHERE = frozenset({"digest", "number", "user"})
_SHOWN_BY_LINK = frozenset({"call", "tool"})
_FACT_LABELS: Mapping[str, str] = {
    "audience": "valid for",
    "consented": "issued by the owner",
    "expires_at": "expires",
    "metadata_documents_only": "only known clients may sign in",
    "query": "filter",
    "redirect_uri": "redirect URI",
    "redirect_uris": "redirect URIs",
}
"""The labels of facts that their names do not make by themselves."""
_FILTER_LABELS: Mapping[str, str] = {"tool": "Target", "principal": "Caller"}
"""The same for the filters of a list."""
_AUDIENCES: Mapping[str, str] = {"mcp": "MCP", "api": "API"}
_TIME = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?\+00:00$")
"""A time as entries have it; its line shows it to the minute."""


@register.filter
def target_name(facts: Mapping[str, Any]) -> str:
    """The name of an entry's target in its facts; empty without one."""
    return next((str(facts[key]) for key in _names_target(facts)), "")


def _names_target(facts: Mapping[str, Any]) -> list[str]:
    """The facts that name the target of an entry, the one that its row shows first."""
    return [key for key in ("user", "name", "client") if facts.get(key)]


@register.filter
def fact_pairs(facts: Mapping[str, Any], linked: object = None) -> list[tuple[str, str]]:
    """The facts of an entry as label and value, without those that its row shows elsewhere.

    `linked`: the target is a link to the call, which names the tool.
    """
    named = frozenset() if linked else frozenset(_names_target(facts)[:1])
    shown = _SHOWN_ELSEWHERE | (_SHOWN_BY_LINK if linked else named)
    if "owner" in facts:  # which names the service account
        shown |= {"service_account"}
    return [
        (_FACT_LABELS.get(name, name.replace("_", " ")), _brief_value(name, value))
        for name, value in facts.items()
        if value not in (None, "", []) and name not in shown
    ]


def _brief_value(name: str, value: Any) -> str:
    if name == "payloads" and isinstance(value, list):
        return str(len(value))
    if name == "audience":
        return _AUDIENCES.get(str(value), str(value))
    if name == "query":
        return ", ".join(
            f"{_FILTER_LABELS.get(key, key.replace('_', ' ').capitalize())} {text}"
            for key, text in parse_qsl(str(value))
        )
    return _names(value) if name == "changed" else _plain(value)


def _names(value: Any) -> str:
    """The names of changed fields."""
    names = value if isinstance(value, list) else [value]
    return " and ".join(str(name).replace("_", " ") for name in names)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        rest = f" and {len(value) - MAX_NAMED} more" if len(value) > MAX_NAMED else ""
        return " ".join(map(_plain, value[:MAX_NAMED])) + rest
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return _TIME.sub(r"\1 \2 UTC", value)
    return json.dumps(value, ensure_ascii=False, default=str)


@register.filter
def caller_name(label: str) -> str:
    """The name in the label of a caller, without the token."""
    return label.partition(" (“")[0]


@register.filter
def caller(label: str) -> SafeString:
    """The label of a caller: the name, and on a line below it the token, cut where it is long."""
    name, opened, token = label.partition(" (“")
    if not opened:
        return format_html('<bdi class="c-cut" title="{0}">{0}</bdi>', label)
    # The caller stands above: the issuer is only of interest if it is another user.
    token = token.removesuffix(")").removesuffix(f", issued by {name}")
    return format_html(
        '<bdi class="c-cut">{}</bdi> <bdi class="c-cut c-cut-two c-quiet c-fine" title="{}">“{}</bdi>',
        name,
        label,
        token,
    )


_KINDS: Mapping[str, str] = {
    "http": "HTTP request",
    "script": "script",
    "text": "text",
    "python": "Python function",
}


@register.filter
def kind_words(kind: str) -> str:
    """The kind of a tool, prompt or resource, as its form names it."""
    return _KINDS.get(kind, kind)


@register.filter
def owner(token: TokenListing) -> str | SafeString:
    """The owner of a token; a service account with an icon instead of its words."""
    if token.user_id is not None:
        return token.owner
    return format_html(
        '<span class="c-owner" title="{0}"><span class="material-symbols-outlined" aria-hidden="true">'
        'smart_toy</span><span class="c-unseen">service account </span><code>{1}</code></span>',
        token.owner,
        token.owner_name,
    )


@register.filter
def highlighted(text: str, sought: str) -> SafeString:
    """A text with each place that has what was searched for as `<mark>`."""
    if not sought:
        return conditional_escape(text)
    parts = re.split(f"({re.escape(sought)})", text, flags=re.IGNORECASE)
    return format_html_join(
        "",
        "{}",
        (
            (format_html("<mark>{}</mark>", part) if at % 2 else part,)
            for at, part in enumerate(parts)
        ),
    )


@register.filter
def at(mapping: Mapping[Any, Any] | None, key: Any) -> Any:
    """The value of a key in a mapping, or None; also without a mapping."""
    return mapping.get(key) if mapping else None
