"""Pages for tenants: the list, creation, overview, settings, and closing for good."""

import base64
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Q, Value
from django.db.models.functions import Concat, Lower
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import call_list
from mcphost.audit.selectors import EntryFilter
from mcphost.console import key_effects
from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    actor,
    form_input,
    mcp_url,
    of_platform,
    of_tenant,
    page_of,
    query_text,
    show,
)
from mcphost.console.dashboards.attention import Viewer, hands
from mcphost.console.dashboards.calls_behind import tenant_lists
from mcphost.console.dashboards.first_steps import first_steps
from mcphost.console.dashboards.panels import panel
from mcphost.console.forms import forms
from mcphost.console.forms.edits import Edit
from mcphost.console.paging import page_by_name
from mcphost.console.periods import asked_period
from mcphost.console.purposes import PURPOSES
from mcphost.console.records.filters import (
    named_waiting,
    of_clients,
    still_open,
)
from mcphost.console.tenants.counts import counts
from mcphost.console.tenants.tenant_uses import tenant_uses
from mcphost.identity import live_access
from mcphost.listings.calls import named_calls
from mcphost.listings.input_requests import count_open
from mcphost.tenants import services
from mcphost.tenants.access import allowed, lock_open_tenant, visible_tenants
from mcphost.tenants.fields import ICON_BYTES, TenantFields
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.tenants.selectors import snapshot
from mcphost.vault.listing import has_salt

PER_PAGE = 50
RECENT = 8
_NONE_AFFECTED = (
    "The tenant has no live tokens, connected apps, waiting calls, open sessions or tasks."
)
_NEW = "A new MCP server. These steps lead to the first call of a client."

_SLUG_HINT = (
    "The short name in the address that clients connect to: …/t/`acme`/mcp. Lower-case letters, digits and hyphens. It never "
    "changes and is never reused."
)
_ICON_HINT = (
    f"PNG, JPEG or WebP of at most {ICON_BYTES // 1024} KiB. Clients show it beside the name."
)


class TenantForm(forms.ConsoleForm):
    """The fields that an owner may set."""

    title = forms.text("Title", "The name that users see.")
    instructions = forms.lines(
        "Instructions", "Sent to every client that connects: what this server is for."
    )
    icon_file = forms.file("Icon", _ICON_HINT)
    remove_icon = forms.switch("Remove the icon")
    public = forms.switch(
        "Public",
        "Anyone who knows the address can use everything published here, without signing in.",
    )
    metadata_documents_only = forms.switch(
        "Only known clients may sign in",
        "Members can sign in with clients whose host is known, such as Claude, ChatGPT and VS Code, and "
        "not with clients that register themselves, such as Cursor. Clients that are already connected stay connected.",
    )
    allowed_origins = forms.lines(
        "Allowed origins",
        "Web pages that may connect from a browser, one per line, such as https://app.example. "
        "Other clients need no entry.",
        rows=3,
    )
    outgoing_hosts = forms.lines(
        "Hosts that tools may call",
        "One per line, such as api.example.com, *.example.com or api.example.com:8443. Empty: every "
        "host of the public internet, over https.",
        rows=3,
    )
    calls_per_minute = forms.number(
        "Calls per minute", "calls", "For the whole tenant. Empty: no limit."
    )
    concurrent_calls = forms.number(
        "Concurrent calls", "calls", "For the whole tenant. Empty: no limit."
    )

    @classmethod
    def initial_values(cls, fields: TenantFields) -> dict[str, Any]:
        """Return the form's initial values."""
        return {
            "title": fields.title,
            "instructions": fields.instructions,
            "public": fields.public,
            "metadata_documents_only": fields.metadata_documents_only,
            "allowed_origins": "\n".join(fields.allowed_origins),
            "outgoing_hosts": "\n".join(fields.outgoing_hosts),
            "calls_per_minute": fields.calls_per_minute,
            "concurrent_calls": fields.concurrent_calls,
        }

    def tenant_fields(self, before: TenantFields) -> TenantFields:
        """Return the fields with the submitted values."""
        submitted = self.cleaned_data
        file, icon = submitted["icon_file"], before.icon
        if file is not None:
            # One byte more than allowed, so that the service detects a file that is too large.
            data = base64.b64encode(file.read(ICON_BYTES + 1)).decode()
            icon = f"data:{file.content_type};base64,{data}"
        elif submitted["remove_icon"]:
            icon = ""
        return replace(
            before,
            title=submitted["title"],
            icon=icon,
            instructions=submitted["instructions"].replace("\r\n", "\n"),
            allowed_origins=tuple(submitted["allowed_origins"].split()),
            outgoing_hosts=tuple(submitted["outgoing_hosts"].split()),
            public=submitted["public"],
            metadata_documents_only=submitted["metadata_documents_only"],
            calls_per_minute=submitted["calls_per_minute"],
            concurrent_calls=submitted["concurrent_calls"],
        )

    def ask_for_file_again(self) -> None:
        """Say beside the upload field, if the form is shown again, that browsers keep no chosen file."""
        if self.errors and self.files and "icon_file" not in self.errors:
            self.add_error(
                "icon_file", "Choose the icon again: browsers do not keep a chosen file."
            )

    def show_problems(self, problems: forms.Problems) -> None:
        """Show problems; those of the icon beside the upload field."""
        super().show_problems(
            {"icon_file" if f == "icon" else f: sentences for f, sentences in problems.items()}
        )


