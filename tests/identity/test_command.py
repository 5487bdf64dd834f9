"""Tests of `manage.py token` as an operator runs it."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from mcphost.audit.models import Entry
from mcphost.identity.models import StaffToken, Token
from mcphost.identity.selectors import authenticate
from mcphost.identity.service_accounts import create
from mcphost.runtime.call import PrincipalKind
from mcphost.tenants.roles import Audience
from tests.cast import ACTOR, Cast

pytestmark = pytest.mark.django_db


def _run(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("token", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def _issue(*more: str) -> tuple[str, str]:
    return _run("issue", "--tenant=acme", "--owner=operator", "--name=CI", *more)


def test_issuing_writes_only_the_token_to_stdout_and_details_to_stderr(cast: Cast) -> None:
    out, err = _issue()
    found = authenticate(out.strip(), Audience.MCP, "acme")
    assert found is not None
    assert found.principal.scopes == {"mcp:list", "mcp:call"}
    assert found.principal.token_id in err
    assert "never expires. It is shown only once" in err
    assert out.strip() not in err
    assert found.principal.user_id is not None
    label = "operator (“CI”, issued without consent by manage.py token)"
    assert found.principal.label == label
    assert "manage.py token (without consent)" in _run("list")[0]
    entry = Entry.objects.filter(action="token.issued").latest("at")
    assert (entry.actor_kind, entry.actor_label) == ("system", "manage.py token")


def test_a_token_is_renewed_and_its_line_revoked_from_the_command_line(cast: Cast) -> None:
    first = cast.member.mcp_token.split("_")[1]
    out, err = _run("renew", first, "--days=30")
    found = authenticate(out.strip(), Audience.MCP, "acme")
    assert found is not None
    assert found.principal.id == first
    assert "without consent" in found.principal.label
    assert f"renews {first}" in err
    assert out.strip() not in err
    assert found.principal.token_id is not None
    _run("revoke", "--stolen", found.principal.token_id)
    assert Token.objects.get(pk=first).revoked_at is not None
    with pytest.raises(CommandError, match="is revoked"):
        _run("renew", first)
    with pytest.raises(CommandError, match="no token 'unknown'"):
        _run("renew", "unknown")


def test_a_service_account_gets_a_token_from_the_command_line(cast: Cast) -> None:
    create(cast.acme.id, "nightly", actor=ACTOR)
    arguments = ("--tenant=acme", "--service-account=nightly", "--name=cron")
    out, err = _run("issue", *arguments)
    assert "of service account nightly for mcp of acme" in err
    found = authenticate(out.strip(), Audience.MCP, "acme")
    assert found is not None
    assert found.principal.kind is PrincipalKind.SERVICE
    label = "service account nightly (“cron”, issued by manage.py token)"
    assert found.principal.label == label
    with pytest.raises(CommandError, match="no service account 'unknown'"):
        _run("issue", "--tenant=acme", "--service-account=unknown", "--name=x")
    with pytest.raises(CommandError, match="not allowed with"):
        _run("issue", "--owner=operator", *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tenant=nowhere", "--owner=operator", "--name=x"], "no tenant 'nowhere'"),
        (["--tenant=acme", "--owner=nobody", "--name=x"], "no user 'nobody'"),
        (["--tenant=acme", "--owner=stranger", "--name=x"], "owner: The owner is not"),
        (["--tenant=acme", "--owner=owner", "--name=x", "--scope=all"], "'all' is not a scope"),
        (["--tenant=acme", "--owner=owner", "--name=x", "--days=0"], "expires_at"),
        (["--tenant=acme", "--owner=owner", "--name=x", "--days=99999999"], "too large"),
        (["--tenant=acme", "--owner=owner"], "--name"),
    ],
)
def test_invalid_token_requests_are_refused_with_a_reason(
    cast: Cast, arguments: list[str], said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        _run("issue", *arguments)


def test_revoking_reports_whether_the_token_was_active_revoked_or_unknown(cast: Cast) -> None:
    token_id = cast.member.mcp_token.split("_")[1]
    assert _run("revoke", token_id)[0] == f"Token {token_id} is revoked.\n"
    assert _run("revoke", token_id)[0] == f"Token {token_id} was already revoked.\n"
    assert Token.objects.get(pk=token_id).revoked_at is not None
    with pytest.raises(CommandError, match="no token 'unknown'"):
        _run("revoke", "unknown")


def test_staff_get_a_token_for_the_api_of_all_tenants_from_the_command_line(cast: Cast) -> None:
    plaintext, details = _run("issue", "--staff", "--owner", "staff", "--name", "automation")
    token_id = plaintext.split("_")[1]
    assert f"Token {token_id} of staff for the API of the platform: api:read api:write" in details
    (row,) = StaffToken.objects.all()
    assert (row.id, row.scopes, row.issued_by) == (
        token_id,
        ["api:read", "api:write"],
        "manage.py token",
    )
    listed, _ = _run("list")
    (line,) = (line for line in listed.splitlines() if token_id in line)
    assert line.split()[1:3] == ["(platform)", "staff"]
    assert token_id not in _run("list", "--tenant", "acme")[0]
    assert _run("revoke", token_id)[0] == f"Token {token_id} is revoked.\n"
    assert _run("revoke", token_id)[0] == f"Token {token_id} was already revoked.\n"
    actions = Entry.objects.filter(target=token_id).order_by("id").values_list("action", flat=True)
    assert list(actions) == ["staff_token.issued", "staff_token.revoked"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--owner", "owner"), "not an active account of platform staff"),
        (("--service-account", "bot"), "Name the owner"),
        (("--owner", "staff", "--scope", "mcp:call"), "cannot be used by a token for 'api'"),
    ],
)
def test_a_staff_token_of_others_or_for_something_else_is_refused(
    cast: Cast, arguments: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(CommandError, match=reason):
        _run("issue", "--staff", "--name", "automation", *arguments)
    assert not StaffToken.objects.exists()
