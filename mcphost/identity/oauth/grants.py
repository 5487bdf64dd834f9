"""The authorization, token and revocation endpoints: oauthlib's checks over our tables.

oauthlib parses requests, checks them in the order of the RFCs and makes the answers. Here is what
it asks: whether a code, a refresh token or a client is good, and what is stored of new ones. All
clients are public, PKCE is S256, and codes and refresh tokens are used once.

No answer depends on which process redeems first: the membership's row is locked before a code or a
refresh token is read again.
"""

import json
import logging
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from oauthlib.common import Request, add_params_to_uri
from oauthlib.oauth2 import (
    AuthorizationCodeGrant,
    BearerToken,
    OAuth2Error,
    RefreshTokenGrant,
    RequestValidator,
    RevocationEndpoint,
    TokenEndpoint,
)
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error, FatalClientError
from oauthlib.oauth2.rfc6749.grant_types.authorization_code import code_challenge_method_s256

from mcphost.identity import tokens
from mcphost.identity.attempts import count_event
from mcphost.identity.models import AuthorizationCode, Connection, OAuthClient, RefreshToken, Token
from mcphost.identity.oauth import clients, connection_log, redirects
from mcphost.identity.oauth.addresses import SCOPES, normal_origin
from mcphost.identity.oauth.connection_log import StepKind
from mcphost.identity.oauth.connections import (
    AUTHORIZATION_SERVER,
    connect,
    digest,
    end_now,
    live_membership,
    takeable,
)
from mcphost.identity.oauth.errors import OAuthError, OAuthErrorCode, with_description
from mcphost.tenants.fields import SLUG
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import Audience, audience_of, is_scope

ACCESS_SECONDS: Final = 3600
REFRESH_LIFETIME: Final = timedelta(days=30)
REPEAT_WINDOW: Final = timedelta(seconds=60)
"""How long a used refresh token yields the same answer again, to a client that lost it or asked in
parallel. Used later, it ends the connection: another program may have a copy."""
MAX_REFRESHES: Final = 60
"""Of one connection in ten minutes. Clients refresh once an hour, some in several processes at once."""
MAX_STATE: Final = 4096
_IGNORED_SCOPES: Final = frozenset({"offline_access", "openid", "profile", "email"})
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_REFRESH_WINDOW: Final = timedelta(minutes=10)
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_RESOURCE: Final = re.compile(rf"/t/({SLUG.pattern})/mcp/?")

# It logs codes and refresh tokens at DEBUG.
logging.getLogger("oauthlib").setLevel(logging.WARNING)


