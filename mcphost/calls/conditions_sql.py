"""Conditions on rows of this package, in the SQL of both databases (`audit.writer.conditions`)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from mcphost.audit.writer.conditions import POSTGRESQL, SQLITE, Effect, RowChange, Steps
from mcphost.feed.loop import loop
from mcphost.feed.services import ANNOUNCEMENTS, ANNOUNCING

Effects = Mapping[Effect, Sequence[Mapping[str, Any]]]
"""The rows of each effect of a condition."""


class Lock(NamedTuple):
    """Rows of `table` that a change locks first, those for which the SQL template `condition` is true.

    PostgreSQL locks them in the order of their ids. `free`: rows that others have locked are left
    out. SQLite has one writing transaction at a time.
    """

    table: str
    condition: str
    free: bool = False

    @property
    def template(self) -> str:
        """The statement that locks the rows on PostgreSQL, and returns their nonces."""
        which = f"FROM {self.table}, {{r}} WHERE {self.condition} ORDER BY {self.table}.id"
        return f"SELECT r.nonce {which} FOR UPDATE{' SKIP LOCKED' if self.free else ''}"


def change(
    name: str,
    columns: Mapping[str, str],
    *make: str,
    lock: Lock | None = None,
    made: str = "",
    reads: bool = False,
) -> RowChange:
    """Make a change from SQL templates. `columns` are its values, with their PostgreSQL types.

    Placeholders stand for what differs between the databases: `{r}` are the rows of the parameter,
    as `r`; `{before}` is whether the step before returned the row, or for the first one whether it
    is among those of the `lock`; `{now}` is the time, `{later}` is `r.seconds` after it; `{hex}`
    begins and `{end}` ends an expression for an id of 32 hexadecimal digits.
    """
    made_steps = {vendor: steps[0] for vendor, steps in _by_vendor(name, columns, (made,)).items()}
    steps = _by_vendor(name, columns, make, lock)
    return RowChange(name, steps, made_steps if made else None, reads)


def effect(name: str, columns: Mapping[str, str], *steps: str) -> Effect:
    """Make an effect from SQL templates, as `change`. `{held}` is whether `r`'s condition took hold."""
    return Effect(name, _by_vendor(name, {**columns, "nonce": "text"}, steps))


_ANNOUNCE: Final = Effect(ANNOUNCEMENTS, ANNOUNCING, loop.announced)


def announcement(change_name: str, tenant: UUID, object_id: str) -> Effects:
    """The effect that announces a change to all processes (`feed.services.announce`)."""
    return announcements([(change_name, tenant, object_id)])


def announcements(about: Sequence[tuple[str, UUID, str]]) -> Effects:
    """As `announcement`, for several changes: each a name, a tenant and an object id."""
    return {
        _ANNOUNCE: [
            {"tenant": tenant.hex, "name": change_name, "object_id": object_id}
            for change_name, tenant, object_id in about
        ]
    }


def _by_vendor(
    name: str, columns: Mapping[str, str], templates: tuple[str, ...], lock: Lock | None = None
) -> Steps:
    words = _words(columns)
    is_locked = "true"
    locking = templates
    if lock is not None:
        condition = lock.condition.format_map(words[SQLITE])
        is_locked = f"EXISTS (SELECT 1 FROM {lock.table} WHERE {condition})"  # noqa: S608
        locking = (lock.template, *templates)
    return {
        SQLITE: tuple(
            template.format_map({**words[SQLITE], "before": "true" if number else is_locked})
            for number, template in enumerate(templates)
        ),
        POSTGRESQL: tuple(
            template.format_map({**words[POSTGRESQL], "before": _is_in(f"{name}{number - 1}")})
            for number, template in enumerate(locking)
        ),
    }


def _is_in(step: str) -> str:
    return f"r.nonce IN (SELECT nonce FROM {step})"  # noqa: S608 - constants


def _words(columns: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    """What the placeholders stand for, but for `{before}`."""
    extracted = ", ".join(f"json_extract(value, '$.{name}') AS {name}" for name in columns)
    typed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return {
        SQLITE: {
            "r": f"(SELECT {extracted} FROM json_each(?)) AS r",  # noqa: S608 - constants
            "held": "true",
            "now": "strftime('%Y-%m-%d %H:%M:%f', 'now')",
            "later": "strftime('%Y-%m-%d %H:%M:%f', 'now', r.seconds || ' seconds')",
            "hex": "(",
            "end": ")",
        },
        POSTGRESQL: {
            "r": f"json_to_recordset(%s::json) AS r({typed})",
            "held": _is_in("held"),
            "now": "statement_timestamp()",
            "later": "statement_timestamp() + r.seconds * interval '1 second'",
            "hex": "replace(",
            "end": "::text, '-', '')",
        },
    }
