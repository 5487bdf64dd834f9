"""Every kind of tool, called with a valid request, in both eras."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.equivalence.run import ERAS, LEGACY, Run, Scenario

SECRET = "the-password-of-the-caller"


@dataclass(frozen=True)
class Called:
    """A tool, called once the caches are warm, and its effects."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    revision: str = ""

    def of(self, revision: str) -> "Called":
        return Called(self.tool, self.arguments, self.meta, revision)

    async def __call__(self, run: Run) -> None:
        client = run.client(self.revision)
        await client.ready()
        run.count_at_end()
        await client.call(self.tool, self.arguments, **self.meta)
        await run.note_effects()


HEARD = {"progressToken": "p", "logLevel": "debug"}
TOOLS = {
    "text": Called("text", {"text": "hello"}),
    "no result": Called("nothing"),
    "dict": Called("mapping", {"count": 3}),
    "structured": Called("structured", {"city": "Paris"}),
    "content blocks": Called("blocks"),
    "isError": Called("error_result"),
    "ToolError": Called("refuses", {"reason": "no paper"}),
    "crash": Called("crashes"),
    "wrong result": Called("misfits"),
    "thread": Called("in_thread", {"text": "hello"}),
    "suspending": Called("suspends"),
    "progress and logs": Called("reports", {"count": 2}, HEARD),
    "progress, then a crash": Called("reports_and_crashes", {}, HEARD),
    "time limit": Called("too_late"),
    "acting": Called("acts", {"text": "a"}),
    "acting beyond the time limit": Called("acts_too_late"),
    "secret argument": Called("takes_secret", {"name": "Ada", "password": SECRET}),
    "secret result": Called("returns_secret", {"name": "Ada"}),
    "context": Called("with_context"),
    "capability": Called("needs_sampling"),
    "wrong arguments": Called("acts", {"text": 7}),
    "unknown": Called("no_such_tool"),
}


@dataclass(frozen=True)
class Waiting:
    """A tool that waits a quarter of a second, with what is recorded meanwhile."""

    tool: str
    revision: str
    meta: Mapping[str, Any] = field(default_factory=dict)

    async def __call__(self, run: Run) -> None:
        client = run.client(self.revision)
        await client.ready()
        run.count_at_end()
        async with client.begun(self.tool, **self.meta):
            await run.until_running()
            await run.note_records("while the tool runs")
            run.release()
        await run.note_effects()


WAITING: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "waiting": ("waits", {}),
    "waiting before it acts": ("acts_slowly", {}),
}


async def _without_capabilities(run: Run) -> None:
    await run.call("needs_sampling")


async def _cold(run: Run) -> None:
    run.count_at_end()
    await run.call("acts", {"text": "a"})


def _era(revision: str) -> str:
    return "session" if revision == LEGACY else "stateless"


SCENARIOS = [
    *(
        Scenario(f"{name}, {_era(revision)}", called.of(revision))
        for name, called in TOOLS.items()
        for revision in ERAS
    ),
    *(
        Scenario(f"{name}, {_era(revision)}", Waiting(tool, revision, meta))
        for name, (tool, meta) in WAITING.items()
        for revision in ERAS
    ),
    Scenario("capability that the client lacks", _without_capabilities),
    Scenario("acting, with nothing cached", _cold, cold=True),
]
