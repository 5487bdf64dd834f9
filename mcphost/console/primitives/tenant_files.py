"""The configuration of a tenant as one file: downloaded, compared with the tenant, and applied.

A file is given once, and kept while its plan is looked at. What is applied is the plan that was shown: if
the tenant has changed since, the new plan is shown instead.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django import forms as django_forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from mcphost.catalogue import documents
from mcphost.catalogue.documents import DocumentOwner, StoredDocument
from mcphost.console.base import SignedInRequest, actor, form_input, of_tenant, page_of, show
from mcphost.console.forms import forms
from mcphost.console.forms.json_texts import CODE
from mcphost.console.forms.uploads import in_words
from mcphost.console.primitives.planned_changes import (
    ShownChange,
    ShownProblems,
    shown_changes,
    shown_problems,
)
from mcphost.sealing.tokens import SealError
from mcphost.serving.execution import trials
from mcphost.serving.user_slots import IMPORTS, Busy
from mcphost.tenant_file.documents import MAX_BYTES
from mcphost.tenant_file.errors import InvalidFileError, MovedError
from mcphost.tenant_file.exports import export
from mcphost.tenant_file.plans import Plan, apply_plan, make_plan
from mcphost.tenants.access import permissions
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.vault.errors import VaultError

APPLY: Final = "_apply"
"""The name of the button that applies the plan."""

_TITLE: Final = "Tenant as a file"
_EXPIRED: Final = "The file is not kept any more. Choose it again."
_MOVED: Final = (
    "Nothing was applied: the tenant has changed since the plan was shown. Below is the new plan."
)
_INVALID: Final = "Nothing can be applied before the file is corrected."
_UNSEALED: Final = "The file cannot be kept: the keys cannot be read."
_BUSY: Final = {
    Busy.USER: "Another file or document of yours is being read. Try again when that has ended.",
    Busy.TENANT: "Another user of this tenant compares a file or imports a document now. Try again in a moment.",
    Busy.ALL: "Users of other tenants compare files or import documents now. Try again in a moment.",
}


class TenantFileForm(forms.ConsoleForm):
    """A file to compare with the tenant. `kept` and `digest` are of the plan that was shown."""

    file = forms.file("File", f"YAML or JSON of at most {in_words(MAX_BYTES)}.")
    content = forms.lines("Or paste it", "Up to 2 MiB. Choose a file for a larger one.", 12, **CODE)
    kept = django_forms.UUIDField(required=False, widget=django_forms.HiddenInput())
    digest = django_forms.CharField(required=False, widget=django_forms.HiddenInput())

    def clean(self) -> dict[str, Any]:
        submitted = super().clean() or self.cleaned_data
        upload = submitted.get("file")
        if submitted.get("kept") or self.errors:
            return submitted
        if upload is not None and upload.size > MAX_BYTES:
            message = f"The file has {in_words(upload.size)}. It may have {in_words(MAX_BYTES)}."
            raise ValidationError({"file": message})
        if upload is None and not submitted.get("content", "").strip():
            raise ValidationError({"file": "Choose a file, or paste its content below."})
        return submitted

    def read(self) -> bytes:
        """Return the file that was uploaded or pasted."""
        upload = self.cleaned_data["file"]
        if upload is not None:
            data: bytes = upload.read()
            return data
        text: str = self.cleaned_data["content"]
        return text.replace("\r\n", "\n").encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Review:
    """A file and its plan, as they are shown. Without a plan the file has `problems`."""

    kept: UUID | None = None
    plan: Plan | None = None
    changes: Sequence[ShownChange] = ()
    problems: ShownProblems | None = None

    @property
    def summary(self) -> str:
        """How many are added, changed and archived."""
        counts = Counter(change.effect for change in self.changes)
        effects = ("added", "changed", "archived")
        return ", ".join(f"{counts[effect]} {effect}" for effect in effects if counts[effect])


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def page(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Offer the tenant's file, and the form that compares another one with the tenant."""
    return _show(request, TenantFileForm(), Review())


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def download(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Send the tenant's file."""
    response = HttpResponse(export(tenant.pk), content_type="application/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{tenant.slug}.yaml"'
    return response


@of_tenant(Permission.EDIT_TOOLS)
def plan(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Compare a file with the tenant, and apply the plan that was shown."""
    if request.method != "POST":
        return redirect("admin:tenant_file", tenant.slug)
    form = TenantFileForm(*form_input(request))
    review = Review()
    with _admitted(request, tenant, form) as admitted:
        if admitted:
            review = _review(request, tenant, form)
            if review.plan and APPLY in request.POST:
                if _apply(request, form, review):
                    return redirect("admin:tenant_file", tenant.slug)
                form.add_error(None, _MOVED)
                review = _review(request, tenant, form)
    return _show(request, form, review)


@contextmanager
def _admitted(request: SignedInRequest, tenant: Tenant, form: TenantFileForm) -> Iterator[bool]:
    """Yield whether the file may be compared now; if not, the form says why."""
    if not form.is_valid():
        yield False
        return
    with IMPORTS.of(request.user.pk, tenant.pk) as busy:
        if busy:
            form.add_error(None, _BUSY[busy])
        yield busy is None


def _review(request: SignedInRequest, tenant: Tenant, form: TenantFileForm) -> Review:
    """Compare the file with the tenant; what is wrong with it is in the form, and in the review."""
    owner, kept = DocumentOwner(tenant.pk, request.user.pk), form.cleaned_data["kept"]
    data = b""
    try:
        stored = None if kept is None else documents.stored_document(owner, kept)
        if kept is not None and stored is None:
            form.add_error(None, _EXPIRED)
            return Review()
        data = form.read() if stored is None else stored.content
        made = make_plan(tenant.pk, data, permissions(request.user, tenant))
        if kept is None and made.changes:
            kept = documents.store_document(owner, StoredDocument(data, ""))
    except InvalidFileError as refusal:
        form.add_error(None, _INVALID)
        return Review(problems=shown_problems(refusal, data))
    except (VaultError, SealError):
        form.add_error(None, _UNSEALED)
        return Review()
    return Review(kept, made, shown_changes(made))


def _apply(request: SignedInRequest, form: TenantFileForm, review: Review) -> bool:
    """Apply the plan if it is the one that was shown; return whether it was."""
    assert review.plan is not None
    digest = form.cleaned_data["digest"]
    try:
        if not digest:
            raise MovedError
        apply_plan(review.plan, actor(request), digest)
    except MovedError:
        return False
    trials.end_all(
        request.tenant.pk, review.plan.changed_tools, trials.FILE_APPLIED, actor(request)
    )
    if review.kept is not None:
        documents.forget(DocumentOwner(request.tenant.pk, request.user.pk), review.kept)
    messages.success(request, f"The file was applied: {review.summary}.")
    return True


def _show(request: SignedInRequest, form: TenantFileForm, review: Review) -> HttpResponseBase:
    crumbs = [page_of(request.tenant, "tenant_file", _TITLE)] if review.plan else []
    return show(
        request,
        "primitives/tenant_file.html",
        "What the file changes" if review.plan else _TITLE,
        *crumbs,
        form=form,
        review=review,
    )
