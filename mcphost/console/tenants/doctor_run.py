"""Open a client and run Doctor with it for a user on a tenant: which rights of the user it uses, and what it
leaves behind."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from mcphost.console.base import SignedInRequest, actor
from mcphost.console.tenants.doctor import (
    REDIRECT,
    BrowserView,
    Doctor,
    DoctorFinding,
    DoctorState,
    StepFailedError,
    StepSkippedError,
)
from mcphost.console.tenants.doctor_client import TOTAL_SECONDS, DoctorClient, OwnServer
from mcphost.egress.errors import EgressRequestError
from mcphost.identity.attempts import count_event
from mcphost.identity.models import Connection, OAuthClient
from mcphost.identity.oauth import connection_log
from mcphost.identity.oauth.addresses import SCOPES, issuer_of
from mcphost.identity.oauth.connections import Consent, consent, end
from mcphost.tenants.models import Membership, Tenant

PAUSE: Final = timedelta(seconds=TOTAL_SECONDS + 10)
"""Within which one run may begin in a tenant: so there is one at a time, over all processes."""


def run(request: SignedInRequest, tenant: Tenant) -> Sequence[DoctorFinding] | None:
    """Return what Doctor finds; None if a run began a moment ago. It takes up to TOTAL_SECONDS."""
    if not count_event(f"doctor of {tenant.pk}", 1, PAUSE):
        return None
    origin = issuer_of(request.get_host())
    port = str(request.META.get("SERVER_PORT", ""))
    try:
        server = OwnServer.of(origin, tenant.slug, port)
    except EgressRequestError as error:
        text = f"{origin} is no address: {error} Set MCPHOST_PUBLIC_URL."
        return (DoctorFinding("Address", DoctorState.FAILED, text),)
    view = BrowserView(
        request.headers.get("origin", ""), str(request.scheme), request.get_host().lower()
    )
    with DoctorClient(server) as client:
        doctor = Doctor(client, view, public=tenant.public)
        try:
            return doctor.examine(lambda *grant: _code(request, tenant, *grant))
        finally:
            _clean_up(request, tenant, doctor.client_id)


def _code(request: SignedInRequest, tenant: Tenant, client_id: str, challenge: str) -> str:
    """Consent for the user to the client that Doctor has registered; return the code."""
    client = OAuthClient.objects.filter(pk=client_id).first()
    if client is None:
        raise StepFailedError(
            "What was registered is not in this server's database: another server answers at this "
            "address, or one with another database."
        )
    membership = Membership.objects.filter(tenant=tenant, user=request.user).first()
    if membership is None:
        raise StepSkippedError(
            "You have no role in this tenant, so no token can act as you. Let an owner run Doctor."
        )
    grant = Consent(client, REDIRECT, challenge, SCOPES)
    return consent(membership.pk, grant, actor=actor(request))


def _clean_up(request: SignedInRequest, tenant: Tenant, client_id: str) -> None:
    """End a connection that could not be revoked, and take the run out of the connection log."""
    remaining = Connection.objects.filter(
        client_id=client_id, membership__tenant=tenant, ended_at=None
    )
    for connection_id in remaining.values_list("pk", flat=True):
        end(tenant.pk, connection_id, actor=actor(request))
    if client_id:
        connection_log.forget(tenant.pk, client_id)
