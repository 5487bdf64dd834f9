"""Tests of codes, refresh tokens and revocation at the endpoints of OAuth."""

import json
import logging
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.core.serializers import serialize
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.identity import selectors
from mcphost.identity.models import AuthorizationCode, Connection, OAuthClient, RefreshToken, Token
from mcphost.identity.oauth import grants
from mcphost.identity.oauth.connections import connection_page, digest, end
from mcphost.identity.oauth.grants import ACCESS_SECONDS, answer_revocation, answer_token
from mcphost.runtime.call import Principal
from mcphost.tenants.roles import Audience, Role
from mcphost.tenants.services import close_tenant, remove_member, set_member
from tests.cast import ACTOR, Cast
from tests.oauth import (
    CHALLENGE,
    ISSUER,
    VERIFIER,
    Pair,
    ask,
    code_of,
    error_of,
    make_client,
    pair_of,
    redeem,
    refresh,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> OAuthClient:
    return make_client()


def _pair(client: OAuthClient, cast: Cast, *scopes: str) -> Pair:
    return pair_of(redeem(client, code_of(client, cast.member, *scopes)))


def _principal(access_token: str, slug: str = "acme") -> Principal | None:
    found = selectors.authenticate(access_token, Audience.MCP, slug)
    return None if found is None else found.principal


def test_a_code_yields_a_token_that_acts_for_the_member(client: OAuthClient, cast: Cast) -> None:
    answer = redeem(client, code_of(client, cast.member))
    assert answer.headers["Cache-Control"] == "no-store"
    assert json.loads(answer.body)["expires_in"] == ACCESS_SECONDS
    pair = pair_of(answer)
    principal = _principal(pair.access)
    assert principal is not None
    connection = Connection.objects.get()
    assert principal.id == principal.token_id == str(connection.pk)
    assert principal.scopes == {"mcp:list", "mcp:call"}
    assert principal.user is not None
    assert principal.user.name == "member"
    assert principal.expires_at is None
    assert _principal(pair.access, "globex") is None
    assert [row.client for row in connection_page(cast.acme.id).connections] == ["Laptop"]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_verifier": None}, "invalid_request"),
        ({"code_verifier": VERIFIER + "x"}, "invalid_grant"),
        ({"code_verifier": CHALLENGE}, "invalid_grant"),
        ({"code": None}, "invalid_request"),
        ({"code": "no-such-code"}, "invalid_grant"),
        ({"client_id": "dcr-other"}, "invalid_grant"),
        ({"client_id": "dcr-unknown"}, "invalid_client"),
        ({"client_id": None}, "invalid_client"),
        ({"redirect_uri": "http://127.0.0.1:41235/callback"}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"grant_type": None}, "unsupported_grant_type"),
        ({"resource": f"{ISSUER}/t/globex/mcp"}, "invalid_target"),
        ({"resource": "https://elsewhere.test/t/acme/mcp"}, "invalid_target"),
        ({"resource": f"{ISSUER}:80/t/acme/mcp"}, "invalid_target"),
        ({"resource": f"{ISSUER}.elsewhere.test/t/acme/mcp"}, "invalid_target"),
    ],
)
def test_a_bad_redemption_is_refused_and_leaves_the_code_usable(
    client: OAuthClient, cast: Cast, changed: dict[str, str | None], error: str
) -> None:
    make_client("dcr-other")
    code = code_of(client, cast.member)
    assert error_of(redeem(client, code, **changed)) == error
    assert not Connection.objects.exists()
    assert not Token.objects.exclude(connection=None).exists()
    pair_of(redeem(client, code, resource=f"{ISSUER}:443/t/acme/mcp"))


def test_a_refusal_does_not_tell_which_codes_and_tokens_exist(
    client: OAuthClient, cast: Cast
) -> None:
    other = make_client("dcr-other")
    pair, code, expired = (
        _pair(client, cast),
        code_of(client, cast.member),
        code_of(client, cast.member),
    )
    AuthorizationCode.objects.filter(pk=digest(expired)).update(expires_at=timezone.now())
    refusals = {
        redeem(client, "unknown").body,
        redeem(other, code).body,
        redeem(client, expired).body,
        redeem(client, code, code_verifier=VERIFIER + "x").body,
        refresh(client, "unknown").body,
        refresh(other, pair.refresh).body,
    }
    assert len(refusals) == 1


