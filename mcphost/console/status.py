"""The status page for staff: the state of all processes, and of what they need. Also as JSON."""

from typing import Any, Final

import orjson
from django.http import HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from mcphost.console.base import SignedInRequest, of_platform, show
from mcphost.feed.nodes import NodeRow
from mcphost.serving.process import status
from mcphost.serving.process.status import STATES, StatusLine, fact, number, state_of
from mcphost.tenants.roles import Permission

_IDLE: Final = ("not used", "not run yet")
"""Texts of lines, or their beginnings, of parts of which nothing can be good yet."""
_TONES: Final = {"serves": "good", "works": "good", "drains": "info", "gone": "bad"}


@of_platform(Permission.MANAGE_TENANT)
@require_safe
def page(request: SignedInRequest) -> HttpResponseBase:
    """Show each line, good or with its reason, and the processes. It refreshes itself."""
    platform_status = status.read()
    processes = [_process_row(process) for process in platform_status.facts.processes]
    lines = [(line, *_split(line)) for line in platform_status.lines]
    return show(
        request,
        "status.html",
        "Status",
        platform_status=platform_status,
        lines=lines,
        processes=processes,
    )


def _split(line: StatusLine) -> tuple[str, str]:
    """Return in a word or two that a part does nothing, empty if it does; and the rest of its text."""
    idle = next((text for text in _IDLE if line.good and line.text.startswith(text)), "")
    return idle, line.text.removeprefix(idle).removeprefix(": ")


@of_platform(Permission.MANAGE_TENANT)
@require_safe
def as_json(request: SignedInRequest) -> HttpResponseBase:
    """Answer the status as JSON: 200 if all is well, otherwise 503."""
    platform_status = status.read()
    return HttpResponse(
        orjson.dumps(platform_status.as_json()),
        content_type="application/json",
        status=200 if platform_status.good else 503,
    )


def _process_row(process: NodeRow) -> dict[str, Any]:
    """Return what the table shows of a process. Processes of other versions may report anything."""
    state = state_of(process)
    return {
        "process": process,
        "state": STATES[state],
        "tone": _TONES[state],
        "age": process.age.total_seconds(),
        "version": fact(process, "version"),
        "key": fact(process, "key"),
        "requests": int(number(process, "requests")),
        "rounds": int(number(process, "rounds")),
        "waiting": int(number(process, "writer", "waiting")),
        "lag": number(process, "loop", "lag"),
    }
