"""Fixtures: clients of the API for the people of the cast."""

from dataclasses import dataclass

import pytest

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.identity.services import TokenRequest, issue
from mcphost.identity.staff_tokens import issue_staff_token
from mcphost.tenants.roles import READ_API, WRITE_API, Audience
from tests.api.client import ApiClient
from tests.cast import ACTOR, Cast, Person
from tests.served import stopped

__all__ = ["stopped"]

BOTH = (READ_API, WRITE_API)


def staff_token(person: Person, *scopes: str) -> str:
    """Issue a staff token by command."""
    request = TokenRequest("automation", scopes or BOTH, Audience.API)
    return issue_staff_token(person.user, request, actor=ACTOR).plaintext


def api_token(cast: Cast, person: Person, *scopes: str) -> str:
    """Let a member of acme issue a token of the API."""
    itself = Actor.person(person.user.pk, person.user.get_username())
    request = TokenRequest("script", scopes or BOTH, Audience.API)
    return issue(cast.acme.id, person.user, request, actor=itself).plaintext


@dataclass(frozen=True, slots=True)
class ApiClients:
    """Clients with tokens, by role; `stranger` owns another tenant."""

    owner: ApiClient
    operator: ApiClient
    auditor: ApiClient
    stranger: ApiClient
    staff: ApiClient
    anonymous: ApiClient


@pytest.fixture
def clients(cast: Cast) -> ApiClients:
    kinds.discover()
    return ApiClients(
        owner=ApiClient(cast.owner.api_token),
        operator=ApiClient(cast.operator.api_token),
        auditor=ApiClient(api_token(cast, cast.auditor, READ_API)),
        stranger=ApiClient(cast.stranger.api_token),
        staff=ApiClient(staff_token(cast.staff)),
        anonymous=ApiClient(),
    )


@pytest.fixture
def owner(clients: ApiClients) -> ApiClient:
    return clients.owner