class OAuthAnswer(NamedTuple):
    """The HTTP response of an endpoint."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class AuthorizationRequest(NamedTuple):
    """A checked authorization request. `slug` is the tenant of its resource, None if it names none."""

    client: OAuthClient
    redirect_uri: str
    state: str | None
    scopes: tuple[str, ...]
    code_challenge: str
    slug: str | None

    def location(self, issuer: str, **parameters: str) -> str:
        """Return where to send the browser: the redirect URI with parameters, `state` and `iss`
        (RFC 9207)."""
        if self.state is not None:
            parameters["state"] = self.state
        location: str = add_params_to_uri(self.redirect_uri, [*parameters.items(), ("iss", issuer)])
        return location


class RedirectedError(Exception):
    """A bad authorization request, of which the client is told: `location` is where."""

    def __init__(self, location: str, description: str) -> None:
        super().__init__("the client is told of a bad authorization request")
        self.location = location
        self.description = description


def read_authorization(uri: str, client: OAuthClient, issuer: str) -> AuthorizationRequest:
    """Check an authorization request of a known client (RFC 6749 section 4.1.1, 7636, 8707).

    Raises OAuthError if the person has to be told, because the redirect URI cannot be trusted, and
    RedirectedError if the client is.
    """
    validator = _Validator(issuer, client)
    try:
        request = Request(uri)
    except ValueError:
        message = "The address is not a well-formed authorization request."
        raise OAuthError(OAuthErrorCode.INVALID_REQUEST, message) from None
    try:
        request.scopes = None
        scopes, _ = _code_grant(validator).validate_authorization_request(request)
    except FatalClientError as error:
        raise OAuthError(OAuthErrorCode.INVALID_REQUEST, error.description or error.error) from None
    except OAuth2Error as error:
        parameters = with_description(dict(error.twotuples)) | {"iss": issuer}
        location = add_params_to_uri(request.redirect_uri, parameters.items())
        raise RedirectedError(location, parameters["error_description"]) from None
    return AuthorizationRequest(
        client,
        request.redirect_uri,
        request.state,
        tuple(scopes),
        request.code_challenge,
        validator.slug,
    )


@transaction.atomic
def answer_token(body: str, uri: str, issuer: str) -> OAuthAnswer:
    """Answer a request to the token endpoint (RFC 6749 sections 4.1.3 and 6)."""
    validator = _Validator(issuer)
    refresh, code = _RefreshGrant(validator), _code_grant(validator)
    endpoint = TokenEndpoint(
        default_grant_type="authorization_code",
        default_token_type=BearerToken(
            validator,
            token_generator=lambda request: tokens.new(secrets.token_bytes),
            refresh_token_generator=lambda request: secrets.token_urlsafe(48),
            expires_in=ACCESS_SECONDS,
        ),
        grant_types={"authorization_code": code, "refresh_token": refresh},
    )
    answer = _answered(lambda: endpoint.create_token_response(uri, "POST", body))
    validator.log_code(answer)
    return answer


@transaction.atomic
def answer_revocation(body: str, uri: str, issuer: str) -> OAuthAnswer:
    """Answer a request to the revocation endpoint (RFC 7009)."""
    endpoint = RevocationEndpoint(_Validator(issuer))
    return _answered(lambda: endpoint.create_revocation_response(uri, "POST", body))


class _RepeatedError(Exception):
    """A refresh token was used a moment ago: `answer` is what the client got for it."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("this refresh token was used a moment ago")
        self.answer = answer


def _answered(respond: Callable[[], tuple[Mapping[str, str], str, int]]) -> OAuthAnswer:
    """Return oauthlib's response, or that of an error that it leaves to its caller."""
    try:
        headers, body, status = respond()
    except _RepeatedError as repeated:
        return OAuthAnswer(200, repeated.answer, _NOT_STORED)
    except OAuth2Error as error:
        headers, body, status = error.headers, error.json, error.status_code
    except ValueError:
        refusal = {"error": "invalid_request", "error_description": "The body is not a form."}
        headers, body, status = {}, json.dumps(refusal), 400
    if status >= 400:
        body = json.dumps(with_description(json.loads(body)))
    return OAuthAnswer(status, body.encode(), {**headers, **_NOT_STORED})


_NOT_STORED: Final = {"Content-Type": "application/json", "Cache-Control": "no-store"}


def _code_grant(validator: "_Validator") -> AuthorizationCodeGrant:
    grant = AuthorizationCodeGrant(
        validator, pre_auth=[validator.check_request], pre_token=[validator.check_single]
    )
    grant._code_challenge_methods = {"S256": code_challenge_method_s256}
    return grant


class _RefreshGrant(RefreshTokenGrant):
    """The refresh grant. The scopes are the connection's, whichever of them the client names."""

    def __init__(self, validator: "_Validator") -> None:
        super().__init__(
            validator, pre_token=[validator.check_single], post_token=[validator.keep_scopes]
        )


