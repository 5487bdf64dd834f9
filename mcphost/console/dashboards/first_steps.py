"""The first steps of a new tenant, from its first tool to the first call of a client.

They are shown until a call has arrived. The last step updates by itself: a script of the page reads
the fragment again every two seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.http import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from mcphost.audit.entries import EntryView
from mcphost.audit.selectors import first_call
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import Can, SignedInRequest, of_tenant
from mcphost.identity.selectors import live_tokens
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.access import is_active_member
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission, roles_with


@dataclass(frozen=True, slots=True)
class FirstStep:
    """One step: `url` is the page that does it.

    It is empty if the user may not do it; then `permission_note` names the roles that may.
    """

    title: str
    about: str
    done: bool
    url: str = ""
    verb: str = ""
    permission_note: str = ""


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """The steps of a tenant; `call` is the first call, once it has arrived."""

    steps: tuple[FirstStep, ...]
    call: EntryView | None

    @property
    def done(self) -> int:
        """How many steps are done."""
        return sum(step.done for step in self.steps)

    @property
    def next(self) -> FirstStep | None:
        """The first step that is not done."""
        return next((step for step in self.steps if not step.done), None)


def first_steps(user: User, tenant: Tenant) -> FirstSteps | None:
    """Return the steps of a tenant that has had no call; None for all others."""
    if tenant.closed_at is not None or first_call(tenant.pk) is not None:
        return None
    return _steps(user, tenant, None)


@of_tenant(Permission.VIEW_TOOLS)
@never_cache
@require_safe
def fragment(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Show the steps alone, without the frame of the page: for the script of the overview."""
    steps = _steps(request.user, tenant, first_call(tenant.pk))
    return TemplateResponse(
        request,
        "console/dashboards/first_steps.html",
        {"steps": steps, "tenant": tenant, "can": Can(request.user, tenant)},
    )


def _steps(user: User, tenant: Tenant, call: EntryView | None) -> FirstSteps:
    return FirstSteps(tuple(_all_steps(Can(user, tenant), tenant, call)), call)


def _all_steps(can: Can, tenant: Tenant, call: EntryView | None) -> Iterator[FirstStep]:
    slug = tenant.slug
    tokens = live_tokens(tenant.pk, timezone.now())
    yield _tool(can, tenant, arrived=call is not None)
    connect = reverse("admin:connect", args=[slug])
    yield FirstStep(
        "Make a token",
        "This tenant is public: clients also connect without one."
        if tenant.public
        else "One token for each client, so that each can be revoked on its own.",
        done=tenant.public or tokens.live > 0 or call is not None,
        **_where_tokens_are_made(can, tenant),
    )
    yield FirstStep(
        "Connect a client",
        "Paste one of the set-ups into Claude Code, an editor, the Inspector or a program.",
        done=call is not None or tokens.used > 0,
        url=connect,
        verb="Set up a client",
    )
    yield FirstStep(
        "See the first call arrive",
        "Call a tool from the client. It shows up here by itself.",
        done=call is not None,
    )


def _tool(can: Can, tenant: Tenant, *, arrived: bool) -> FirstStep:
    served = bool(catalogue.offering(tenant.pk).tools)
    unpublished = not served and bool(catalogue.target_names(tenant.pk, PrimitiveType.TOOL))
    title = "Publish a tool" if unpublished else "Add a tool"
    about = "An HTTP request, a script or a Python function that clients can call."
    if not can[Permission.EDIT_TOOLS]:
        names = " or ".join(
            sorted(f"an {role.value}" for role in roles_with(Permission.EDIT_TOOLS))
        )
        note = f"{names[:1].upper()}{names[1:]} of this tenant can do this."
        return FirstStep(title, about, served or arrived, permission_note=note)
    url = reverse(f"admin:{'tools' if unpublished else 'tool_add'}", args=[tenant.slug])
    return FirstStep(title, about, served or arrived, url, title if unpublished else "New tool")


def _where_tokens_are_made(can: Can, tenant: Tenant) -> dict[str, str]:
    """Members make their own tokens on the page Connect; staff make those of service accounts."""
    if is_active_member(can.user.pk, tenant.pk):
        return {"url": reverse("admin:connect", args=[tenant.slug]), "verb": "New token"}
    if can[Permission.MANAGE_TOKENS]:
        return {"url": reverse("admin:token_add", args=[tenant.slug]), "verb": "New token"}
    return {"permission_note": "Any member of this tenant can do this."}