@pytest.mark.parametrize("name", ["code", "code_verifier", "client_id", "redirect_uri", "resource"])
def test_a_parameter_that_is_there_twice_is_refused(
    client: OAuthClient, cast: Cast, name: str
) -> None:
    form = {
        "grant_type": "authorization_code",
        "client_id": client.pk,
        "code": code_of(client, cast.member),
        "redirect_uri": "http://127.0.0.1:41234/callback",
        "code_verifier": VERIFIER,
        "resource": f"{ISSUER}/t/acme/mcp",
    }
    body = urlencode([*form.items(), (name, form[name])])
    error = error_of(answer_token(body, f"{ISSUER}/token", ISSUER))
    assert error == ("invalid_target" if name == "resource" else "invalid_request")


def test_a_body_that_is_no_form_and_parameters_in_the_address_are_refused() -> None:
    for body in ("", "%%%", "{}", "grant_type=%ff", "a=1;b=2"):
        assert error_of(answer_token(body, f"{ISSUER}/token", ISSUER))
    assert error_of(answer_token("", f"{ISSUER}/token?grant_type=refresh_token", ISSUER))


def test_a_redirect_uri_may_be_omitted_at_redemption(client: OAuthClient, cast: Cast) -> None:
    pair_of(redeem(client, code_of(client, cast.member), redirect_uri=None))


def test_an_expired_code_is_refused(client: OAuthClient, cast: Cast) -> None:
    code = code_of(client, cast.member)
    AuthorizationCode.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert error_of(redeem(client, code)) == "invalid_grant"


def test_a_code_that_is_redeemed_twice_ends_the_connection(client: OAuthClient, cast: Cast) -> None:
    code = code_of(client, cast.member)
    pair = pair_of(redeem(client, code))
    assert error_of(redeem(client, code, code_verifier=VERIFIER + "x")) == "invalid_grant"
    assert _principal(pair.access) is not None
    assert error_of(redeem(client, code)) == "invalid_grant"
    assert _principal(pair.access) is None
    assert error_of(refresh(client, pair.refresh)) == "invalid_grant"
    entry = Entry.objects.get(action="connection.ended")
    assert entry.facts["reason"] == "a code was redeemed twice"


def test_refreshing_yields_a_new_pair_and_the_same_principal(
    client: OAuthClient, cast: Cast
) -> None:
    first = _pair(client, cast)
    second = pair_of(refresh(client, first.refresh))
    assert len({*first[:2], *second[:2]}) == 4
    # The first access token lives until it expires.
    assert _principal(first.access) == _principal(second.access) is not None


def test_a_used_refresh_token_yields_the_same_answer_for_a_minute(
    client: OAuthClient, cast: Cast
) -> None:
    first = _pair(client, cast)
    second = pair_of(refresh(client, first.refresh))
    RefreshToken.objects.exclude(used_at=None).update(
        used_at=timezone.now() - timedelta(seconds=50)
    )
    again = refresh(client, first.refresh)
    assert pair_of(again) == second
    assert ACCESS_SECONDS - 60 <= json.loads(again.body)["expires_in"] <= ACCESS_SECONDS - 50
    third = pair_of(refresh(client, second.refresh))
    assert _principal(third.access) is not None


def test_a_refresh_token_that_is_used_after_the_minute_ends_the_connection(
    client: OAuthClient, cast: Cast
) -> None:
    first = _pair(client, cast)
    second = pair_of(refresh(client, first.refresh))
    RefreshToken.objects.exclude(used_at=None).update(
        used_at=timezone.now() - timedelta(seconds=61)
    )
    assert error_of(refresh(client, first.refresh)) == "invalid_grant"
    assert _principal(second.access) is None
    assert error_of(refresh(client, second.refresh)) == "invalid_grant"


def test_a_token_does_not_outlive_its_connection(client: OAuthClient, cast: Cast) -> None:
    pair = _pair(client, cast)
    Connection.objects.update(ended_at=timezone.now())
    assert _principal(pair.access) is None


