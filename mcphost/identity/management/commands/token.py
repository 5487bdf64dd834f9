"""`manage.py token issue|renew|revoke|list`: bearer tokens from the command line."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.identity import selectors, services, staff_tokens
from mcphost.identity.models import ServiceAccount, StaffToken, Token
from mcphost.tenants.errors import InvalidError, UnknownTenantError
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, READ_API, WRITE_API, Audience

_ACTOR = Actor.system("manage.py token")
_DEFAULT_SCOPES = {
    Audience.MCP: (LIST_TOOLS, CALL_TOOLS),
    Audience.API: (READ_API, WRITE_API),
}
_COLUMNS = ("ID", "TENANT", "OWNER", "ISSUED BY", "NAME", "STATE", "EXPIRES", "LAST USED", "SCOPES")


class Command(BaseCommand):
    """Issue, renew, revoke and list bearer tokens. The change log notifies running processes."""

    help = "Issue, renew, revoke or list bearer tokens."
    requires_system_checks = ["mcphost"]  # Django's own load all pages of the console

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="issue|renew|revoke|list")
        issue = verbs.add_parser("issue", help="issue a token and print it once")
        reach = issue.add_mutually_exclusive_group(required=True)
        reach.add_argument("--tenant", metavar="SLUG")
        reach.add_argument(
            "--staff",
            action="store_true",
            help="a token of platform staff for the API of all tenants; the owner must be staff",
        )
        owner = issue.add_mutually_exclusive_group(required=True)
        owner.add_argument(
            "--owner", metavar="USERNAME", help="a member; the token is labelled “without consent”"
        )
        owner.add_argument("--service-account", metavar="NAME", help="a service account")
        issue.add_argument("--name", required=True, help="what it is for")
        issue.add_argument("--audience", choices=[str(a) for a in Audience], default="mcp")
        issue.add_argument(
            "--scope",
            action="append",
            dest="scopes",
            help="may be given more than once (default: mcp:list and mcp:call, or api:read and api:write)",
        )
        issue.add_argument("--days", type=int, help="days until it expires (default: never)")
        renew = verbs.add_parser("renew", help="issue the token that takes another one's place")
        renew.add_argument("id", help="the token's id, the part after mcph_")
        renew.add_argument("--days", type=int, help="days until it expires (default: never)")
        revoke = verbs.add_parser("revoke", help="revoke a token permanently")
        revoke.add_argument("id", help="the token's id, the part after mcph_")
        revoke.add_argument(
            "--stolen",
            action="store_true",
            help="and all tokens that it renewed or that renewed it",
        )
        listing = verbs.add_parser("list", help="list tokens, without their secrets")
        listing.add_argument("--tenant", metavar="SLUG", help="only this tenant's")

    def handle(self, *args: Any, **options: Any) -> None:
        verbs: dict[str, Callable[[dict[str, Any]], None]] = {
            "issue": self._issue,
            "renew": self._renew,
            "revoke": self._revoke,
            "list": self._list,
        }
        verbs[options["verb"]](options)

    def _issue(self, options: dict[str, Any]) -> None:
        if options["staff"]:
            self._issue_to_staff(options)
            return
        audience = Audience(options["audience"])
        token_request = services.TokenRequest(
            name=options["name"],
            scopes=options["scopes"] or _DEFAULT_SCOPES[audience],
            audience=audience,
            expires_at=_expiry(options["days"]),
        )
        tenant, owner = _tenant(options["tenant"]), options["owner"]
        try:
            if owner:
                issued = services.issue(tenant, _owner(owner), token_request, actor=_ACTOR)
            else:
                account = _service_account(tenant, options["service_account"])
                issued = services.issue_for_service(tenant, account.pk, token_request, actor=_ACTOR)
                owner = account
        except (InvalidError, UnknownTenantError) as error:
            raise CommandError(str(error)) from None
        self._show(issued, f"of {owner} for {audience.value} of {options['tenant']}")

    def _issue_to_staff(self, options: dict[str, Any]) -> None:
        token_request = services.TokenRequest(
            name=options["name"],
            scopes=options["scopes"] or _DEFAULT_SCOPES[Audience.API],
            audience=Audience.API,
            expires_at=_expiry(options["days"]),
        )
        owner = options["owner"]
        if owner is None:
            raise CommandError("Name the owner of a staff token: --owner USERNAME.")
        try:
            issued = staff_tokens.issue_staff_token(_owner(owner), token_request, actor=_ACTOR)
        except InvalidError as error:
            raise CommandError(str(error)) from None
        self._show(issued, f"of {owner} for the API of the platform")

    def _show(
        self, issued: services.IssuedToken | staff_tokens.IssuedStaffToken, description: str
    ) -> None:
        until = "never expires"
        if issued.expires_at is not None:
            until = f"expires {issued.expires_at:%Y-%m-%d %H:%M} UTC"
        self.stderr.write(
            f"Token {issued.id} {description}: {' '.join(issued.scopes)}; {until}. It is shown only once:"
        )
        self.stdout.write(issued.plaintext)

    def _renew(self, options: dict[str, Any]) -> None:
        token, until = _token(options["id"]), _expiry(options["days"])
        try:
            issued = services.renew(token.tenant_id, token.pk, actor=_ACTOR, expires_at=until)
        except (InvalidError, UnknownTenantError) as error:
            raise CommandError(str(error)) from None
        self._show(issued, f"renews {token.pk}")

    def _revoke(self, options: dict[str, Any]) -> None:
        token_id = options["id"]
        if StaffToken.objects.filter(pk=token_id).exists():
            revoked = staff_tokens.revoke_staff_token(token_id, actor=_ACTOR)
        else:
            tenant, stolen = _token(token_id).tenant_id, options["stolen"]
            revoked = services.revoke(tenant, token_id, actor=_ACTOR, stolen=stolen)
        done = "is revoked" if revoked else "was already revoked"
        self.stdout.write(f"Token {token_id} {done}.")

    def _list(self, options: dict[str, Any]) -> None:
        slug = options["tenant"]
        tokens = selectors.tokens(_tenant(slug)) if slug else selectors.all_tokens()
        now = timezone.now()
        of_staff = [] if slug else [_staff_row(row, now) for row in staff_tokens.staff_tokens()]
        if not tokens and not of_staff:
            self.stdout.write("No tokens.")
            return
        rows: list[tuple[str, ...]] = [_COLUMNS]
        for token in tokens:
            manner = " (without consent)" if token.without_consent else ""
            shown = (
                token.id,
                token.slug,
                token.owner,
                f"{token.issued_by}{manner}",
                token.name,
                token.state(now),
                _time(token.expires_at),
                _time(token.last_used_at),
                " ".join(token.scopes),
            )
            rows.append(shown)
        rows += of_staff
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            self.stdout.write("  ".join(cells).rstrip())


def _staff_row(row: StaffToken, now: datetime) -> tuple[str, ...]:
    return (
        row.id,
        "(platform)",
        row.owner.get_username(),
        row.issued_by,
        row.name,
        staff_tokens.state_of(row, now),
        _time(row.expires_at),
        _time(row.last_used_at),
        " ".join(row.scopes),
    )


def _tenant(slug: str) -> UUID:
    tenant = Tenant.objects.filter(slug=slug).first()
    if tenant is None:
        raise CommandError(f"There is no tenant {slug!r}.")
    return tenant.id


def _token(token_id: str) -> Token:
    token = Token.objects.filter(pk=token_id, connection=None).first()
    if token is None:
        raise CommandError(f"There is no token {token_id!r}.")
    return token


def _expiry(days: int | None) -> datetime | None:
    try:
        return None if days is None else timezone.now() + timedelta(days=days)
    except OverflowError:
        raise CommandError("--days is too large.") from None


def _owner(username: str) -> User:
    try:
        return User.objects.get_by_natural_key(username)
    except User.DoesNotExist:
        raise CommandError(f"There is no user {username!r}.") from None


def _service_account(tenant: UUID, name: str) -> ServiceAccount:
    account = ServiceAccount.objects.filter(tenant_id=tenant, name=name, removed_at=None).first()
    if account is None:
        raise CommandError(f"There is no service account {name!r}.")
    return account


def _time(at: datetime | None) -> str:
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M}"
