"""The times of a call are those of the call, not of its last round: in lists, on its page, in exports, on dashboards."""

import csv
import io
from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.console.records.call_picture import PartType
from mcphost.console.templatetags.wire import lapse
from tests.audit.recorded_calls import HALF_HOUR, MINUTE, Story, keep, plain
from tests.cast import Cast

pytestmark = pytest.mark.django_db

CALLS = "/admin/t/acme/calls/"
MS = timedelta(milliseconds=1)


def stories(tenant: UUID) -> dict[str, Story]:
    """A call of each course, by the name of its tool. Each round of a story takes 3 ms on the server."""

    def story(target: str, ago: timedelta = HALF_HOUR) -> Story:
        return Story.of(tenant, target, at=timezone.now() - ago)

    def asked(target: str, script: str, ago: timedelta = HALF_HOUR) -> Story:
        return story(target, ago).play(f"start; ask a; {script}" if script else "start; ask a")

    task = story("task").become_task()
    task.end()
    return {
        "plain": plain("plain", tenant),
        "failed": plain("failed", tenant, "crashed"),
        "answered": asked("answered", "back; answer a; start; end"),
        "declined": asked("declined", "back; answer a decline; start; end tool_error"),
        "twice": asked("twice", "back; answer a; ask b; back; answer b; end"),
        "again": asked("again", "back; answer a; start; again; start; end"),
        "open": asked("open", "", 5 * MINUTE),
        "expired": asked("expired", "", 2 * HALF_HOUR),
        "stopped": asked("stopped", "cancel", 5 * MINUTE),
        "task": task,
        "running": story("running").play("start"),
    }


ROUNDS = {
    "plain": 1,
    "failed": 1,
    "answered": 2,
    "declined": 2,
    "twice": 3,
    "again": 2,
    "open": 1,
    "expired": 1,
    "stopped": 1,
    "task": 2,
    "running": 0,
}
NEVER_WAITED = {"plain", "failed", "running"}


@pytest.mark.parametrize("name", ROUNDS)
def test_lists_pages_and_exports_show_the_same_times_of_a_call(
    cast: Cast, auditor: Client, name: str
) -> None:
    story = stories(cast.acme.id)[name]
    keep(story)
    ((listed, _),) = auditor.get(CALLS).context["calls"]
    page = auditor.get(f"{CALLS}{story.call.id}/")
    times, picture = page.context["times"], page.context["picture"]
    totals = {kind: total for kind, _, total in picture.totals}
    server = ROUNDS[name] * 3 * MS if ROUNDS[name] else None
    assert listed.server == times.server == totals.get(PartType.SERVER) == server
    waited = totals.get(PartType.RESPONSE, timedelta()) + totals.get(PartType.REQUEST, timedelta())
    assert (times.waiting is None) == (listed.waited is None) == (name in NEVER_WAITED)
    if name not in NEVER_WAITED:
        assert abs(times.waiting - waited) < MS
        assert abs(times.waiting - listed.waited) < 10_000 * MS  # an open one goes on
        label = "Waited" if listed.questions else "Queued"
        assert f"<dt>{label}</dt><dd>{lapse(times.waiting)}" in page.content.decode()
    text = auditor.get(f"{CALLS}export.csv").content.decode()
    head, row, _ = csv.reader(io.StringIO(text))
    exported = dict(zip(head, row, strict=True))
    assert exported["server_ms"] == ("" if server is None else str(server / MS))
    assert (exported["waited_ms"] == "") == (name in NEVER_WAITED)


def test_the_list_shows_how_long_a_call_took_and_how_long_it_waited(cast: Cast, auditor: Client):
    keep(stories(cast.acme.id)["twice"])
    row = auditor.get(CALLS).content.decode()
    assert "9.0 ms" in row
    assert "3.0 ms" not in row
    assert "waited 2 min" in row


def test_the_dashboard_counts_the_server_time_of_all_rounds(cast: Cast, auditor: Client) -> None:
    keep(stories(cast.acme.id)["twice"])
    tiles = auditor.get("/admin/t/acme/").context["panel"].tiles
    values = {tile.label: tile.value for tile in tiles}
    assert values["Server time p50"] in ("8.8 ms", "8.9 ms", "9 ms", "9.1 ms", "9.2 ms")