@pytest.mark.parametrize("minutes", [5, -5])
def test_a_process_with_another_clock_redeems_codes_and_repeats_answers(
    client: OAuthClient, cast: Cast, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    code, first = code_of(client, cast.member), _pair(client, cast)
    second = pair_of(refresh(client, first.refresh))
    here = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: here() + timedelta(minutes=minutes))
    pair_of(redeem(client, code))
    assert pair_of(refresh(client, first.refresh)) == second
    assert Connection.objects.get().ended_at is None
    # And the other way round: what this process makes is good for processes with the right clock.
    code = code_of(client, cast.member)
    third = pair_of(refresh(client, second.refresh))
    monkeypatch.undo()
    pair_of(redeem(client, code))
    assert pair_of(refresh(client, second.refresh)) == third


def test_a_refresh_token_serves_only_its_own_client_and_resource(
    client: OAuthClient, cast: Cast
) -> None:
    other, pair = make_client("dcr-other"), _pair(client, cast)
    assert error_of(refresh(other, pair.refresh)) == "invalid_grant"
    target = f"{ISSUER}/t/globex/mcp"
    assert error_of(refresh(client, pair.refresh, resource=target)) == "invalid_target"
    pair_of(refresh(client, pair.refresh, resource=f"{ISSUER}/t/acme/mcp"))
    # A used one tells another client nothing either.
    assert error_of(refresh(other, pair.refresh)) == "invalid_grant"
    assert error_of(refresh(client, pair.refresh, resource=target)) == "invalid_target"


def test_a_connection_is_refreshed_a_limited_number_of_times(
    client: OAuthClient, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grants, "MAX_REFRESHES", 2)
    pair, other = _pair(client, cast), pair_of(redeem(client, code_of(client, cast.owner)))
    for _ in range(2):
        pair = pair_of(refresh(client, pair.refresh))
    assert error_of(refresh(client, pair.refresh)) == "temporarily_unavailable"
    assert _principal(pair.access) is not None
    pair_of(refresh(client, other.refresh))


def test_naming_scopes_when_refreshing_widens_nothing(client: OAuthClient, cast: Cast) -> None:
    pair = _pair(client, cast, "mcp:list")
    again = pair_of(refresh(client, pair.refresh, scope="mcp:list mcp:call api:write"))
    assert again.scope == pair.scope == "mcp:list"
    principal = _principal(again.access)
    assert principal is not None
    assert principal.scopes == {"mcp:list"}


def test_another_consent_changes_the_scopes_and_keeps_the_principal(
    client: OAuthClient, cast: Cast
) -> None:
    first = _pair(client, cast, "mcp:list")
    second = _pair(client, cast, "mcp:list", "mcp:call")
    before, after = _principal(first.access), _principal(second.access)
    assert before is not None
    assert before == after
    assert before.scopes == {"mcp:list", "mcp:call"}
    assert Connection.objects.count() == 1


def test_scopes_are_cut_to_the_role_at_consent_and_at_use(client: OAuthClient, cast: Cast) -> None:
    pair = pair_of(redeem(client, code_of(client, cast.operator, "mcp:list", "mcp:deploy")))
    assert pair.scope == "mcp:deploy mcp:list"
    set_member(cast.acme.id, cast.operator.user, Role.MEMBER, actor=ACTOR)
    selectors.forget_all()
    principal = _principal(pair.access)
    assert principal is not None
    assert principal.scopes == {"mcp:list"}
    assert pair_of(refresh(client, pair.refresh)).scope == "mcp:list"
    assert pair_of(
        redeem(client, code_of(client, cast.member, "mcp:list", "mcp:deploy"))
    ).scope == ("mcp:list")


@pytest.mark.parametrize("moment", ["consented", "connected"])
@pytest.mark.parametrize("loss", ["removed", "deactivated", "closed"])
def test_a_member_who_is_gone_gets_nothing_at_any_step(
    client: OAuthClient, cast: Cast, moment: str, loss: str
) -> None:
    code, pair = code_of(client, cast.member), None
    if moment == "connected":
        pair = pair_of(redeem(client, code))
    if loss == "removed":
        remove_member(cast.acme.id, cast.member.user, actor=ACTOR)
    elif loss == "deactivated":
        cast.member.user.is_active = False
        cast.member.user.save()
    else:
        close_tenant(cast.acme.id, actor=ACTOR)
    selectors.forget_all()
    if pair is None:
        assert error_of(redeem(client, code)) == "invalid_grant"
    else:
        assert _principal(pair.access) is None
        assert error_of(refresh(client, pair.refresh)) == "invalid_grant"


