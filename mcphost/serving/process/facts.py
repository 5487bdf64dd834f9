"""What this process reports about itself in its heartbeat, for the status page: small, and cheap
to read.

Each fact is read in memory, in the thread of the change log. Other processes read them from the rows of
`feed.nodes`, also processes of other versions: a fact may be missing there.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcphost import __version__
from mcphost.audit.writer.writer import writer
from mcphost.feed.loop import loop
from mcphost.kinds.script.kind import script_kind
from mcphost.observability import counters, health
from mcphost.serving import database, load
from mcphost.serving.execution.owned_task import running_tasks
from mcphost.serving.execution.ports import threads
from mcphost.serving.options import options
from mcphost.serving.tasks.job_worker import JobWorker
from mcphost.vault import selectors as keys

SERVER: Final = "server"
WORKER: Final = "worker"


class ProcessFacts:
    """The facts of a process. `role`: a server answers requests, a worker only runs tasks."""

    def __init__(self, role: str, job_worker: JobWorker) -> None:
        self.role = role
        self._job_worker = job_worker
        self.summaries: Callable[[], Mapping[str, Any]] = dict

    def read(self) -> Mapping[str, Any]:
        """Return the facts, as JSON. Times are in seconds."""
        pool, sandbox = threads(), script_kind.sandbox
        return {
            "role": self.role,
            "version": __version__,
            "key": keys.sealing_key(),
            "keys": keys.opening_keys(),
            "writer": {
                "waiting": writer.waiting(),
                "lag": round(writer.lag(), 3),
                "problem": writer.problem(),
            },
            "summaries": self.summaries(),
            "loop": {"lag": round(load.lag.seconds(), 4), "limit": options().shed_lag_seconds},
            "change_log": {"pause": round(loop.longest_pause(), 3), "position": loop.position()},
            "requests": _in_progress(counters.requests.value, counters.request_seconds.count()),
            "rounds": _in_progress(counters.rounds.value, counters.round_seconds.count()),
            "tasks": {"running": len(running_tasks), "takes": self._job_worker.works()},
            "threads": {"busy": pool.busy, "lost": pool.lost},
            "database": {"waiting": database.waiting()},
            "sandbox": {
                "most": sandbox.max_workers,
                "in_use": sandbox.in_use,
                "idle": sandbox.idle,
                "waiting": sandbox.waiting,
            },
            "problems": health.problems(),
            "warnings": health.warnings(),
        }


def _in_progress(begun_count: float, ended_count: float) -> int:
    return max(0, int(begun_count - ended_count))
