"""`manage.py keys`: list, rotate, retire, destroy and rewrap the platform's keys."""

import time
from datetime import datetime
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.vault import lifecycle, listing
from mcphost.vault.errors import VaultError
from mcphost.vault.listing import KeyRow
from mcphost.vault.rewrapping import rewrap, wrapping
from mcphost.vault.states import KeyState, KeyVerb, diagram

ACTOR: Final = Actor.system("manage.py keys")
POLL_SECONDS: Final = 0.25
_COLUMNS: Final = ("KEY", "STATE", "SINCE (UTC)", "IN FLIGHT", "")
_NOTES: Final = {
    KeyState.STANDBY: "being read by every process; becomes active at {until}",
    KeyState.ACTIVE: "seals new tokens",
    KeyState.RETIRING: "opens tokens until {until}, then is retired",
    KeyState.RETIRED: "opens no tokens; can be destroyed",
    KeyState.DESTROYED: "",
}


class Command(BaseCommand):
    """Shows and changes the key ring. Running processes are notified through the change log."""

    help = (
        "Manage the keys that seal the tokens held by clients: list, rotate, retire and destroy them, "
        "or wrap them under a new master key."
    )
    requires_system_checks = ["mcphost"]  # Django's own load all pages of the console
    pause = staticmethod(time.sleep)

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        verbs.add_parser(
            "list",
            help="show every key, its state, and how many calls wait for an answer under it",
        )
        rotate = verbs.add_parser(
            "rotate", help="add a new key and make it the active one, without downtime"
        )
        rotate.add_argument(
            "--compromised",
            action="store_true",
            help="the active key may be known to others: it stops opening tokens at once",
        )
        for verb, text in (
            ("retire", "stop a key from opening tokens before its last token has expired"),
            ("destroy", "erase the secret of a retired key permanently"),
        ):
            verb_parser = verbs.add_parser(verb, help=text)
            verb_parser.add_argument("key", help="the id of the key, as shown by `list`")
            verb_parser.add_argument("--yes", action="store_true", help="skip the confirmation")
        anew = verbs.add_parser(
            "rewrap", help="wrap all keys and secrets under the given master keys"
        )
        anew.add_argument("--yes", action="store_true", help="skip the confirmation")
        verbs.add_parser("states", help="show the states of a key and the transitions between them")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        try:
            getattr(self, f"_{verb}")(options)
        except VaultError as error:
            raise CommandError(str(error)) from None

    def _list(self, options: dict[str, Any]) -> None:
        rows = listing.keys(timezone.now())
        if not rows:
            self.stdout.write("No keys: `manage.py init` creates the first one.")
            return
        table = [_COLUMNS]
        for row in rows:
            note = _NOTES[row.state].format(until=_time(row.until))
            table.append((row.id, row.state.value, _time(row.since), str(row.in_flight), note))
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for cells in table:
            padded = map(str.ljust, cells, widths)
            self.stdout.write("  ".join(padded).rstrip())
        state = wrapping()
        master_keys = " and ".join(state.key_ids)
        if state.rows_to_rewrap:
            rows_to_rewrap = _count(state.rows_to_rewrap, "row")
            self.stdout.write(
                f"The master key is {master_keys}; wrapped differently: {rows_to_rewrap}. Run `keys rewrap`."
            )
        else:
            self.stdout.write(f"All keys and secrets are wrapped under master key {master_keys}.")

    def _rotate(self, options: dict[str, Any]) -> None:
        lifecycle.run_due_transitions(
            ACTOR
        )  # finish an earlier rotation that is due, else it would be refused
        new = lifecycle.rotate(ACTOR, compromised=options["compromised"])
        if options["compromised"]:
            self.stdout.write(
                f"Key {new} is now the active key. Each process refuses tokens sealed under the old key "
                "as soon as it learns of this (within a second while it is ready)."
            )
            self._report_retiring()
            return
        self.stdout.write(
            f"Key {new} is created. It becomes active in {lifecycle.STANDBY.seconds} seconds, when every "
            "ready process has read it."
        )
        try:
            while (row := listing.key(new, timezone.now())).state is KeyState.STANDBY:
                self.pause(POLL_SECONDS)
                lifecycle.run_due_transitions(ACTOR)
        except KeyboardInterrupt:
            raise CommandError(
                f"Interrupted: a serving process makes {new} active within a few seconds, or the next "
                f"`keys rotate` does. To cancel the rotation: `keys retire {new}`."
            ) from None
        if row.state is KeyState.RETIRED:
            raise CommandError(f"The rotation was cancelled: key {new} is retired.")
        self.stdout.write(f"Key {new} is now the active key.")
        self._report_retiring()

    def _report_retiring(self) -> None:
        for row in listing.keys(timezone.now()):
            if row.state is KeyState.RETIRING:
                self.stdout.write(
                    f"Key {row.id} opens tokens until {_time(row.until)} UTC ({row.waiting}), then is "
                    f"retired; `keys retire {row.id}` retires it at once."
                )

    def _retire(self, options: dict[str, Any]) -> None:
        row = self._confirmed_key(options, KeyVerb.RETIRE, "Retire")
        lifecycle.retire(row.id, ACTOR)
        self.stdout.write(f"Key {row.id} is retired: it no longer opens tokens.")

    def _destroy(self, options: dict[str, Any]) -> None:
        row = self._confirmed_key(options, KeyVerb.DESTROY, "Destroy")
        lifecycle.destroy(row.id, ACTOR)
        self.stdout.write(f"Key {row.id} is destroyed.")

    def _confirmed_key(self, options: dict[str, Any], verb: KeyVerb, label: str) -> KeyRow:
        """The key, after checking that the verb is possible, and asking for confirmation."""
        row = listing.key(options["key"], timezone.now())
        lifecycle.require(row.id, row.state, verb)
        if not options["yes"]:
            self._confirm(f"{label} key {row.id}? {_consequence(row, verb)} [y/N] ")
        return row

    def _confirm(self, question: str) -> None:
        try:
            reply = input(question)
        except EOFError:
            raise CommandError("No terminal input: use `--yes` to skip the confirmation.") from None
        if reply.strip().lower() not in ("y", "yes"):
            raise CommandError("Nothing was changed.")

    def _rewrap(self, options: dict[str, Any]) -> None:
        state = wrapping()
        if state.other_master_key_ids and not options["yes"]:
            self._confirm(
                f"Master key {' and '.join(state.other_master_key_ids)} is not given and will no longer unwrap anything: "
                "processes that have no other one stop working. Continue? [y/N] "
            )
        done = rewrap(ACTOR)
        self.stdout.write(
            f"Rewrapped: {_count(done.keys, 'key')} and the secrets of "
            f"{_count(done.tenants, 'tenant')}, under master key {' and '.join(state.key_ids)}."
        )
        if done.damaged:
            raise CommandError("Not rewrapped:\n" + "\n".join(done.damaged))
        if len(state.key_ids) > 1:
            self.stdout.write(
                "Next: make the new key the master key of every process, then run `keys rewrap` again."
            )

    def _states(self, options: dict[str, Any]) -> None:
        for line in diagram():
            self.stdout.write(line)


def _consequence(row: KeyRow, verb: KeyVerb) -> str:
    if row.state is KeyState.STANDBY:
        return "Nothing was sealed under it; the rotation is cancelled."
    if verb is KeyVerb.DESTROY:
        return f"It already opens no tokens ({row.waiting}); this cannot be undone."
    if not row.in_flight:
        return "No call waits for an answer under it."
    return f"{row.waiting[0].upper()}{row.waiting[1:]}: answers to them will be rejected."


def _time(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