def test_a_member_who_returns_has_no_connection(client: OAuthClient, cast: Cast) -> None:
    pair = _pair(client, cast)
    remove_member(cast.acme.id, cast.member.user, actor=ACTOR)
    set_member(cast.acme.id, cast.member.user, Role.MEMBER, actor=ACTOR)
    selectors.forget_all()
    assert _principal(pair.access) is None
    assert error_of(refresh(client, pair.refresh)) == "invalid_grant"
    assert connection_page(cast.acme.id).connections == ()


@pytest.mark.parametrize("token", ["access", "refresh"])
@pytest.mark.parametrize("hint", [None, "access_token", "refresh_token", "nonsense"])
def test_a_client_revokes_its_connection_by_either_token(
    client: OAuthClient, cast: Cast, token: str, hint: str | None
) -> None:
    pair, other = _pair(client, cast), make_client("dcr-other")
    form = {"token": getattr(pair, token), "token_type_hint": hint, "client_id": client.pk}

    def revoke(**changed: str) -> int:
        sent = {name: value for name, value in {**form, **changed}.items() if value is not None}
        return answer_revocation(urlencode(sent), f"{ISSUER}/revoke", ISSUER).status

    assert revoke(client_id=other.pk) == revoke(token="unknown") == 200  # RFC 7009 section 2.2
    assert revoke(token=pair.access.swapcase()) == 200
    assert _principal(pair.access) is not None
    assert revoke() == 200
    assert _principal(pair.access) is None
    assert error_of(refresh(client, pair.refresh)) == "invalid_grant"
    assert revoke() == 200
    assert Entry.objects.filter(action="connection.ended").count() == 1


def test_a_code_that_was_not_redeemed_before_the_end_is_refused(
    client: OAuthClient, cast: Cast
) -> None:
    other = make_client("dcr-other")
    _pair(client, cast)
    codes = {app: code_of(app, cast.member) for app in (client, other)}
    of_owner = code_of(client, cast.owner)
    (row,) = connection_page(cast.acme.id).connections
    assert end(cast.acme.id, row.id, actor=ACTOR)
    assert error_of(redeem(client, codes[client])) == "invalid_grant"
    pair_of(redeem(other, codes[other]))
    pair_of(redeem(client, of_owner))


def test_after_the_end_another_consent_makes_another_principal(
    client: OAuthClient, cast: Cast
) -> None:
    first = _pair(client, cast)
    before = _principal(first.access)
    assert before is not None
    (row,) = connection_page(cast.acme.id).connections
    assert end(cast.acme.id, row.id, actor=ACTOR)
    assert not end(cast.acme.id, row.id, actor=ACTOR)
    after = _principal(_pair(client, cast).access)
    assert after is not None
    assert after.id != before.id
    assert _principal(first.access) is None


def test_only_digests_are_stored_and_nothing_is_logged(
    client: OAuthClient, cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    code = code_of(client, cast.member)
    first = pair_of(redeem(client, code))
    second = pair_of(refresh(client, first.refresh))
    error_of(refresh(client, first.refresh + "x"))
    rows = [*Token.objects.all(), *RefreshToken.objects.all(), *AuthorizationCode.objects.all()]
    rows += [*Connection.objects.all(), *Entry.objects.all()]
    stored = serialize("json", rows) + caplog.text
    for secret in (code, VERIFIER, *first[:2], *second[:2]):
        assert secret not in stored


def test_expired_access_tokens_of_a_connection_go_when_it_refreshes(
    client: OAuthClient, cast: Cast
) -> None:
    pair = _pair(client, cast)
    Token.objects.exclude(connection=None).update(expires_at=timezone.now())
    pair_of(refresh(client, pair.refresh))
    assert Token.objects.exclude(connection=None).count() == 1
    assert selectors.own_token_page(cast.member.user.pk).tokens == tuple(
        row for row in selectors.own_token_page(cast.member.user.pk).tokens if row.name != "Laptop"
    )


def test_the_lifetime_is_not_so_short_that_clients_refresh_at_each_request() -> None:
    assert ask({"grant_type": "refresh_token"}).status == 400
    assert grants.ACCESS_SECONDS > 300
