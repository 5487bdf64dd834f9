"""The tenants of a new server: demo and conformance. Seeding twice changes nothing."""

import secrets
from pathlib import Path
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import User
from django.utils.crypto import salted_hmac

from mcphost import home
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.seeding import publish_functions
from mcphost.console.users import changes
from mcphost.identity import services as identity
from mcphost.identity.services import TokenRequest
from mcphost.tenants import services as tenants
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, Role

DEMO = "demo"
CONFORMANCE = "conformance"
AUDITOR = "auditor"
MAX_CHECKS = 8
"""How many results of comparing passwords are kept."""

_FITS, _DIFFERS = "fits", "differs"
_ACTOR = Actor.system("manage.py init")
_DEMO_FIELDS = TenantFields(
    title="Demo",
    instructions=(
        "Tools, prompts and resources to try a client with. `echo` returns its text, `countdown` "
        "shows progress, `update_work_item` asks how a bug was resolved, `plan_trip` is a prompt, and "
        "`demo://about` describes everything else."
    ),
)
_CONFORMANCE_FIELDS = TenantFields(
    title="Conformance",
    public=True,
    allowed_origins=("http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"),
)


def demo_is_closed() -> bool:
    """Whether there was a tenant `demo`, which was closed: its slug is never used again."""
    return Tenant.objects.filter(slug=DEMO).exclude(closed_at=None).exists()


def seed_demo(data: home.Home) -> None:
    """Create the tenant `demo` with all that `tools/demo.py` and `tools/demo_asking.py` offer, unless it was closed.

    It also gets a token that may use all of this, and an auditor, who may read what was recorded.
    """
    if demo_is_closed():
        return
    tenant = _tenant(DEMO, _DEMO_FIELDS)
    owner = get_user_model().objects.filter(is_superuser=True).order_by("id")[0]
    tenants.set_member(tenant, owner, Role.OWNER, actor=_ACTOR)
    if not User.objects.filter(username=AUDITOR).exists():
        # An account for reviewing records: owners see calls, but not their payloads.
        user = User.objects.create_user(AUDITOR, password=new_password(data.auditor_password))
        tenants.set_member(tenant, user, Role.AUDITOR, actor=_ACTOR)
    publish_functions(tenant, _functions("demo.", "demo_asking."), _ACTOR)
    if not home.read(data.demo_token):
        token_request = TokenRequest(name="demo", scopes=(LIST_TOOLS, CALL_TOOLS))
        # The administrator runs this command and reads the token.
        issued = identity.issue(tenant, owner, token_request, actor=_ACTOR, consented=True)
        home.write_secret(data.demo_token, issued.plaintext)


def seed_conformance() -> bool:
    """Create the public tenant `conformance` with all that the official conformance suite needs.

    Returns False, with nothing done, if the functions of the suite are not loaded.
    """
    functions = _functions("conformance.", "conformance_asking.", "conformance_tasks.")
    if functions:
        publish_functions(_tenant(CONFORMANCE, _CONFORMANCE_FIELDS), functions, _ACTOR)
    return bool(functions)


def _tenant(slug: str, fields: TenantFields) -> UUID:
    row = Tenant.objects.filter(slug=slug).first()
    return row.id if row else tenants.create_tenant(slug, fields, actor=_ACTOR).id


def separate_auditor_password(data: home.Home) -> bool:
    """Give the demo's auditor a password of its own if it has the administrator's generated one.

    Earlier versions gave both accounts the same password, and the auditor kept it when the
    administrator changed theirs. Returns False if nothing had to be done.
    """
    shared, own = home.read(data.admin_password), home.read(data.auditor_password)
    user = User.objects.filter(username=AUDITOR).first()
    if not shared or user is None:
        return False
    if own and own != shared and fits(data, user.password, own):
        return False
    if not fits(data, user.password, shared):
        return False
    changes.set_password(user, new_password(data.auditor_password), _ACTOR)
    return True


def fits(data: home.Home, encoded: str, password: str) -> bool:
    """Return whether a generated password is the one that is stored as `encoded`.

    Hashing takes a fifth of a second, and every start asks. So the result is kept, under a digest of
    both that cannot be computed without the secret key; another password or hash has another digest.
    """
    if not password:
        return False
    both = salted_hmac("mcphost.management.demo", f"{encoded}\n{password}", algorithm="sha256")
    results = dict(
        line.partition(" ")[::2] for line in home.read(data.password_checks).splitlines()
    )
    result = results.get(both.hexdigest())
    if result is None:
        result = _FITS if check_password(password, encoded) else _DIFFERS
        kept = [*results.items(), (both.hexdigest(), result)][-MAX_CHECKS:]
        data.password_checks.unlink(missing_ok=True)
        home.write_secret(data.password_checks, "\n".join(map(" ".join, kept)))
    return result == _FITS


def new_password(path: Path) -> str:
    """Return a generated password, written to its file before an account gets it."""
    password = secrets.token_urlsafe(12)
    path.unlink(missing_ok=True)
    home.write_secret(path, password)
    return password


def _functions(*prefixes: str) -> tuple[str, ...]:
    return tuple(name for name, _ in kinds.functions() if name.startswith(prefixes))
