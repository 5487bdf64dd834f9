"""The authorization endpoint, `/authorize`: a member reads what a client asks for, and decides.

A signed-out person signs in first, before anything is looked up. The decision is asked for each
time. It is posted to the address of the request, so it can add nothing to what the client asked
for; it only says yes or no, and to which tenant if the request names none. Specification:
basic/authorization (Authorization Flow, Security Considerations), RFC 6749 section 4.1.1.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseBase
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_http_methods

from mcphost.console.base import SignedInRequest, actor, query_text, show
from mcphost.console.middleware import STRICT
from mcphost.console.tenants.tokens import scope_meanings
from mcphost.identity.models import OAuthClient
from mcphost.identity.oauth import clients, connection_log, redirects
from mcphost.identity.oauth.addresses import issuer_of
from mcphost.identity.oauth.connection_log import StepKind
from mcphost.identity.oauth.connections import Consent, consent, takeable
from mcphost.identity.oauth.errors import OAuthError
from mcphost.identity.oauth.grants import (
    AuthorizationRequest,
    RedirectedError,
    read_authorization,
)
from mcphost.tenants.fields import SLUG
from mcphost.tenants.models import ROLES_BY_TITLE, Membership

ALLOW: Final = "_allow"
TITLE: Final = "Connect a client"
NO_SCOPES: Final = "The person's role allows none of the scopes that the client asks for."
_NAMED: Final = re.compile(rf"/t/({SLUG.pattern})/mcp/?$")


class Choice(NamedTuple):
    """A tenant that the client may be connected to, and what it would be allowed there."""

    membership: Membership
    scopes: Sequence[tuple[str, str]]
    refusal: str | None


@never_cache
@csrf_protect
@require_http_methods(["GET", "HEAD", "POST"])
def authorize(request: SignedInRequest) -> HttpResponseBase:
    """Show what a client asks the signed-in person for; a POST sends the decision to the client."""
    if not request.user.is_active:
        connection_log.note(StepKind.OPENED, _named_slug(request))
        return redirect_to_login(request.get_full_path())
    issuer = issuer_of(request.get_host())
    client: OAuthClient | None = None
    try:
        client = clients.resolve(request.GET.get("client_id", ""), request.user.pk)
        authorization = read_authorization(issuer + request.get_full_path(), client, issuer)
    except OAuthError as error:
        _log_refusal(request, None, error.description)
        return show(
            request,
            "consent_refused.html",
            TITLE,
            status=400,
            explanation=error.description.removesuffix(clients.ADD_AGAIN),
            client_id=query_text(request.GET, "client_id"),
            server=issuer,
            at=timezone.now(),
        )
    except RedirectedError as error:
        _log_refusal(request, client, error.description)
        return _to_client(error.location)
    choices = _choices(request, authorization)
    if authorization.slug is not None and not choices:
        return _to_client(authorization.location(issuer, **_NO_TARGET))
    if request.method == "POST":
        return _decide(request, authorization, choices, issuer)
    if authorization.slug is not None:
        _log_arrival(authorization.client, choices[0])
    return _ask(request, authorization, choices)


_NO_TARGET: Final = {
    "error": "invalid_target",
    "error_description": "You have no role at this MCP server, or it does not exist.",
}
_DENIED: Final = {
    "error": "access_denied",
    "error_description": "The person did not allow the client to connect.",
}
_NOT_ALLOWED: Final = {
    "error": "access_denied",
    "error_description": "The person's role at this MCP server allows none of the scopes any more.",
}


def _named_slug(request: SignedInRequest) -> str:
    """Return the slug in the `resource` of a request that may be malformed; empty if it names none."""
    match = _NAMED.search(query_text(request.GET, "resource"))
    return "" if match is None else match[1]


def _log_refusal(request: SignedInRequest, client: OAuthClient | None, reason: str) -> None:
    """Log why a request was refused, for the person's own tenant that it names."""
    rows = Membership.objects.filter(user=request.user, tenant__slug=_named_slug(request))
    membership = rows.filter(tenant__closed_at=None).first()
    if membership is not None:
        refused = connection_log.of_person(
            membership, client or OAuthClient(), StepKind.REFUSED, reason
        )
        connection_log.write([refused])