class _Validator(RequestValidator):
    """What oauthlib asks while it checks one request.

    `slug` is the tenant that the authorization request names. `code`, `refresh_token` and
    `connection` are those of a token request, once they are found to be good, and `now` is then the
    time by the database's clock: processes whose clocks differ agree on minutes.
    """

    def __init__(self, issuer: str, client: OAuthClient | None = None) -> None:
        super().__init__()
        self.slug: str | None = None
        self._issuer = issuer
        self._client = client
        self._now: datetime | None = None
        self._code: AuthorizationCode | None = None
        self._membership: Membership | None = None
        self._refresh_token: RefreshToken | None = None
        self._connection: Connection | None = None

    # Authorization requests

    def validate_client_id(self, client_id: str, request: Request, *_: Any, **__: Any) -> bool:
        request.client = self._client
        return self._client is not None and client_id == self._client.pk

    def get_default_redirect_uri(
        self, client_id: str, request: Request, *_: Any, **__: Any
    ) -> str | None:
        """Return that of the code, which OAuth 2.1 lets the client omit; none is guessed before."""
        return None if self._code is None else self._code.redirect_uri

    def validate_redirect_uri(
        self, client_id: str, redirect_uri: str, request: Request, *_: Any, **__: Any
    ) -> bool:
        return self._client is not None and redirects.matches(
            self._client.redirect_uris, redirect_uri
        )

    def validate_response_type(
        self, client_id: str, response_type: str, client: Any, request: Request, *_: Any, **__: Any
    ) -> bool:
        return response_type == "code"

    def check_request(self, request: Request) -> dict[str, Any]:
        """Check what oauthlib does not: the state's length, the challenge's form, the resource."""
        if request.state is not None and len(request.state) > MAX_STATE:
            request.state = None  # not sent back either
            raise _refused(
                request, "invalid_request", f"state is longer than {MAX_STATE} characters."
            )
        _check_once(request, ("code_challenge", "code_challenge_method"))
        if request.code_challenge is not None and not _CHALLENGE.fullmatch(request.code_challenge):
            raise _refused(
                request, "invalid_request", "code_challenge is not a SHA-256 in base64url."
            )
        self.slug = self._slug_of(request)
        return {}

    def get_default_scopes(
        self, client_id: str, request: Request, *_: Any, **__: Any
    ) -> Sequence[str]:
        return SCOPES

    def validate_scopes(
        self,
        client_id: str,
        scopes: Sequence[str],
        client: Any,
        request: Request,
        *_: Any,
        **__: Any,
    ) -> bool:
        """Allow scopes of MCP; those that clients of OpenID Connect add have no meaning here."""
        named = [scope for scope in scopes if scope not in _IGNORED_SCOPES]
        request.scopes = named or list(SCOPES)
        return all(is_scope(scope) and audience_of(scope) is Audience.MCP for scope in named)

    def is_pkce_required(self, client_id: str, request: Request) -> bool:
        return True

    # Token requests

    def client_authentication_required(self, request: Request, *_: Any, **__: Any) -> bool:
        return False

    def authenticate_client_id(
        self, client_id: str | None, request: Request, *_: Any, **__: Any
    ) -> bool:
        self._client = clients.find(client_id) if client_id else None
        request.client = self._client
        return self._client is not None

    def validate_grant_type(
        self, client_id: str, grant_type: str, client: Any, request: Request, *_: Any, **__: Any
    ) -> bool:
        return True  # every client may use both

    def check_single(self, request: Request) -> None:
        _check_once(request, ("code", "code_verifier", "refresh_token", "scope"))

    def validate_code(
        self, client_id: str, code: str, client: Any, request: Request, *_: Any, **__: Any
    ) -> bool:
        """Find the code of this client. One that was redeemed before ends its connection, if it comes
        with the right verifier: a party that has only seen the code can end nothing."""
        owner = AuthorizationCode.objects.filter(pk=digest(code), client_id=client_id)
        membership_id = owner.values_list("membership_id", flat=True).first()
        self._membership = None if membership_id is None else live_membership(membership_id)
        codes = owner.select_related("client", "connection__membership", "connection__client")
        row = codes.annotate(now=Now()).first()
        if row is None or self._membership is None:
            return False
        if row.connection is not None:
            if _fits(request.code_verifier, row.code_challenge):
                end_now(row.connection, "a code was redeemed twice", AUTHORIZATION_SERVER)
            return False
        if row.expires_at <= row.now:
            return False
        self._check_resource(request, self._membership)
        self._code, self._now = row, row.now
        request.scopes = list(takeable(self._membership, row.scopes))
        request.user = self._membership.user
        return bool(request.scopes)

    def get_code_challenge(self, code: str, request: Request) -> str:
        assert self._code is not None
        return self._code.code_challenge

    def get_code_challenge_method(self, code: str, request: Request) -> str:
        return "S256"

    def confirm_redirect_uri(
        self,
        client_id: str,
        code: str,
        redirect_uri: str,
        client: Any,
        request: Request,
        *_: Any,
        **__: Any,
    ) -> bool:
        return self._code is not None and redirect_uri == self._code.redirect_uri

    def validate_refresh_token(
        self, refresh_token: str, client: Any, request: Request, *_: Any, **__: Any
    ) -> bool:
        """Find the refresh token of this client. Used within the window, it yields the same answer
        again (`_RepeatedError`); used later, it ends the connection."""
        query = RefreshToken.objects.filter(
            pk=digest(refresh_token),
            connection__client=client,
            connection__ended_at=None,
            expires_at__gt=Now(),
        )
        membership_id = query.values_list("connection__membership_id", flat=True).first()
        membership = None if membership_id is None else live_membership(membership_id)
        row = query.select_related("connection__client").annotate(now=Now()).first()
        if row is None or membership is None:
            return False
        self._check_resource(request, membership)
        row.connection.membership = membership
        if row.used_at is not None:
            if row.now - row.used_at > REPEAT_WINDOW:
                end_now(row.connection, "a refresh token was used twice", AUTHORIZATION_SERVER)
                return False
            raise _RepeatedError(_unsealed(row, refresh_token, row.now))
        if not count_event(f"refreshes of {row.connection_id}", MAX_REFRESHES, _REFRESH_WINDOW):
            raise CustomOAuth2Error(
                error="temporarily_unavailable",
                description="This connection is refreshed too often. Try again later.",
                status_code=429,
            )
        self._membership, self._refresh_token, self._connection = membership, row, row.connection
        self._now = row.now
        request.user = membership.user
        return bool(self._scopes())

    def get_original_scopes(
        self, refresh_token: str, request: Request, *_: Any, **__: Any
    ) -> list[str]:
        return self._scopes()

    def is_within_original_scope(
        self,
        request_scopes: Sequence[str],
        refresh_token: str,
        request: Request,
        *_: Any,
        **__: Any,
    ) -> bool:
        """Let a client name any scopes: the answer says which it has. To get more, it has to ask
        the person (RFC 6749 section 6)."""
        return True

    def keep_scopes(self, request: Request) -> None:
        request.scopes = self._scopes()

    def rotate_refresh_token(self, request: Request) -> bool:
        return True

    def save_bearer_token(
        self, token: dict[str, Any], request: Request, *_: Any, **__: Any
    ) -> None:
        """Store the digests of a new pair, and that the code or the refresh token is used."""
        membership, now = self._membership, self._now
        assert membership is not None
        assert now is not None
        if self._code is not None:
            connection = self._code.connection = connect(membership, self._code)
            self._code.save(update_fields=["connection"])
        else:
            assert self._connection is not None
            connection = self._connection
        expired = Token.objects.filter(connection=connection, expires_at__lte=now)
        expired.delete()
        _store_access_token(token["access_token"], connection, membership, now)
        RefreshToken.objects.create(
            id=digest(token["refresh_token"]),
            connection=connection,
            expires_at=now + REFRESH_LIFETIME,
        )
        if self._refresh_token is not None:
            self._refresh_token.used_at = now
            self._refresh_token.answer = _sealed(
                self._refresh_token, request.refresh_token, json.dumps(token).encode()
            )
            self._refresh_token.save(update_fields=["used_at", "answer"])

    def log_code(self, answer: OAuthAnswer) -> None:
        """Write to the connection log what came of a code; nothing of one that was never issued."""
        if self._membership is None or self._client is None or self._refresh_token is not None:
            return
        step, detail = StepKind.REDEEMED, ""
        if answer.status != 200:
            refusal = json.loads(answer.body)
            step, detail = (
                StepKind.CODE_REFUSED,
                refusal.get("error_description") or refusal["error"],
            )
        connection_log.write(
            [connection_log.of_person(self._membership, self._client, step, detail)]
        )

    def invalidate_authorization_code(
        self, client_id: str, code: str, request: Request, *_: Any, **__: Any
    ) -> None:
        """Do nothing: `save_bearer_token` has marked it."""

    # Revocation

    def revoke_token(
        self, token: str, token_type_hint: str | None, request: Request, *_: Any, **__: Any
    ) -> None:
        """End the connection of a refresh token or an access token of this client (RFC 7009)."""
        parsed = tokens.parse(token)
        presented = Q(refresh_tokens__pk=digest(token))
        if parsed is not None:
            presented = Q(tokens__pk=parsed.id, tokens__digest=parsed.digest)
        connections = Connection.objects.filter(presented, client=request.client)
        membership_id = connections.values_list("membership_id", flat=True).first()
        if membership_id is None or live_membership(membership_id) is None:
            return
        connection = connections.select_related("membership", "client").first()
        if connection is not None:
            end_now(connection, "revoked by its client", AUTHORIZATION_SERVER)

    def _scopes(self) -> list[str]:
        assert self._connection is not None
        return list(takeable(self._connection.membership, self._connection.scopes))

    def _slug_of(self, request: Request) -> str | None:
        """Return the tenant's slug of the `resource`; None without one. Raises `invalid_target`."""
        _check_once(request, ("resource",), "invalid_target")
        resource: str | None = request.resource
        if resource is None:
            return None
        origin, _, rest = resource.partition("/t/")
        path = _RESOURCE.fullmatch(f"/t/{rest}")
        if path is None or normal_origin(origin) != self._issuer:
            raise _refused(request, "invalid_target", "resource is not an MCP server of this host.")
        return path[1]

    def _check_resource(self, request: Request, membership: Membership) -> None:
        """Require that the `resource` of a token request, if any, is the tenant of the consent."""
        if self._slug_of(request) not in {None, membership.tenant.slug}:
            raise _refused(
                request, "invalid_target", "resource is another one than the consent was for."
            )


