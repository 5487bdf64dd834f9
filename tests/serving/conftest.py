from collections.abc import Iterator

import pytest

from mcphost.catalogue import kinds
from tests.cast import Cast, build_cast
from tests.keeping import Kept
from tests.served import served, serving
from tests.serving.made import MADE, offer

__all__ = ["offered", "served"]


def _build() -> Cast:
    cast = build_cast()
    offer(cast.acme.id)
    return cast


OFFERED = Kept(_build)


@pytest.fixture
def offered(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cast]:
    """The cast, with made-up prompts, resources and templates published at `acme`."""
    monkeypatch.setitem(kinds.KINDS, "made", MADE)  # type: ignore[arg-type]
    with serving(OFFERED, monkeypatch) as cast:
        yield cast
