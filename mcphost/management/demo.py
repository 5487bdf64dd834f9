"""The tenants that a new server starts with. Seeding twice changes nothing."""

from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from mcphost import home
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.seeding import publish_functions
from mcphost.identity import services as identity
from mcphost.identity.services import TokenRequest
from mcphost.tenants import services as tenants
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, Role

DEMO = "demo"
CONFORMANCE = "conformance"
AUDITOR = "auditor"

_ACTOR = Actor.system("manage.py init")
_DEMO_FIELDS = TenantFields(
    title="Demo",
    instructions=(
        "Tools, prompts and resources to try a client with. `echo` returns its text, `countdown` "
        "shows progress, `update_work_item` asks how a bug was resolved, `plan_trip` is a prompt, and "
        "`demo://about` tells what else there is."
    ),
)
_CONFORMANCE_FIELDS = TenantFields(
    title="Conformance",
    public=True,
    allowed_origins=("http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"),
)


def seed_demo(data: home.Home) -> None:
    """The tenant `demo` with all that `tools/demo.py` and `tools/demo_asking.py` offer, a token that
    may use every one of it, and a second person who may read what was recorded."""
    tenant = _tenant(DEMO, _DEMO_FIELDS)
    owner = get_user_model().objects.filter(is_superuser=True).order_by("id")[0]
    tenants.set_member(tenant, owner, Role.OWNER, actor=_ACTOR)
    _auditor(tenant, home.read(data.admin_password))
    publish_functions(tenant, _functions("demo.", "demo_asking."), _ACTOR)
    if not home.read(data.demo_token):
        wanted = TokenRequest(name="demo", scopes=(LIST_TOOLS, CALL_TOOLS))
        issued = identity.issue(tenant, owner, wanted, actor=_ACTOR)
        home.write_secret(data.demo_token, issued.plaintext)


def seed_conformance() -> None:
    """The public tenant `conformance` with all that the official conformance suite asks for."""
    tenant = _tenant(CONFORMANCE, _CONFORMANCE_FIELDS)
    publish_functions(tenant, _functions("conformance.", "conformance_asking."), _ACTOR)


def _tenant(slug: str, fields: TenantFields) -> UUID:
    row = Tenant.objects.filter(slug=slug).first()
    return row.id if row else tenants.create_tenant(slug, fields, actor=_ACTOR).id


def _auditor(tenant: UUID, password: str) -> None:
    """Somebody to review records as: an owner may see that something was called, not with what."""
    if User.objects.filter(username=AUDITOR).exists():
        return
    user = User.objects.create_user(AUDITOR, password=password)
    tenants.set_member(tenant, user, Role.AUDITOR, actor=_ACTOR)


def _functions(*prefixes: str) -> tuple[str, ...]:
    return tuple(name for name, _ in kinds.functions() if name.startswith(prefixes))
