"""Real clients on the session-based revisions, and a person at each who is asked on the call's stream."""

from pathlib import Path

import pytest

from tests.e2e.nodes import Service
from tests.e2e.resolving import WAYS, ask_everything, resolve
from tests.e2e.test_older_clients import NEWEST, OLDEST, PAIRS, meeting


@pytest.mark.parametrize(("name", "revision"), [pair for pair in PAIRS if pair[1] != OLDEST])
def test_a_client_is_asked_on_the_stream_of_its_call(
    asked: Service, node: object, tmp_path: Path, name: str, revision: str
) -> None:
    with meeting(asked, tmp_path, name, revision) as talk:
        for way in WAYS:
            resolve(talk, way)
        if revision == NEWEST:
            ask_everything(talk)
