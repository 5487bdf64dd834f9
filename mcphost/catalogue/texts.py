"""Which texts, scopes and limits a tool may have. Each check returns sentences, none when fine."""

import re
import unicodedata
from typing import Any

MAX_TITLE = 200
MAX_DESCRIPTION = 8000
MAX_SCOPES = 16
MAX_SECONDS = 3600.0
EVERYBODYS_SCOPES = ("mcp:list", "mcp:call")

_SCOPE = re.compile(r"mcp:[A-Za-z0-9_.-]{1,64}")


def check_title(title: Any) -> list[str]:
    """An override of the title: one line of text, or nothing."""
    return _check_text(title, MAX_TITLE, allowed="")


def check_description(description: Any) -> list[str]:
    """An override of the description: text of several lines, or nothing."""
    return _check_text(description, MAX_DESCRIPTION, allowed="\n\r\t")


def check_scopes(scopes: Any) -> list[str]:
    """The scopes that a caller needs beside those for listing and calling."""
    if not isinstance(scopes, list | tuple):
        return ["Scopes are a list of texts."]
    if len(scopes) > MAX_SCOPES:
        return [f"A tool asks for at most {MAX_SCOPES} scopes."]
    return [problem for scope in scopes if (problem := _scope_problem(scope))]


def check_time_limit(seconds: Any) -> list[str]:
    """Seconds for one round, or None for the code's or the platform's."""
    if seconds is None:
        return []
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 < seconds <= MAX_SECONDS:
        return [f"A time limit is more than 0 and at most {MAX_SECONDS:g} seconds."]
    return []


def _check_text(text: Any, longest: int, *, allowed: str) -> list[str]:
    if not isinstance(text, str):
        return ["This is a text."]
    if len(text) > longest:
        return [f"At most {longest} characters; this has {len(text)}."]
    # Cc are control characters (U+0000 breaks PostgreSQL), Cs lone surrogates (no UTF-8).
    bad = next(
        (c for c in text if c not in allowed and unicodedata.category(c) in ("Cc", "Cs")), ""
    )
    return [f"The character U+{ord(bad):04X} is not allowed here."] if bad else []


def _scope_problem(scope: Any) -> str | None:
    if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):
        return f"{str(scope)[:80]!r} is not a scope: `mcp:` and 1 to 64 of A-Z a-z 0-9 _ . -"
    if scope in EVERYBODYS_SCOPES:
        return f"{scope} is asked of every caller anyway; leave it out."
    return None
