"""The wire models are loaded when they are first needed, by the caller."""

import pytest

from mcphost.protocol import params
from mcphost.protocol.params import check_params, check_responses
from mcphost.protocol.revisions import REVISIONS
from mcphost.protocol.shapes import DEEP, NotLoadedError, WireShapes
from tests.protocol.requests import REVISION


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> WireShapes:
    shapes = WireShapes()
    monkeypatch.setattr(params, "wire_shapes", shapes)
    return shapes


def test_a_check_before_the_models_are_loaded_raises_and_passes_after_loading(
    fresh: WireShapes,
) -> None:
    def check() -> None:
        check_params("prompts/get", {"name": "review"}, "2025-11-25")
        check_responses({"q": {"roots": []}})

    with pytest.raises(NotLoadedError):
        check()
    with pytest.raises(NotLoadedError):
        check_responses({"q": {"roots": []}})
    assert not fresh.loaded
    fresh.load()
    assert fresh.loaded
    check()


def test_loading_again_keeps_the_loaded_models(fresh: WireShapes) -> None:
    fresh.load()
    responses = fresh.responses
    fresh.load()
    assert fresh.responses is responses


def test_each_revision_has_models_for_its_own_requests(fresh: WireShapes) -> None:
    fresh.load()
    for method in DEEP:
        revisions = {name for name in (REVISION, *REVISIONS) if fresh.request(method, name)}
        modern_only = method == "subscriptions/listen"
        assert revisions == ({REVISION} if modern_only else {REVISION, *REVISIONS})
