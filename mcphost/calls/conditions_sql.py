"""Conditions on rows of this package, in the SQL of both databases (`audit.writer.conditions`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from mcphost.audit.writer.conditions import POSTGRESQL, SQLITE, Effect, RowChange, Steps
from mcphost.feed.loop import loop
from mcphost.feed.services import ANNOUNCEMENTS, ANNOUNCING

Effects = Mapping[Effect, Sequence[Mapping[str, Any]]]
"""The rows of each effect of a condition."""


def change(
    name: str, columns: Mapping[str, str], *make: str, made: str = "", reads: bool = False
) -> RowChange:
    """Make a change from SQL templates. `columns` are its values, with their PostgreSQL types.

    Placeholders stand for what differs between the databases: `{r}` are the rows of the parameter,
    as `r`; `{before}` is whether the step before returned the row; `{lock}` ends a query that locks
    its rows, `{lock_free}` one that leaves out rows locked by others; `{now}` is the time, `{later}` is `r.seconds` after it; `{hex}` begins and `{end}` ends
    an expression for an id of 32 hexadecimal digits.
    """
    known = {vendor: steps[0] for vendor, steps in _by_vendor(name, columns, (made,)).items()}
    return RowChange(name, _by_vendor(name, columns, make), known if made else None, reads)


def effect(
    name: str,
    columns: Mapping[str, str],
    *steps: str,
    committed: Callable[[], None] | None = None,
) -> Effect:
    """Make an effect from SQL templates, as `change`. `{held}` is whether `r`'s condition took hold."""
    return Effect(name, _by_vendor(name, {**columns, "nonce": "text"}, steps), committed)


_ANNOUNCE: Final = Effect(ANNOUNCEMENTS, ANNOUNCING, loop.announced)


def announcement(what: str, tenant: UUID, object_id: str) -> Effects:
    """The effect that announces a change to all processes (`feed.services.announce`)."""
    return {_ANNOUNCE: [{"tenant": tenant.hex, "what": what, "object_id": object_id}]}


def _by_vendor(name: str, columns: Mapping[str, str], templates: tuple[str, ...]) -> Steps:
    by_step = [_words(columns, f"{name}{number - 1}") for number in range(len(templates))]
    return {
        vendor: tuple(
            template.format_map(words[vendor])
            for template, words in zip(templates, by_step, strict=True)
        )
        for vendor in (SQLITE, POSTGRESQL)
    }


def _words(columns: Mapping[str, str], before: str) -> Mapping[str, Mapping[str, str]]:
    """What the placeholders stand for. `before` is PostgreSQL's name of the step before."""
    extracted = ", ".join(f"json_extract(value, '$.{name}') AS {name}" for name in columns)
    typed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return {
        SQLITE: {
            "r": f"(SELECT {extracted} FROM json_each(?)) AS r",  # noqa: S608 - constants
            "before": "true",
            "lock": "",  # there is one writing transaction at a time
            "lock_free": "",
            "held": "true",
            "now": "strftime('%Y-%m-%d %H:%M:%f', 'now')",
            "later": "strftime('%Y-%m-%d %H:%M:%f', 'now', r.seconds || ' seconds')",
            "hex": "(",
            "end": ")",
        },
        POSTGRESQL: {
            "r": f"json_to_recordset(%s::json) AS r({typed})",
            "before": f"r.nonce IN (SELECT nonce FROM {before})",  # noqa: S608 - constants
            "lock": "FOR UPDATE",
            "lock_free": "FOR UPDATE SKIP LOCKED",
            "held": "r.nonce IN (SELECT nonce FROM held)",
            "now": "statement_timestamp()",
            "later": "statement_timestamp() + r.seconds * interval '1 second'",
            "hex": "replace(",
            "end": "::text, '-', '')",
        },
    }
