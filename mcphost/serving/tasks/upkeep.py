"""Periodic work on the shared database, which one process does for all.

It deletes what has expired, moves the key ring on, and verifies payloads. Each chore does what is due at that moment,
whenever it last ran: a run that is late catches up, and two at once do no harm. The jobs of the queue
call it where tasks are queued (`job_worker`), else each process's housekeeping does.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from django.db import InterfaceError, OperationalError, connections
from django.utils import timezone

from mcphost.audit import verification
from mcphost.calls import cancelled, links, questions, session_calls, sessions, state_parts, streams
from mcphost.catalogue import documents
from mcphost.identity import attempts, browser_sessions, idempotency
from mcphost.identity.oauth import connection_log
from mcphost.identity.oauth import pruning as oauth_pruning
from mcphost.observability import counters
from mcphost.tasks import services as tasks
from mcphost.vault.lifecycle import rotate_if_old, run_due_transitions
from mcphost.vault.secrets import services as secrets

Chore = Callable[[], object]
PORTIONS_AT_ONCE: Final = 100

log = logging.getLogger(__name__)


def _forget_links() -> None:
    links.prune(timezone.now())


def _verify_payloads() -> None:
    verification.run(timezone.now())
    state = verification.state()
    counters.payloads_wrong.value = 0 if state is None else state.wrong


def _prune_expired() -> None:
    _in_portions(streams.prune, session_calls.prune, questions.prune, attempts.prune, tasks.prune)
    _in_portions(
        oauth_pruning.end_unused, oauth_pruning.prune, connection_log.prune, idempotency.prune
    )
    _in_portions(state_parts.prune, documents.prune, cancelled.prune, secrets.prune_former_values)


def _prune_sessions() -> None:
    _in_portions(sessions.prune, sessions.prune_streams)


def _prune_browser_sessions() -> None:
    _in_portions(browser_sessions.prune)


def _in_portions(*prunes: Callable[[], int]) -> None:
    """Prune in short transactions, so that others are not blocked, until nothing is left.

    At most PORTIONS_AT_ONCE transactions for each function.
    """
    for prune in prunes:
        portions = 1
        while prune() == streams.PRUNED_AT_ONCE and portions < PORTIONS_AT_ONCE:
            portions += 1


CHORES: tuple[Chore, ...] = (
    rotate_if_old,
    run_due_transitions,
    _forget_links,
    _prune_sessions,
    _prune_expired,
    _prune_browser_sessions,
    _verify_payloads,
)
"""All chores, in order."""


def run(chores: Iterable[Chore]) -> str:
    """Run each chore: an exception in one does not prevent the others. In a database thread.

    Return the name of the error if the database was unreachable, else an empty text.
    """
    unreachable = ""
    for chore in chores:
        try:
            chore()
        except (OperationalError, InterfaceError) as error:
            unreachable = type(error).__name__
            connections.close_all()
        except Exception:
            log.exception("periodic work goes on after an error")
            connections.close_all()
    return unreachable
