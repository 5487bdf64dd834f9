"""A host of metadata documents that every test of this folder may reach."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.egress.conftest import Authority, authority
from tests.identity.oauth.hosts import DocumentHost, reach, serving

__all__ = ["authority"]


@pytest.fixture
def host(
    authority: Authority,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[DocumentHost]:
    """A host under NAME, which documents are fetched from; it has a good one at first."""
    with serving(authority) as document_host:
        reach(document_host, authority, settings, monkeypatch)
        document_host.publish()
        yield document_host
