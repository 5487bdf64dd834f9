"""Pages for the secrets of a tenant: the list, and forms that take a value but never show one."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_safe

from mcphost.catalogue.selectors import SecretUse, secret_uses
from mcphost.console.base import (
    SignedInRequest,
    actor,
    blocked_by,
    form_input,
    of_tenant,
    page_of,
    show,
)
from mcphost.console.forms import forms
from mcphost.console.primitive_words import WORDS
from mcphost.console.return_links import named_list_url
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.vault.secrets import services
from mcphost.vault.secrets.fields import PLACES, VALUE_LEAST, VALUE_LIMIT
from mcphost.vault.secrets.selectors import SecretRow, tenant_secret, tenant_secrets

_PLACES = {
    "header": "header",
    "query": "query string",
    "body": "body",
}
_NAME_HINT = (
    "How tools refer to it, such as weather_key: lower-case letters, digits and underscores. The name "
    "cannot be changed later."
)
_VALUE_HINT = f"{VALUE_LEAST} to {VALUE_LIMIT:,} characters; stored encrypted, never shown again."
_HOSTS_HINT = (
    "The only hosts that it is sent to, one per line: exact names such as api.example.com, with a "
    "port if that is not 443."
)


_WIDER_HINT = (
    "Leave empty to keep the stored value. Required, even if it is the same, when you add a host or a part of the "
    f"request: only someone who knows the secret may have it sent elsewhere. {_VALUE_HINT}"
)


def _value(label: str, hint: str = _VALUE_HINT) -> Any:
    return forms.password(label, hint, autocomplete="off")


class RulesForm(forms.ConsoleForm):
    """Where a secret may be sent."""

    hosts = forms.lines("Hosts", _HOSTS_HINT, rows=3, spellcheck="false")
    places = forms.checkboxes("Where it may be sent", "The parts of a request that may contain it.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["places"].choices = [  # type: ignore[attr-defined]
            (location, _PLACES[location]) for location in PLACES
        ]

    def rules(self) -> dict[str, list[str]]:
        """Return the rules, as the services take them."""
        submitted = self.cleaned_data
        return {"hosts": submitted["hosts"].split(), "places": submitted["places"]}


class SecretForm(RulesForm):
    """A new secret."""

    name = forms.text("Name", _NAME_HINT, autofocus=True, spellcheck="false")
    value = _value("Value")
    field_order = ("name", "value")


class EditForm(RulesForm):
    """Other hosts and parts of requests; with the value, if any was added."""

    value = _value("New value", _WIDER_HINT)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["value"].required = False


class RotateForm(forms.ConsoleForm):
    """A new value."""

    value = _value("New value")


class DeleteForm(forms.ConsoleForm):
    """The confirmation of a deletion, by typing the secret's name."""

    name = forms.text("Name", required=True, spellcheck="false", autocomplete="off")

    def __init__(self, secret: SecretRow, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._name = secret.name
        self.fields["name"].label = f"Type `{secret.name}` to confirm"

    def clean_name(self) -> str:
        if self.cleaned_data["name"] != self._name:
            raise ValidationError("This is not the secret's name.")
        return self._name


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the secrets: names, rules, times, and what uses them."""
    uses = secret_uses(tenant.pk)
    rows = tenant_secrets(tenant.pk)
    names = {row.name for row in rows}
    return show(
        request,
        "tenants/secrets.html",
        "Secrets",
        secrets=[(row, _linked(tenant, uses.get(row.name, ()))) for row in rows],
        missing=[(name, _linked(tenant, uses[name])) for name in sorted(uses.keys() - names)],
    )


@of_tenant(Permission.MANAGE_SECRETS)
@sensitive_post_parameters("value")
@sensitive_variables()
def add(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Store a secret. No page shows the value again, not even with an error."""
    starting: dict[str, Any] = {
        name: request.GET.get(name, "")[:2000] for name in ("name", "hosts")
    }
    starting["places"] = [PLACES[0]]
    form = SecretForm(*form_input(request), initial=starting)
    if request.method == "POST" and form.is_valid():
        name, value = form.cleaned_data["name"], form.cleaned_data["value"]
        made = form.attempt(
            lambda: services.create_secret(
                tenant.pk, name, value, **form.rules(), actor=actor(request)
            )
        )
        if made is not None:
            messages.success(request, f"Secret {name} is stored.")
            return _back(request, tenant, name)
    return _form(request, tenant, form, "New secret", verb="Create secret")


@of_tenant(Permission.MANAGE_SECRETS)
@sensitive_post_parameters("value")
@sensitive_variables()
def rotate(request: SignedInRequest, tenant: Tenant, secret_id: UUID) -> HttpResponseBase:
    """Replace a secret's value."""
    secret = _secret(tenant, secret_id)
    form = RotateForm(*form_input(request))
    form.fields["value"].help_text += _from_now_on(tenant, secret)
    if request.method == "POST" and form.is_valid():
        value = form.cleaned_data["value"]
        if form.attempt(
            lambda: services.rotate_secret(tenant.pk, secret_id, value, actor=actor(request))
        ):
            messages.success(request, f"Secret {secret.name} has a new value.")
            return _back(request, tenant, secret.name)
    return _form(request, tenant, form, f"Rotate {secret.name}", verb="Rotate secret")


@of_tenant(Permission.MANAGE_SECRETS)
@sensitive_post_parameters("value")
@sensitive_variables()
def edit(request: SignedInRequest, tenant: Tenant, secret_id: UUID) -> HttpResponseBase:
    """Change where a secret may be sent; the value is asked for if that is more than before."""
    secret = _secret(tenant, secret_id)
    initial = {"hosts": "\n".join(secret.rules.hosts), "places": secret.rules.places}
    form = EditForm(*form_input(request), initial=initial)
    if request.method == "POST" and form.is_valid():
        rules, value = form.rules(), form.cleaned_data["value"] or None
        changer = actor(request)
        if form.attempt(
            lambda: services.change_secret(
                tenant.pk, secret_id, **rules, actor=changer, value=value
            )
        ):
            replaced = "" if value is None else " The value was replaced by the one that you typed."
            messages.success(request, f"Saved.{replaced}")
            return _back(request, tenant, secret.name)
    return _form(request, tenant, form, f"Edit {secret.name}", verb="Save")


@of_tenant(Permission.MANAGE_SECRETS)
def delete(request: SignedInRequest, tenant: Tenant, secret_id: UUID) -> HttpResponseBase:
    """Delete a secret for good, confirmed by its name."""
    secret = _secret(tenant, secret_id)
    form = DeleteForm(secret, *form_input(request))
    confirmed = request.method == "POST" and form.is_valid()
    deleter = actor(request)
    if confirmed and form.attempt(
        lambda: services.delete_secret(tenant.pk, secret_id, actor=deleter)
    ):
        messages.success(request, f"Secret {secret.name} is deleted.")
        return redirect("admin:secrets", tenant.slug)
    uses = secret_uses(tenant.pk).get(secret.name, ())
    drafts = [f"`{use.name}`" for use in uses if not use.published]
    blockers = [
        (f"the {WORDS[use.primitive_type].singular} {use.name}", url)
        for use, url in _linked(tenant, uses)
        if use.published
    ]
    title = f"Delete the secret “{secret.name}”"
    return show(
        request,
        "confirm.html",
        title if not blockers else f"The secret “{secret.name}” cannot be deleted yet",
        page_of(tenant, "secrets", "Secrets"),
        form=form,
        verb=title,
        back=reverse("admin:secrets", args=[tenant.slug]),
        **blocked_by(
            blockers,
            "It is still in use. First disable {}, or give it another secret.",
            "It is still in use. First disable these, or give them another secret:",
        ),
        stay="Back to secrets" if blockers else "",
        final=True,
        points=()
        if blockers
        else (
            "Its value cannot be restored. It will stay masked in responses for one more day, and then be erased.",
            _named_by(drafts),
        ),
    )


def _form(
    request: SignedInRequest, tenant: Tenant, form: forms.ConsoleForm, title: str, *, verb: str
) -> HttpResponseBase:
    return show(
        request,
        "tenants/secret_form.html",
        title,
        page_of(tenant, "secrets", "Secrets"),
        form=form,
        verb=verb,
        back=reverse("admin:secrets", args=[tenant.slug]),
    )


def _back(request: SignedInRequest, tenant: Tenant, name: str) -> HttpResponseBase:
    return redirect(named_list_url(request, "admin:secrets", tenant.slug, row=f"secret-{name}"))


def _from_now_on(tenant: Tenant, secret: SecretRow) -> str:
    """Say what uses a secret, and for how long its old value matters."""
    names = ", ".join(f"`{use.name}`" for use in secret_uses(tenant.pk).get(secret.name, ()))
    used = f" Used by {names}." if names else " Nothing uses it yet."
    return f"{used} The old value stays masked in responses for one more day."


def _named_by(drafts: Sequence[str]) -> str:
    if not drafts:
        return "Nothing uses it."
    unpublished = "names it, but is" if len(drafts) == 1 else "name it, but are"
    return f"{', '.join(drafts)} still {unpublished} not published."


def _secret(tenant: Tenant, secret_id: UUID) -> SecretRow:
    secret = tenant_secret(tenant.pk, secret_id)
    if secret is None:
        raise Http404
    return secret


def _linked(tenant: Tenant, uses: Sequence[SecretUse]) -> list[tuple[SecretUse, str]]:
    """Return each use with the URL of its page."""
    return [
        (use, reverse(WORDS[use.primitive_type].detail, args=[tenant.slug, use.id])) for use in uses
    ]
