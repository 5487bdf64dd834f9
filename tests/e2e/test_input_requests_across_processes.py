"""Real clients answer input requests while each HTTP request of a call goes to another process."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.callers import MODERN, command
from tests.e2e.client_process import conversing
from tests.e2e.demo_responses import (
    WAYS,
    ask_everything,
    resolve,
)
from tests.e2e.nodes import Service
from tests.e2e.test_python_client import DEMO_TOOLS, REVISION


@pytest.mark.parametrize("name", MODERN)
def test_a_client_gets_all_input_requests_while_each_retry_reaches_the_other_process(
    two_nodes: Service, node: object, name: str, tmp_path: Path
) -> None:
    server, called = two_nodes.server, two_nodes.proxy.called
    with conversing(command(name), tmp_path, url=server.url, token=server.token) as talk:
        met = talk.hear("met")
        assert met["revision"] == REVISION
        assert set(met["tools"]) >= DEMO_TOOLS
        for way in WAYS:
            called.clear()
            answered = resolve(talk, way)
            assert len(called) == answered + 1
            assert all(one != next for one, next in pairwise(called))
        ask_everything(talk, two_nodes.admin())
    assert two_nodes.proxy.failures == []
