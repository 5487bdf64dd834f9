"""A process with too much to do sends calls to another: real processes and a tool that blocks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import asking, raw
from tests.e2e.asking import Asker, at, beside_effects, effects, wait_until
from tests.e2e.nodes import Service

TOKEN = "a-token-for-the-metrics"
STEPS = [["step", "a", 1], ["step", "b", 2]]
HOG = raw.call("interpret", {"program": [["hog"]]})


@pytest.fixture
def service(machine: None, tmp_path: Path) -> Iterator[Service]:
    limits = {"MCPHOST_SHED_LAG_SECONDS": "0.1", "MCPHOST_METRICS_TOKEN": TOKEN}
    with asking.service(tmp_path, **limits) as two:
        yield two


def _metric(service: Service, name: str) -> float:
    """A number of the first node."""
    seen = raw.send(
        at(service, service.first), "GET", "/metrics", authorization=f"Bearer {TOKEN}"
    ).body.decode()
    (line,) = [line for line in seen.splitlines() if line.startswith(f"mcphost_{name} ")]
    return float(line.split()[-1])


def test_an_overloaded_process_sends_a_call_to_the_other_until_it_has_recovered(
    service: Service,
) -> None:
    first, second = at(service, service.first), at(service, service.second)
    asker, shed = Asker("interpret", {"program": STEPS}), 'rounds_shed_total{reason="lag"}'
    wait_until(lambda: _metric(service, "processes_free") == 1)
    going_on = beside_effects(service, ".pause")
    going_on.touch()
    with raw.opened(first, HOG):
        wait_until(lambda: _metric(service, "overloaded") == 1)
        moved = asker.leg(first)
        assert (moved["resultType"], "inputRequests" in moved) == ("input_required", False)
        assert [name for name, *_ in effects(service)] == ["a"]
        assert asker.leg(second, moved["requestState"])["resultType"] == "complete"
        assert [name for name, *_ in effects(service)] == ["a", "b"]
        assert _metric(service, shed) == 1
        again = asker.leg(first)
        assert asker.leg(first, again["requestState"])["resultType"] == "complete", "once per call"
        going_on.unlink()
        wait_until(lambda: _metric(service, "overloaded") == 0)
        assert asker.leg(first)["resultType"] == "complete"
    service.second.stop()
    wait_until(lambda: _metric(service, "processes_free") == 0)
    going_on.touch()
    with raw.opened(first, HOG):
        wait_until(lambda: _metric(service, "overloaded") == 1)
        assert asker.leg(first)["resultType"] == "complete", "there is no other"
        going_on.unlink()
    assert _metric(service, shed) == 2
