"""`manage.py keys`: the life of the platform's keys, from the command line."""

import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.vault import lifecycle, listing
from mcphost.vault.errors import VaultError
from mcphost.vault.listing import KeyRow
from mcphost.vault.rewrapping import rewrap, wrapping
from mcphost.vault.states import KeyState, Verb, diagram

ACTOR: Final = Actor.system("manage.py keys")
LOOK_SECONDS: Final = 0.25
_COLUMNS: Final = ("KEY", "STATE", "SINCE (UTC)", "IN FLIGHT", "")
_NOTES: Final = {
    KeyState.STANDBY: "every process reads it; it seals at {until}",
    KeyState.ACTIVE: "seals",
    KeyState.RETIRING: "opens until {until}, then retires by itself",
    KeyState.RETIRED: "opens nothing; can be destroyed",
    KeyState.DESTROYED: "",
}


class Command(BaseCommand):
    """Shows and changes the key ring. Running processes hear of it through the feed."""

    help = (
        "The keys that seal what clients hold: list, rotate, retire and destroy them, or wrap them "
        "under a new master key."
    )
    pause = staticmethod(time.sleep)

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        verbs.add_parser("list", help="every key, its state, and how much is in flight under it")
        rotate = verbs.add_parser("rotate", help="have a new key seal, while everything runs")
        rotate.add_argument(
            "--compromised",
            action="store_true",
            help="somebody else may know the key: it opens nothing any more, at once",
        )
        for verb, text in (
            ("retire", "have a key open nothing any more, before its last token has expired"),
            ("destroy", "erase the secret of a retired key, for good"),
        ):
            one = verbs.add_parser(verb, help=text)
            one.add_argument("key", help="its id, as `list` shows it")
            one.add_argument("--yes", action="store_true", help="do not ask")
        anew = verbs.add_parser("rewrap", help="wrap everything by the master keys that are given")
        anew.add_argument("--yes", action="store_true", help="do not ask")
        verbs.add_parser("states", help="which verb leads from which state to which")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        try:
            getattr(self, f"_{verb}")(options)
        except VaultError as error:
            raise CommandError(str(error)) from None

    def _list(self, options: dict[str, Any]) -> None:
        rows = listing.keys(timezone.now())
        if not rows:
            self.stdout.write("No keys: `manage.py init` makes the first.")
            return
        for line in _table([_COLUMNS, *map(_row, rows)]):
            self.stdout.write(line)
        self.stdout.write(_wrapped_how())

    def _rotate(self, options: dict[str, Any]) -> None:
        lifecycle.tend(ACTOR)  # a rotation that nobody took to its end is no reason to refuse
        new = lifecycle.rotate(ACTOR, compromised=options["compromised"])
        if options["compromised"]:
            self._tell_of_compromise(new)
            return
        self.stdout.write(
            f"The key {new} is written. It seals in {lifecycle.STANDBY.seconds} seconds, when every "
            "process that is ready has read it."
        )
        self._wait_for(new)

    def _wait_for(self, new: str) -> None:
        try:
            while (row := listing.key(new, timezone.now())).state is KeyState.STANDBY:
                self.pause(LOOK_SECONDS)
                lifecycle.tend(ACTOR)
        except KeyboardInterrupt:
            raise CommandError(
                f"Not waited for: a process that serves has {new} seal within some seconds, or the "
                "next `keys rotate` does. To call the rotation off: `keys retire` it."
            ) from None
        if row.state is KeyState.RETIRED:
            raise CommandError(f"Somebody called the rotation off: {new} is retired.")
        self.stdout.write(f"The key {new} seals now.")
        self._tell_of_those_that_open()

    def _tell_of_compromise(self, new: str) -> None:
        self.stdout.write(
            f"The key {new} seals now. What was sealed under the old one is refused, from the moment "
            "that a process hears of it (a second at most while it is ready)."
        )
        self._tell_of_those_that_open()

    def _tell_of_those_that_open(self) -> None:
        for row in listing.keys(timezone.now()):
            if row.state is KeyState.RETIRING:
                self.stdout.write(
                    f"The key {row.id} opens until {_time(row.until)} UTC ({row.waiting}), then "
                    f"retires by itself; `keys retire {row.id}` does not wait."
                )

    def _retire(self, options: dict[str, Any]) -> None:
        row = self._asked(options, Verb.RETIRE, "Retire")
        lifecycle.retire(row.id, ACTOR)
        self.stdout.write(f"The key {row.id} is retired: it opens nothing any more.")

    def _destroy(self, options: dict[str, Any]) -> None:
        row = self._asked(options, Verb.DESTROY, "Destroy")
        lifecycle.destroy(row.id, ACTOR)
        self.stdout.write(f"The key {row.id} is destroyed.")

    def _asked(self, options: dict[str, Any], verb: Verb, word: str) -> KeyRow:
        """The key, once it is clear that the verb is possible and meant."""
        row = listing.key(options["key"], timezone.now())
        lifecycle.require(row.id, row.state, verb)
        if not options["yes"]:
            self._confirm(f"{word} the key {row.id}? {_consequence(row, verb)} [y/N] ")
        return row

    def _confirm(self, question: str) -> None:
        try:
            said = input(question)
        except EOFError:
            raise CommandError(
                "Nobody is there to answer: `--yes` goes on without asking."
            ) from None
        if said.strip().lower() not in ("y", "yes"):
            raise CommandError("Nothing was changed.")

    def _rewrap(self, options: dict[str, Any]) -> None:
        how = wrapping()
        if how.others and not options["yes"]:
            self._confirm(
                f"The master key {' and '.join(how.others)} is not given, and will open nothing any "
                "more: processes that have no other stop working. Go on? [y/N] "
            )
        done = rewrap(ACTOR)
        self.stdout.write(
            f"Wrapped anew: {_count(done.keys, 'key')} and the secrets of "
            f"{_count(done.tenants, 'tenant')}, by the master key {' and '.join(how.given)}."
        )
        if done.damaged:
            raise CommandError("Left as they are:\n" + "\n".join(done.damaged))
        if len(how.given) > 1:
            self.stdout.write(
                "Next: make the new key the master key of every process, then `keys rewrap` again."
            )

    def _states(self, options: dict[str, Any]) -> None:
        for line in diagram():
            self.stdout.write(line)


def _consequence(row: KeyRow, verb: Verb) -> str:
    if row.state is KeyState.STANDBY:
        return "Nothing was sealed under it; the rotation is called off."
    if verb is Verb.DESTROY:
        return f"It opens nothing as it is ({row.waiting}); nothing brings it back."
    return f"{row.waiting[0].upper()}{row.waiting[1:]}: their answers will be refused."


def _row(row: KeyRow) -> tuple[str, ...]:
    note = _NOTES[row.state].format(until=_time(row.until))
    return (row.id, row.state.value, _time(row.since), str(row.in_flight), note)


def _time(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def _table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    rows = list(rows)
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _wrapped_how() -> str:
    how = wrapping()
    given = " and ".join(how.given)
    if not how.left:
        return f"Everything is wrapped by the master key {given}."
    return f"The master key is {given}; {how.left} of all secrets are wrapped otherwise: `keys rewrap`."
