"""Tests of the page on which a member decides about a client."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.audit import last_use
from mcphost.audit.models import Entry
from mcphost.identity.models import AuthorizationCode, ConnectionStep, OAuthClient
from mcphost.identity.oauth.connection_log import ConnectionAttempt, StepKind, attempts
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Role
from mcphost.tenants.services import remove_member, set_member
from tests.cast import ACTOR, PASSWORD, Cast, Person
from tests.oauth import (
    CHALLENGE,
    REDIRECT,
    check_description,
    make_client,
    membership_of,
    pair_of,
    query_of,
    redeem,
)

pytestmark = pytest.mark.django_db
ORIGIN = "http://testserver"
RESOURCE = f"{ORIGIN}/t/acme/mcp"


@pytest.fixture
def app() -> OAuthClient:
    return make_client()


def _url(**changed: str | None) -> str:
    request: dict[str, str | None] = {
        "response_type": "code",
        "client_id": "dcr-laptop",
        "redirect_uri": REDIRECT,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "state": "of the client",
        "resource": RESOURCE,
        **changed,
    }
    named = {name: value for name, value in request.items() if value is not None}
    return f"/authorize?{urlencode(named)}"


def _browser(person: Person, **options: Any) -> Client:
    browser = Client(headers={"accept": "text/html"}, **options)
    assert browser.login(username=person.user.get_username(), password=PASSWORD)
    return browser


def _allow(browser: Client, url: str, person: Person) -> Any:
    return browser.post(url, {"_allow": "1", "tenant": str(membership_of(person).pk)})


def _told(response: Any) -> dict[str, Any]:
    """Return what the client is told, at its own redirect URI."""
    assert response.status_code == 302
    assert response.headers["Location"].startswith(REDIRECT + "?")
    told = query_of(response.headers["Location"])
    assert told["iss"] == ORIGIN
    if "error" in told:
        check_description(told)
    return told


def test_a_member_allows_a_client_and_it_gets_a_code(app: OAuthClient, cast: Cast) -> None:
    browser = _browser(cast.member)
    page = browser.get(_url())
    text = page.content.decode()
    for shown in ("Laptop", "member", "Acme", "acme", "127.0.0.1:41234", "list tools"):
        assert shown in text
    assert "runs on your own computer" in text
    assert "registered itself" in text
    assert not AuthorizationCode.objects.exists()
    told = _told(_allow(browser, _url(), cast.member))
    assert told["state"] == "of the client"
    assert pair_of(redeem(app, told["code"])).scope == "mcp:call mcp:list"
    entry = Entry.objects.get(action="connection.consented")
    assert (entry.tenant, entry.actor_id) == (cast.acme.id, str(cast.member.user.pk))


def test_a_person_with_the_wrong_account_signs_in_with_another(
    app: OAuthClient, cast: Cast
) -> None:
    browser, url = _browser(cast.member), _url()
    page = browser.get(url).content.decode()
    (door,) = re.findall(r'<a href="(/admin/login/[^"]+)">Sign in with another account', page)
    assert "An application wants to act for you" in browser.get(door).content.decode()
    back = browser.post(door, {"username": "owner", "password": PASSWORD})
    assert back.headers["Location"] == url
    assert "Not <bdi>owner</bdi>?" in browser.get(url).content.decode()


def test_a_denial_is_told_to_the_client(app: OAuthClient, cast: Cast) -> None:
    told = _told(_browser(cast.member).post(_url(), {"_deny": "1"}))
    assert told["error"] == "access_denied"
    assert told["state"] == "of the client"
    assert not AuthorizationCode.objects.exists()


def test_consent_is_asked_each_time_whatever_the_client_says(app: OAuthClient, cast: Cast) -> None:
    browser = _browser(cast.member)
    _told(_allow(browser, _url(), cast.member))
    for more in ({"prompt": "none"}, {"approval_prompt": "auto"}, {"prompt": "consent login"}):
        assert browser.get(_url(**more)).status_code == 200


@pytest.mark.parametrize("client_id", ["dcr-laptop", "dcr-unknown", "https://app.test/client.json"])
def test_a_signed_out_person_signs_in_before_anything_is_looked_up(
    app: OAuthClient, cast: Cast, client_id: str, django_assert_num_queries: Any
) -> None:
    url = _url(client_id=client_id, redirect_uri="https://elsewhere.test/")
    with django_assert_num_queries(0):
        response = Client().get(url)
    assert response.status_code == 302
    assert response.headers["Location"].startswith("/admin/login/?next=/authorize%3F")
    browser = Client()
    sign_in = {"username": "member", "password": PASSWORD}
    back = browser.post(Client().get(_url()).headers["Location"], sign_in)
    assert back.headers["Location"] == _url()


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": None},
        {"client_id": "dcr-unknown"},
        {"redirect_uri": None},
        {"redirect_uri": "https://elsewhere.test/callback"},
        {"redirect_uri": REDIRECT + "/more"},
        {"redirect_uri": REDIRECT.replace("127.0.0.1", "127.0.0.2")},
        {"redirect_uri": "javascript:alert(1)"},
        {"redirect_uri": "https://app.test/callback?more=1"},
    ],
)
def test_an_untrusted_redirect_uri_is_shown_to_the_person_and_nothing_is_sent_there(
    app: OAuthClient, cast: Cast, changed: dict[str, str | None]
) -> None:
    browser = _browser(cast.member)
    for response in (
        browser.get(_url(**changed)),
        _allow(browser, _url(**changed), cast.member),
    ):
        assert response.status_code == 400
        page = response.content.decode()
        assert "cannot be connected" in page
        assert "Client id: " in page
        assert "Server: http://testserver\n" in page
        assert "Location" not in response.headers
    assert not AuthorizationCode.objects.exists()


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "none"}, "unauthorized_client"),
        ({"response_type": "code id_token"}, "unauthorized_client"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"scope": "mcp:list admin"}, "invalid_scope"),
        ({"scope": "api:write"}, "invalid_scope"),
        ({"resource": f"{ORIGIN}/t/globex/mcp"}, "invalid_target"),
        ({"resource": f"{ORIGIN}/t/no-such-tenant/mcp"}, "invalid_target"),
        ({"resource": "https://elsewhere.test/t/acme/mcp"}, "invalid_target"),
        ({"resource": ORIGIN}, "invalid_target"),
        ({"resource": f"{ORIGIN}:443/t/acme/mcp"}, "invalid_target"),
        ({"resource": f"{ORIGIN}:80:80/t/acme/mcp"}, "invalid_target"),
        ({"resource": f"{ORIGIN}/t/a\0b/mcp"}, "invalid_target"),
        ({"resource": f"{ORIGIN}/t/acme/mcp?more=1"}, "invalid_target"),
        ({"state": "x" * 5000}, "invalid_request"),
    ],
)
def test_another_fault_is_told_to_the_client(
    app: OAuthClient, cast: Cast, changed: dict[str, str | None], error: str
) -> None:
    browser = _browser(cast.member)
    for response in (
        browser.get(_url(**changed)),
        _allow(browser, _url(**changed), cast.member),
    ):
        told = _told(response)
        assert told["error"] == error
        assert ("state" in told) == ("state" not in changed)
    assert not AuthorizationCode.objects.exists()


def test_a_foreign_and_an_unknown_tenant_are_told_alike(app: OAuthClient, cast: Cast) -> None:
    browser = _browser(cast.member)
    foreign, unknown = (
        browser.get(_url(resource=f"{ORIGIN}/t/{slug}/mcp")).headers["Location"]
        for slug in ("globex", "no-such")
    )
    assert foreign == unknown


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "resource", "state", "scope"])
def test_a_parameter_that_is_there_twice_is_refused(
    app: OAuthClient, cast: Cast, name: str
) -> None:
    url = _url(scope="mcp:list")
    twice = url + "&" + urlencode({name: "mcp:call"})
    response = _browser(cast.member).get(twice)
    if name == "resource":
        assert _told(response)["error"] == "invalid_target"
    else:
        assert response.status_code == 400


@pytest.mark.parametrize("origin", ["HTTP://TestServer", "http://testserver:80"])
def test_a_resource_may_have_upper_case_the_default_port_and_a_slash(
    app: OAuthClient, cast: Cast, origin: str
) -> None:
    url = _url(resource=f"{origin}/t/acme/mcp/")
    assert "code" in _told(_allow(_browser(cast.member), url, cast.member))


def test_a_client_that_is_pruned_before_the_decision_cannot_be_connected(
    app: OAuthClient, cast: Cast
) -> None:
    browser = _browser(cast.member)
    browser.get(_url())
    app.delete()
    assert _allow(browser, _url(), cast.member).status_code == 400


def test_a_request_without_a_resource_offers_the_tenants_of_the_person(
    app: OAuthClient, cast: Cast
) -> None:
    set_member(cast.globex.id, cast.member.user, Role.MEMBER, actor=ACTOR)
    browser = _browser(cast.member)
    page = browser.get(_url(resource=None)).content.decode()
    assert set(re.findall(r'type="radio" name="tenant" value="([^"]+)"', page)) == {
        str(pk) for pk in cast.member.user.memberships.values_list("pk", flat=True)
    }
    assert "Commons" not in page
    chosen = cast.member.user.memberships.get(tenant_id=cast.globex.id)
    told = _told(browser.post(_url(resource=None), {"_allow": "1", "tenant": str(chosen.pk)}))
    assert AuthorizationCode.objects.get().membership == chosen
    assert "code" in told


def test_a_tampered_form_widens_nothing(app: OAuthClient, cast: Cast) -> None:
    browser = _browser(cast.member)
    url = _url(scope="mcp:list")
    foreign = str(membership_of(cast.stranger).pk)
    for tenant in (foreign, "", "nonsense", str(membership_of(cast.owner).pk)):
        page = browser.post(url, {"_allow": "1", "tenant": tenant})
        assert page.status_code == 200
    posted = {
        "_allow": "1",
        "tenant": str(membership_of(cast.member).pk),
        "scope": "mcp:list mcp:call mcp:deploy",
        "redirect_uri": "https://elsewhere.test/",
        "client_id": "dcr-other",
    }
    _told(browser.post(url, posted))
    code = AuthorizationCode.objects.get()
    assert (code.scopes, code.redirect_uri, code.client_id) == (["mcp:list"], REDIRECT, app.pk)


def test_a_post_without_the_token_of_the_page_is_refused(app: OAuthClient, cast: Cast) -> None:
    browser = _browser(cast.member, enforce_csrf_checks=True)
    assert _allow(browser, _url(), cast.member).status_code == 403
    assert not AuthorizationCode.objects.exists()


def test_the_page_cannot_be_framed_and_may_only_lead_to_the_client(
    app: OAuthClient, cast: Cast
) -> None:
    headers = _browser(cast.member).get(_url()).headers
    policy = headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://127.0.0.1:41234;" in policy
    assert "no-store" in headers["Cache-Control"]


@pytest.mark.parametrize(
    ("redirect_uri", "source"),
    [
        ("https://app.test/callback", "https:"),
        ("http://[::1]:99/callback", "http:"),
        ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor:"),
    ],
)
def test_the_policy_allows_what_follows_the_decision(
    app: OAuthClient, cast: Cast, redirect_uri: str, source: str
) -> None:
    OAuthClient.objects.update(redirect_uris=[redirect_uri])
    browser = _browser(cast.member)
    url = _url(redirect_uri=redirect_uri)
    policy = browser.get(url).headers["Content-Security-Policy"]
    assert f"form-action 'self' {source};" in policy
    response = _allow(browser, url, cast.member)
    assert response.headers["Location"].startswith(redirect_uri + "?")


def test_a_tenant_that_accepts_only_documents_says_so(app: OAuthClient, cast: Cast) -> None:
    Tenant.objects.filter(pk=cast.acme.id).update(metadata_documents_only=True)
    browser = _browser(cast.member)
    assert "accepts only clients with a metadata document" in browser.get(_url()).content.decode()
    assert _allow(browser, _url(), cast.member).status_code == 200
    assert not AuthorizationCode.objects.exists()


def test_a_member_who_is_removed_before_the_decision_gets_nothing(
    app: OAuthClient, cast: Cast
) -> None:
    browser, membership = _browser(cast.member), str(membership_of(cast.member).pk)
    browser.get(_url())
    remove_member(cast.acme.id, cast.member.user, actor=ACTOR)
    told = _told(browser.post(_url(), {"_allow": "1", "tenant": membership}))
    assert told["error"] == "invalid_target"


def test_a_client_cannot_put_markup_or_other_words_into_the_page(cast: Cast) -> None:
    make_client(name="<b>Acme</b> \u202eevil")
    page = _browser(cast.member).get(_url()).content.decode()
    assert "<b>Acme</b> \u202e" not in page
    assert "\u202e" not in page
    assert "&lt;b&gt;Acme" in page


def _logged(cast: Cast) -> ConnectionAttempt:
    (attempt,) = attempts(cast.acme.id)
    return attempt


def test_the_steps_of_a_person_are_logged(app: OAuthClient, cast: Cast) -> None:
    browser = _browser(cast.member)
    browser.get(_url())
    assert (_logged(cast).person, _logged(cast).name) == ("member", "Laptop")
    assert _logged(cast).last.step is StepKind.SIGNED_IN
    browser.post(_url(), {"_deny": "1"})
    assert _logged(cast).last.step is StepKind.DECLINED
    _allow(browser, _url(), cast.member)
    assert _logged(cast).last.step is StepKind.CONSENTED


def test_where_a_request_is_refused_is_logged_with_the_reason(app: OAuthClient, cast: Cast) -> None:
    browser = _browser(cast.member)
    browser.get(_url(client_id="dcr-gone"))
    attempt = _logged(cast)
    assert (attempt.name, attempt.last.step) == ("", StepKind.REFUSED)
    assert "No client is registered with this id" in attempt.last.detail
    browser.get(_url(code_challenge=None))
    newest = attempts(cast.acme.id)[0]
    assert (newest.name, newest.last.step) == ("Laptop", StepKind.REFUSED)
    assert "Code challenge required" in newest.last.detail


def test_a_client_that_a_tenant_does_not_accept_is_logged(app: OAuthClient, cast: Cast) -> None:
    Tenant.objects.filter(pk=cast.acme.id).update(metadata_documents_only=True)
    _browser(cast.member).get(_url())
    last = _logged(cast).last
    assert last.step is StepKind.REFUSED
    assert "accepts only clients with a metadata document" in last.detail


def test_nothing_is_logged_for_a_tenant_of_others(app: OAuthClient, cast: Cast) -> None:
    for url in (_url(), _url(client_id="dcr-gone"), _url(code_challenge=None)):
        _browser(cast.stranger).get(url)
        _browser(cast.stranger).post(url, {"_deny": "1"})
    assert not ConnectionStep.objects.exists()


def test_a_signed_out_visit_is_noted_and_written_later(app: OAuthClient, cast: Cast) -> None:
    Client(headers={"accept": "text/html"}).get(_url())
    assert not ConnectionStep.objects.exists()
    last_use.flush(timezone.now())
    attempt = _logged(cast)
    assert (attempt.person, attempt.name, attempt.last.step) == ("", "", StepKind.OPENED)