class NewTenantForm(TenantForm):
    """The fields of a new tenant: also its slug, which never changes."""

    slug = forms.text("Slug", _SLUG_HINT, spellcheck="false", autocomplete="off")
    title = forms.text("Title", "The name that users see.", autofocus=True)
    field_order = ("title", "slug")


class CloseForm(forms.ConsoleForm):
    """The confirmation of an action that cannot be undone, by typing the tenant's slug."""

    slug = forms.text("Slug", required=True, spellcheck="false", autocomplete="off")

    def __init__(self, tenant: Tenant, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._slug = tenant.slug
        self.fields["slug"].label = f"Type `{tenant.slug}` to confirm"

    def clean_slug(self) -> str:
        if self.cleaned_data["slug"] != self._slug:
            raise ValidationError("This is not the tenant's slug.")
        return self._slug


@require_safe
def listing(request: SignedInRequest) -> HttpResponseBase:
    """List the tenants that the user may see."""
    search_text = query_text(request.GET, "q", 40)
    name = Concat(Lower("title"), Value(" "), "slug")
    tenants = visible_tenants(request.user).annotate(sorted_name=name)
    if search_text:
        tenants = tenants.filter(Q(slug__icontains=search_text) | Q(title__icontains=search_text))
    page = page_by_name(tenants, "sorted_name", request.GET, {"q": search_text}, PER_PAGE)
    numbers = tenant_uses(request.user, page.rows, timezone.now())
    return show(
        request,
        "tenants/tenants.html",
        "All tenants",
        tenants=page.rows,
        older=page.following,
        newer=page.previous,
        search_text=search_text,
        numbers=numbers,
        any_high=any(use is not None and use.is_high for use in numbers.values()),
        may_create=allowed(request.user, None, Permission.MANAGE_TENANT),
    )


@of_platform(Permission.MANAGE_TENANT)
def add(request: SignedInRequest) -> HttpResponseBase:
    """Create a tenant."""
    form = NewTenantForm(*form_input(request))
    if request.method == "POST" and form.is_valid():
        slug, fields = form.cleaned_data["slug"], form.tenant_fields(TenantFields())
        made = form.attempt(lambda: services.create_tenant(slug, fields, actor=actor(request)))
        if made is not None:
            messages.success(request, f"{made.slug} is open. Next, appoint its first owner.")
            return redirect("admin:members", made.slug)
    form.ask_for_file_again()
    return show(
        request,
        "tenants/tenant_form.html",
        "New tenant",
        Crumb("All tenants", reverse("admin:tenants")),
        form=form,
        verb="Create tenant",
        back=reverse("admin:tenants"),
    )


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def overview(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Show one tenant: its numbers and what needs attention; where clients connect, what it offers."""
    own, now = frozenset({tenant.pk}), timezone.now()
    is_staff = allowed(request.user, None, Permission.MANAGE_TENANT)
    may_read = allowed(request.user, tenant, Permission.VIEW_RECORDS)
    waiting = of_clients(still_open(call_list.waiting(own, now))) if may_read else []
    recent = call_list.calls(EntryFilter(own), now, limit=RECENT).calls if may_read else ()
    period_choice, steps = asked_period(request.GET), first_steps(request.user, tenant)
    viewer = Viewer(request.user, own if may_read else frozenset(), tenant)
    return show(
        request,
        "tenants/tenant.html",
        tenant.title,
        *([Crumb("All tenants", reverse("admin:tenants"))] if is_staff else []),
        counts=counts(own)[tenant.pk],
        steps=steps,
        hands=hands(viewer, [tenant], waiting, now) if tenant.closed_at is None else (),
        panel=panel(own, period_choice, now, tenant_lists(tenant.slug))
        if may_read and steps is None
        else None,
        period_choice=period_choice,
        calls=named_calls(recent),
        waiting=named_waiting(waiting[:RECENT]),
        waiting_count=count_open(own, now) if may_read else 0,
        url=mcp_url(request, tenant.slug),
        purpose=PURPOSES["tenant"] if steps is None else _NEW,
    )


@of_tenant(Permission.MANAGE_TENANT)
def settings(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Change the settings of a tenant."""
    before = snapshot(tenant).fields
    form = TenantForm(*form_input(request), initial=TenantForm.initial_values(before))
    editing = Edit(request, form, asdict(before))
    if request.method == "POST" and form.is_valid():
        fields = form.tenant_fields(before)
        saved = editing.save(
            tenant.slug,
            asdict(fields),
            lambda: asdict(snapshot(_locked(request, tenant)).fields),
            lambda: services.update_tenant(tenant.pk, fields, actor=actor(request)),
        )
        if saved is not None:
            messages.success(request, "Saved.")
            return redirect("admin:settings", tenant.slug)
    form.ask_for_file_again()
    return show(
        request,
        "tenants/tenant_form.html",
        "Settings",
        form=form,
        based_on=editing.based_on,
        conflict=editing.conflict,
        verb="Save",
        icon=before.icon,
        has_salt=has_salt(tenant.pk),
    )


def _locked(request: SignedInRequest, tenant: Tenant) -> Tenant:
    return lock_open_tenant(tenant.pk, actor(request), Permission.MANAGE_TENANT)


@of_tenant(Permission.MANAGE_TENANT)
def close(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Close a tenant for good, confirmed by its slug."""
    title = f"Close the tenant “{tenant.title}”"
    form = CloseForm(tenant, *form_input(request))
    if request.method == "POST" and form.is_valid():
        services.close_tenant(tenant.pk, actor=actor(request))
        messages.success(
            request, f"{tenant.slug} is closed. Its calls and audit log can still be read."
        )
        return redirect("admin:tenant", tenant.slug)
    return show(
        request,
        "confirm.html",
        title,
        page_of(tenant, "settings", "Settings"),
        form=form,
        verb=title,
        back=reverse("admin:settings", args=[tenant.slug]),
        final=True,
        points=_closing(tenant, mcp_url(request, tenant.slug), timezone.now()),
    )


def _closing(tenant: Tenant, url: str, now: datetime) -> Sequence[str]:
    """Say what ends with a tenant, and what stays."""
    access = live_access.of_tenant(tenant.pk, now)
    under = key_effects.under_key_of_tenant(tenant.pk, now)
    members = tenant.memberships.count()
    return (
        f"Its MCP address `{url}` will stop answering at once. No new tenant can use this address.",
        *([f"{access} will stop working."] if access else ()),
        *([f"{under} will be cut off from their clients."] if under else ()),
        *(() if access or under else (_NONE_AFFECTED,)),
        (
            f"{'1 member' if members == 1 else f'{members} members'} will keep read access to the tools, calls and "
            "audit log that their role allows."
        ),
        "Platform staff will still be able to read its calls and audit log.",
    )
