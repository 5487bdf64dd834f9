"""Real clients on the session-based revisions, and a person at each who is asked on the call's stream."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.e2e.nodes import Service
from tests.e2e.resolving import ASKING, WAYS, ask_everything, resolve
from tests.e2e.test_older_clients import MIDDLE, NEWEST, OLDEST, PAIRS, called, meeting

CANNOT: Mapping[str, Sequence[str]] = {
    NEWEST: (),
    MIDDLE: ("sign_off",),
    OLDEST: [tool for tool, *_ in ASKING if tool != "summarize"],
}
"""Which tools ask what a revision has no words for."""


@pytest.mark.parametrize(("name", "revision"), PAIRS)
def test_a_client_is_asked_on_the_stream_of_its_call_whatever_its_revision_has_words_for(
    asked: Service, node: object, tmp_path: Path, name: str, revision: str
) -> None:
    with meeting(asked, tmp_path, name, revision) as talk:
        if revision != OLDEST:
            for way in WAYS:
                resolve(talk, way)
        ask_everything(talk, CANNOT[revision])
        for tool, arguments, *_ in ASKING:
            if tool in CANNOT[revision]:
                result = called(talk, tool, arguments)
                assert result["isError"]
                assert "needs a client with the capability" in result["content"][0]["text"]