def _store_access_token(
    plaintext: str, connection: Connection, membership: Membership, now: datetime
) -> None:
    parsed = tokens.parse(plaintext)
    assert parsed is not None
    Token.objects.create(
        id=parsed.id,
        digest=parsed.digest,
        tenant_id=membership.tenant_id,
        owner_id=membership.user_id,
        membership=membership,
        connection=connection,
        issued_by=membership.user.get_username(),
        consented=True,
        audience=Audience.MCP.value,
        name=connection.client.name,
        expires_at=now + timedelta(seconds=ACCESS_SECONDS),
    )


def _check_once(request: Request, names: Sequence[str], code: str = "invalid_request") -> None:
    """Raise an error if one of these parameters is there more than once (RFC 6749 section 3.1)."""
    repeated = set(names).intersection(request.duplicate_params)
    if repeated:
        raise _refused(request, code, f"{min(repeated)} is there more than once.")


def _refused(request: Request, code: str, description: str) -> OAuth2Error:
    return CustomOAuth2Error(error=code, description=description, request=request)


def _fits(verifier: str | None, challenge: str) -> bool:
    """Whether a code verifier is well-formed and the right one (RFC 7636 section 4.6)."""
    return (
        verifier is not None
        and _VERIFIER.fullmatch(verifier) is not None
        and code_challenge_method_s256(verifier, challenge)
    )


def _key(refresh_token: str) -> AESGCM:
    info = b"mcphost: answer to a refresh token"
    return AESGCM(HKDF(SHA256(), 32, salt=None, info=info).derive(refresh_token.encode()))


def _sealed(row: RefreshToken, refresh_token: str, answer: bytes) -> bytes:
    nonce = secrets.token_bytes(12)
    return nonce + _key(refresh_token).encrypt(nonce, answer, row.pk.encode())


def _unsealed(row: RefreshToken, refresh_token: str, now: datetime) -> bytes:
    """Return the answer that a used refresh token yielded, with the seconds that are left of it."""
    assert row.answer is not None
    assert row.used_at is not None
    sealed = bytes(row.answer)
    answer = json.loads(_key(refresh_token).decrypt(sealed[:12], sealed[12:], row.pk.encode()))
    answer["expires_in"] = ACCESS_SECONDS - int((now - row.used_at).total_seconds())
    return json.dumps(answer).encode()
