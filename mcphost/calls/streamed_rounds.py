"""Rounds of calls on streams, as conditions on which their records depend.

A round begins where the call waits, and its end is kept before anybody is shown it: so no round runs
twice at once, and none again that has ended.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcphost.audit.conditions import Change, Condition
from mcphost.calls.changes import change
from mcphost.calls.states import CallState
from mcphost.calls.streamed import Taking


def start(taking: Taking, number: int) -> Condition:
    """The call waits after the round before, and is this taking's: now it runs."""
    return _condition(_START, taking, number, dict)


def conclude(taking: Taking, number: int, reply: Callable[[], str]) -> Condition:
    """The round runs and is this taking's: it has ended, with a reply that has yet to be shown.

    `reply` is called in the writer's thread, for what is not empty.
    """
    return _condition(_CONCLUDE, taking, number, lambda: {"reply": reply()})


def _condition(
    what: Change, taking: Taking, number: int, more: Callable[[], Mapping[str, Any]]
) -> Condition:
    nonce = f"{taking.call.hex} {number}"

    def row() -> Mapping[str, Any]:
        # What names the call comes first: rows are sorted by their text.
        named = {"call": taking.call.hex, "round": number, "nonce": nonce}
        return {**named, "owner": taking.owner.hex, "epoch": taking.epoch, **more()}

    return Condition(what, nonce, row)


_COLUMNS: Final = {
    "call": "uuid",
    "round": "bigint",
    "nonce": "text",
    "owner": "uuid",
    "epoch": "bigint",
    "reply": "text",
}
_CALL: Final = "calls_streamedcall"
_MINE: Final = f"{_CALL}.id = r.call AND {_CALL}.owner = r.owner AND {_CALL}.epoch = r.epoch"


def _change(changes: str, before: str, after: str) -> Change:
    running = f"{_CALL}.state = '{CallState.RUNNING}' AND {_CALL}.round = r.round"
    return change(
        _COLUMNS,
        f"UPDATE {_CALL} SET {changes} FROM {{r}} WHERE {_MINE} AND {before} "  # noqa: S608 - constants
        f"RETURNING {{hex}}{_CALL}.id{{end}} || ' ' || {_CALL}.round AS nonce",
        f"SELECT r.nonce FROM {{r}}, {_CALL} WHERE {_MINE} AND {running} AND {after}",  # noqa: S608
    )


_START = _change(
    f"state = '{CallState.RUNNING}', round = r.round",
    f"{_CALL}.state = '{CallState.WAITING}' AND {_CALL}.round = r.round - 1",
    f"{_CALL}.reply = ''",
)
_CONCLUDE = _change(
    "reply = r.reply",
    f"{_CALL}.state = '{CallState.RUNNING}' AND {_CALL}.round = r.round AND {_CALL}.reply = ''",
    f"{_CALL}.reply <> ''",
)
