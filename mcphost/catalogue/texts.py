"""Validation of a primitive's texts, scopes and limits. Each check returns sentences, or none."""

import re
import unicodedata
from typing import Any

from django.conf import settings

from mcphost.tenants.roles import COMMON_SCOPES

MAX_TITLE = 200
MAX_DESCRIPTION = 8000
MAX_SCOPES = 16
MAX_SECONDS = 3600.0

_SCOPE = re.compile(r"mcp:[A-Za-z0-9_.-]{1,64}")


def check_title(title: Any) -> list[str]:
    """Check an override of the title: one line of text, or nothing."""
    return _check_text(title, MAX_TITLE, allowed="")


def check_description(description: Any) -> list[str]:
    """Check an override of the description: text of several lines, or nothing."""
    return _check_text(description, MAX_DESCRIPTION, allowed="\n\r\t")


def check_note(note: Any, longest: int) -> list[str]:
    """Check the note of a publication: text of several lines, or nothing."""
    return _check_text(note, longest, allowed="\n\r\t")


def check_scopes(scopes: Any) -> list[str]:
    """Check the scopes that a caller needs besides those for listing and calling."""
    if not isinstance(scopes, list | tuple):
        return ["Scopes must be a list of strings."]
    if len(scopes) > MAX_SCOPES:
        return [f"At most {MAX_SCOPES} scopes are allowed."]
    problems: list[str] = []
    for scope in scopes:
        if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):
            shown = repr(str(scope)[:80])
            problems.append(f"{shown} is not a scope: `mcp:` and 1 to 64 of A-Z a-z 0-9 _ . -")
        elif scope in COMMON_SCOPES:
            problems.append(f"{scope} is required of every caller anyway; leave it out.")
    return problems


def check_time_limit(seconds: Any) -> list[str]:
    """Check the seconds for one round, or None for the code's or the platform's."""
    return _check_seconds(seconds, MAX_SECONDS, "The time limit")


def check_answer_within(seconds: Any) -> list[str]:
    """Check the seconds that a question waits, or None for the code's or the platform's."""
    return _check_seconds(seconds, settings.MCPHOST_MAX_ANSWER_SECONDS, "The response time limit")


def check_target(seconds: Any) -> list[str]:
    """Check the seconds that people should need for an answer, or None for no target."""
    return _check_seconds(seconds, settings.MCPHOST_MAX_ANSWER_SECONDS, "The target time")


def _check_seconds(seconds: Any, longest: float, label: str) -> list[str]:
    if seconds is None:
        return []
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 < seconds <= longest:
        return [f"{label} must be more than 0 and at most {longest:g} seconds."]
    return []


def _check_text(text: Any, longest: int, *, allowed: str) -> list[str]:
    if not isinstance(text, str):
        return ["This must be a string."]
    if len(text) > longest:
        return [f"At most {longest} characters; this has {len(text)}."]
    # Cc are control characters (U+0000 breaks PostgreSQL), Cs lone surrogates (no UTF-8).
    bad = next(
        (c for c in text if c not in allowed and unicodedata.category(c) in ("Cc", "Cs")), ""
    )
    return [f"The character U+{ord(bad):04X} is not allowed here."] if bad else []