def _log_arrival(client: OAuthClient, choice: Choice) -> None:
    records = connection_log.arrival(choice.membership, client)
    refusal = choice.refusal or ("" if choice.scopes else NO_SCOPES)
    if refusal:
        records.append(
            connection_log.of_person(choice.membership, client, StepKind.REFUSED, refusal)
        )
    connection_log.write(records)


def _choices(request: SignedInRequest, authorization: AuthorizationRequest) -> Sequence[Choice]:
    """Return the tenants of the person that the client asks for: one, or all without a resource."""
    rows = Membership.objects.select_related("tenant").filter(
        user=request.user, tenant__closed_at=None
    )
    if authorization.slug is not None:
        rows = rows.filter(tenant__slug=authorization.slug)
    return [
        Choice(
            row,
            scope_meanings(takeable(row, authorization.scopes)),
            clients.allowed_in(authorization.client, row.tenant),
        )
        for row in rows.order_by(*ROLES_BY_TITLE)
    ]


def _ask(
    request: SignedInRequest, authorization: AuthorizationRequest, choices: Sequence[Choice]
) -> HttpResponseBase:
    response = show(
        request,
        "consent.html",
        TITLE,
        client=authorization.client,
        document_host=authorization.client.document_host,
        redirect_host=redirects.host_of(authorization.redirect_uri),
        loopback=redirects.is_loopback(authorization.redirect_uri),
        choices=[choice for choice in choices if choice.scopes and not choice.refusal],
        refusals=[choice for choice in choices if choice.refusal],
        path=request.get_full_path(),
    )
    # Chromium applies form-action to the redirect that follows the form, too.
    sources = f"form-action 'self' {_form_source(authorization.redirect_uri)}"
    policy = STRICT.replace("form-action 'self'", sources)
    response.headers["Content-Security-Policy"] = policy
    return response


def _form_source(redirect_uri: str) -> str:
    """Return the source expression for a redirect: the origin on this computer, or else the scheme.

    An https client may redirect further, to other hosts of its own. CSP has no IPv6 addresses.
    """
    parts = urlsplit(redirect_uri)
    named = parts.scheme == "http" and "[" not in parts.netloc
    return f"http://{parts.netloc}" if named else f"{parts.scheme}:"


def _decide(
    request: SignedInRequest,
    authorization: AuthorizationRequest,
    choices: Sequence[Choice],
    issuer: str,
) -> HttpResponseBase:
    if ALLOW not in request.POST:
        if authorization.slug is not None:
            declined = connection_log.of_person(
                choices[0].membership, authorization.client, StepKind.DECLINED
            )
            connection_log.write([declined])
        return _to_client(authorization.location(issuer, **_DENIED))
    membership_id = request.POST.get("tenant", "")
    choice = next(
        (choice for choice in choices if str(choice.membership.pk) == membership_id), None
    )
    if choice is None or choice.refusal:
        return _ask(request, authorization, choices)
    grant = Consent(
        authorization.client,
        authorization.redirect_uri,
        authorization.code_challenge,
        authorization.scopes,
    )
    try:
        code = consent(choice.membership.pk, grant, actor=actor(request))
    except PermissionDenied:
        return _to_client(authorization.location(issuer, **_NOT_ALLOWED))
    return _to_client(authorization.location(issuer, code=code))


def _to_client(location: str) -> HttpResponse:
    """Send the browser to the client, whose address may have a scheme of its own."""
    headers: dict[str, Any] = {"Location": location, "Referrer-Policy": "no-referrer"}
    return HttpResponse(status=302, headers=headers)
