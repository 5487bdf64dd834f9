"""Generated requests get answers as the document says, and nothing of another tenant."""

from collections import Counter
from typing import Any

import pytest
from django.test import Client

from tests.api.client import ApiClient
from tests.api.conftest import ApiClients
from tests.api.generated_requests import GeneratedRequest, generated_requests
from tests.api.url_walk import ids_of
from tests.cast import Cast
from tests.console.url_walk import undone

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_here")]


SHARED = ("slug", "function", "key_id", "user_id")
"""Ids that tell nothing: those of the platform, and those that are in other texts."""


def reader(cast: Cast) -> ApiClient:
    """Return the client of a member, who may have no token of the API."""
    browser = Client()
    browser.force_login(cast.member.user)
    return ApiClient(client=browser)


def names_of(ids: dict[str, Any], title: str) -> set[str]:
    """Return what only responses about a tenant have."""
    own = {str(value) for name, value in ids.items() if name not in SHARED}
    return {title, *own}


def faults_of(
    request: GeneratedRequest, client: ApiClient, foreign: set[str]
) -> tuple[int, list[str]]:
    """Send a request; return its status, and what is wrong with the response."""
    with undone():
        response = request.send(client)
    faults = request.faults(response)
    text = response.content.decode().replace(request.case.formatted_path, "")
    faults += [f"of another tenant: {name}" for name in foreign if name in text]
    return response.status_code, faults


def test_every_caller_gets_what_the_document_says_and_nothing_of_another_tenant(
    cast: Cast, clients: ApiClients
) -> None:
    ids = ids_of(cast.acme)
    own, foreign = names_of(ids, "Acme"), names_of(ids_of(cast.globex), "Globex")
    callers = {
        "owner": (clients.owner, foreign),
        "staff": (clients.staff, set[str]()),
        "operator": (clients.operator, foreign),
        "auditor": (clients.auditor, foreign),
        "member": (reader(cast), foreign),
        "owner of another tenant": (clients.stranger, own),
        "stranger": (clients.anonymous, own | foreign),
    }
    statuses: Counter[int] = Counter()
    faults, sent = [], set[str]()
    for request in generated_requests(ids):
        first = request.case.operation.label not in sent
        sent.add(request.case.operation.label)
        for name, (client, canaries) in callers.items():
            if first or name in ("owner", "staff"):
                status, wrong = faults_of(request, client, canaries)
                statuses[status] += 1
                faults += [(name, str(request), status, *wrong)] if wrong else []
    assert faults == []
    assert min(statuses[200], statuses[404], statuses[422]) > 50
