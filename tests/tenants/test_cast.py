"""Tests that the cast of the isolation tests has the roles that they assume."""

import pytest
from django.utils import timezone

from mcphost.identity.selectors import authenticate
from mcphost.tenants.roles import Audience
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def test_everybody_of_acme_has_a_token_for_its_endpoint(cast: Cast) -> None:
    for person in (cast.owner, cast.operator, cast.auditor, cast.member):
        found = authenticate(person.mcp_token, Audience.MCP, "acme", timezone.now())
        assert found is not None
        assert found.principal.user_id == person.user.pk
        assert found.principal.tenant == cast.acme.id


def test_only_owner_and_operator_have_one_for_the_api_and_strangers_none_of_acme(
    cast: Cast,
) -> None:
    assert cast.owner.api_token
    assert cast.operator.api_token
    assert (cast.auditor.api_token, cast.member.api_token) == ("", "")
    assert authenticate(cast.stranger.mcp_token, Audience.MCP, "globex") is not None
    assert authenticate(cast.stranger.mcp_token, Audience.MCP, "acme") is None
    assert cast.staff.user.is_staff
    assert not cast.staff.user.memberships.exists()
