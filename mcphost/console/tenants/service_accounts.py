"""Pages for the service accounts of a tenant: programs that call it in their own name."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from mcphost.console.base import SignedInRequest, actor, form_input, of_tenant, page_of, show
from mcphost.console.forms import forms
from mcphost.console.return_links import named_list_url
from mcphost.console.templatetags.console import format_sentence
from mcphost.identity import service_accounts as services
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

TITLE = "Service accounts"


class AccountForm(forms.ConsoleForm):
    """A new service account."""

    name = forms.text(
        "Name",
        "Lower-case letters, digits, dot, underscore and hyphen. A name is never reused.",
        maxlength=60,
    )
    description = forms.text("Description", "What the program does.", maxlength=200)


@of_tenant(Permission.MANAGE_TOKENS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List all service accounts."""
    accounts = services.accounts(tenant.pk)
    return show(request, "tenants/service_accounts.html", TITLE, accounts=accounts)


@of_tenant(Permission.MANAGE_TOKENS)
def add(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Create a service account."""
    form = AccountForm(*form_input(request))
    if request.method == "POST" and form.is_valid():
        name, description = form.cleaned_data["name"], form.cleaned_data["description"]
        made = form.attempt(
            lambda: services.create(tenant.pk, name, description, actor=actor(request))
        )
        if made is not None:
            messages.success(
                request, f"Service account {name} was created. Next, issue a token for it."
            )
            return redirect(
                named_list_url(
                    request, "admin:service_accounts", tenant.slug, row=f"account-{made}"
                )
            )
    page = page_of(tenant, "service_accounts", TITLE)
    return show(
        request,
        "forms/form.html",
        "New service account",
        page,
        form=form,
        verb="Create service account",
        back=page.url,
    )


@of_tenant(Permission.MANAGE_TOKENS)
def disable(request: SignedInRequest, tenant: Tenant, account_id: UUID) -> HttpResponseBase:
    """Disable a service account, after confirmation."""
    account = _account(tenant, account_id)
    if request.method == "POST":
        services.disable(tenant.pk, account_id, actor=actor(request))
        messages.success(
            request, f"Service account {account.name} is disabled; its tokens do not work."
        )
        return redirect(_row_url(request, tenant, account_id))
    if account.disabled_at is not None:
        messages.info(request, f"Service account {account.name} is disabled already.")
        return redirect(_row_url(request, tenant, account_id))
    return show(
        request,
        "confirm.html",
        f"Disable the service account “{account.name}”",
        page_of(tenant, "service_accounts", TITLE),
        points=(
            format_sentence(
                "Programs that call {} as `{}` will stop working at once. {}",
                tenant.title,
                account.name,
                _last_use(account),
            ),
            "Its streams and calls in progress will end within seconds. Its tokens will work again once it is enabled.",
        ),
        verb=f"Disable the service account “{account.name}”",
        back=_row_url(request, tenant, account_id),
    )


@of_tenant(Permission.MANAGE_TOKENS)
@require_POST
def enable(request: SignedInRequest, tenant: Tenant, account_id: UUID) -> HttpResponseBase:
    """Enable a service account again."""
    account = _account(tenant, account_id)
    services.enable(tenant.pk, account_id, actor=actor(request))
    messages.success(request, f"Service account {account.name} is enabled.")
    return redirect(_row_url(request, tenant, account_id))


@of_tenant(Permission.MANAGE_TOKENS)
def remove(request: SignedInRequest, tenant: Tenant, account_id: UUID) -> HttpResponseBase:
    """Remove a service account for good, after confirmation."""
    account = _account(tenant, account_id)
    if request.method == "POST":
        services.remove(tenant.pk, account_id, actor=actor(request))
        messages.success(request, f"Service account {account.name} is removed.")
        return redirect("admin:service_accounts", tenant.slug)
    return show(
        request,
        "confirm.html",
        f"Remove the service account “{account.name}”",
        page_of(tenant, "service_accounts", TITLE),
        final=True,
        points=(
            format_sentence(
                "Programs that call {} as `{}` will stop working at once.",
                tenant.title,
                account.name,
            ),
            f"{_tokens(account.live_tokens)} {_last_use(account)}",
            "The name will never be used again; calls and the audit log will keep it.",
        ),
        verb=f"Remove the service account “{account.name}”",
        back=reverse("admin:service_accounts", args=[tenant.slug]),
    )


def _row_url(request: SignedInRequest, tenant: Tenant, account_id: UUID) -> str:
    row = f"account-{account_id}"
    return named_list_url(request, "admin:service_accounts", tenant.slug, row=row)


def _last_use(account: services.AccountListing) -> str:
    used_at = account.last_used_at
    if used_at is None:
        return "It was never used."
    return f"It was last used on {used_at:%Y-%m-%d at %H:%M} UTC."


def _tokens(number: int) -> str:
    """Say what becomes of an account's live tokens."""
    if not number:
        return "It has no live tokens."
    return "Its token will be revoked." if number == 1 else f"Its {number} tokens will be revoked."


def _account(tenant: Tenant, account_id: UUID) -> services.AccountListing:
    account = {account.id: account for account in services.accounts(tenant.pk)}.get(account_id)
    if account is None:
        raise Http404
    return account
