"""Tokens of a tenant. Their text is in the response to their creation, and nowhere else."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, Self
from uuid import UUID

from django.http import HttpResponse
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.paging import Key
from mcphost.api.problems import not_found
from mcphost.api.representations import Fields, ListPage, PagedQuery, Representation, Time
from mcphost.identity import selectors, services
from mcphost.identity.selectors import TokenListing
from mcphost.identity.services import IssuedToken, TokenRequest
from mcphost.tenants.roles import Audience, Permission

SHOWN_ONCE: Final = frozenset({"token"})


class TokenRenewalFields(Fields):
    """Until when the successor of a token works; null: without an end."""

    expires_at: Time | None = None


class TokenFields(TokenRenewalFields):
    """A token to issue: for the caller, or for a service account."""

    name: str
    audience: Literal["mcp", "api"] = "mcp"
    scopes: list[str] = Field(min_length=1, description="Sorted.")
    calls_per_minute: int | None = None
    concurrent_calls: int | None = None
    service_account_id: UUID | None = Field(
        None, strict=False, description="Its owner; null: the caller."
    )


class TokenRevocationFields(Fields):
    """Whether all tokens of the line are revoked: those that it renewed, and those that renewed it."""

    stolen: bool = False


class TokenRepresentation(Representation):
    """A token without its text. `owner` names a user or a service account, `successors` counts the tokens
    that were issued later in its line: with each renewal it has another ETag."""

    id: str
    name: str
    owner: str
    issued_by: str
    without_consent: bool
    audience: str
    scopes: Sequence[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    successors: int

    @classmethod
    def of(cls, row: TokenListing, successors: int) -> Self:
        names = [name for name in TokenRepresentation.model_fields if name != "successors"]
        return cls(**{name: getattr(row, name) for name in names}, successors=successors)


class IssuedTokenRepresentation(TokenRepresentation):
    """A token that was just issued. `token` is its text; null where the response is repeated."""

    token: str | None = Field(repr=False)

    def etag(self) -> str:
        return TokenRepresentation(**self.model_dump(exclude=set(SHOWN_ONCE))).etag()


class TokenUseRepresentation(Representation):
    """When a token was last used, at most a minute old, and whether it works."""

    last_used_at: datetime | None
    state: Literal["live", "revoked", "expired", "disabled", "orphaned"]


class TokenQuery(PagedQuery):
    """The parameters of a list of tokens."""


class TokenListPage(ListPage[TokenRepresentation]):
    """The tokens of a tenant, the newest first, including those that no longer work."""


def _row(call: ApiCall, token_id: str) -> TokenListing:
    row = selectors.token(call.tenant.pk, token_id)
    if row is None:
        raise not_found()
    return row


def _read(call: ApiCall, token_id: str) -> TokenRepresentation:
    successors = selectors.successor_counts(call.tenant.pk, [token_id])
    return TokenRepresentation.of(_row(call, token_id), successors.get(token_id, 0))


class TokenCollection(Endpoint):
    """`/tenants/{slug}/tokens`."""

    @operation(
        ApiOperation("List tokens", Permission.MANAGE_TOKENS, TokenListPage, query=TokenQuery)
    )
    def get(self, call: ApiCall, query: TokenQuery) -> HttpResponse:
        after = call.after()
        last = "" if after is None else str(after[0])
        page = selectors.token_page(call.tenant.pk, after=last, limit=call.limit + 1)
        successors = selectors.successor_counts(call.tenant.pk, [row.id for row in page.tokens])
        items = [TokenRepresentation.of(row, successors.get(row.id, 0)) for row in page.tokens]
        return call.show_page(TokenListPage, items, _key)

    @operation(
        ApiOperation(
            "Issue a token",
            Permission.MANAGE_TOKENS,
            IssuedTokenRepresentation,
            body=TokenFields,
            creates=True,
            shown_once=SHOWN_ONCE,
            example={"name": "laptop", "scopes": ["mcp:call", "mcp:list"], "expires_at": None},
        )
    )
    def post(self, call: ApiCall, body: TokenFields) -> HttpResponse:
        request = TokenRequest(
            name=body.name,
            scopes=body.scopes,
            audience=Audience(body.audience),
            expires_at=body.expires_at,
            calls_per_minute=body.calls_per_minute,
            concurrent_calls=body.concurrent_calls,
        )

        def issue() -> IssuedToken:
            tenant, account = call.tenant.pk, body.service_account_id
            if account is None:
                return services.issue(tenant, call.credential.user, request, actor=call.actor)
            return services.issue_for_service(tenant, account, request, actor=call.actor)

        return call.create(lambda: _issued(call, issue()), lambda token: token.id)


class TokenObject(Endpoint):
    """`/tenants/{slug}/tokens/{token_id}`."""

    @operation(ApiOperation("Read a token", Permission.MANAGE_TOKENS, TokenRepresentation))
    def get(self, call: ApiCall, token_id: str) -> HttpResponse:
        return call.show(_read(call, token_id))


class TokenUse(Endpoint):
    """`/tenants/{slug}/tokens/{token_id}/use`: apart, because it changes with each use."""

    @operation(
        ApiOperation(
            "Read when a token was last used, and whether it works",
            Permission.MANAGE_TOKENS,
            TokenUseRepresentation,
        )
    )
    def get(self, call: ApiCall, token_id: str) -> HttpResponse:
        row = _row(call, token_id)
        state = row.state(call.now)
        return call.show(TokenUseRepresentation(last_used_at=row.last_used_at, state=state))


class TokenRenewal(Endpoint):
    """`/tenants/{slug}/tokens/{token_id}/renew`."""

    @operation(
        ApiOperation(
            "Issue the successor of a token",
            Permission.MANAGE_TOKENS,
            IssuedTokenRepresentation,
            body=TokenRenewalFields,
            conditional=True,
            shown_once=SHOWN_ONCE,
            example={"expires_at": "2099-01-01T00:00:00Z"},
        )
    )
    def post(self, call: ApiCall, body: TokenRenewalFields, token_id: str) -> HttpResponse:
        return call.change(
            lambda: _read(call, token_id),
            lambda: _issued(
                call,
                services.renew(
                    call.tenant.pk, token_id, actor=call.actor, expires_at=body.expires_at
                ),
            ),
        )


class TokenRevocation(Endpoint):
    """`/tenants/{slug}/tokens/{token_id}/revoke`."""

    @operation(
        ApiOperation(
            "Revoke a token for good",
            Permission.MANAGE_TOKENS,
            TokenRepresentation,
            body=TokenRevocationFields,
            conditional=True,
            example={"stolen": False},
        )
    )
    def post(self, call: ApiCall, body: TokenRevocationFields, token_id: str) -> HttpResponse:
        def revoke() -> TokenRepresentation:
            services.revoke(call.tenant.pk, token_id, actor=call.actor, stolen=body.stolen)
            return _read(call, token_id)

        return call.change(lambda: _read(call, token_id), revoke)


def _issued(call: ApiCall, issued: IssuedToken) -> IssuedTokenRepresentation:
    shown = _read(call, issued.id)
    return IssuedTokenRepresentation(**shown.model_dump(), token=issued.plaintext)


def _key(item: TokenRepresentation) -> Key:
    return [item.id]
