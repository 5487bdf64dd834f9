"""The fixed cast: two tenants that must never see one another, and the people around them.

Built with the services, so that it is what the product would have made.
"""

from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.db import transaction

from mcphost.audit.records import Actor
from mcphost.identity.services import TokenRequest, issue
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, READ_API, WRITE_API, Audience, Role
from mcphost.tenants.selectors import TenantSnapshot
from mcphost.tenants.services import create_tenant, set_member

PASSWORD = "the-cast-has-one-password"
ACTOR = Actor.system("the cast")


@dataclass(frozen=True, slots=True)
class Person:
    """A user who can sign in with PASSWORD. A token that they may not have is an empty text."""

    user: User
    mcp_token: str = field(default="", repr=False)
    api_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """`acme` is the tenant under test: owner, operator, auditor and member are its own.

    `stranger` owns `globex` and has no access to `acme`; `staff` is platform staff and a member of
    no tenant; `commons` is public and has no members.
    """

    acme: TenantSnapshot
    globex: TenantSnapshot
    commons: TenantSnapshot
    owner: Person
    operator: Person
    auditor: Person
    member: Person
    staff: Person
    stranger: Person


@transaction.atomic
def build_cast() -> Cast:
    """Create all tenants and people of the cast, in a database that does not have them."""
    acme = create_tenant("acme", TenantFields(title="Acme"), actor=ACTOR)
    globex = create_tenant("globex", TenantFields(title="Globex"), actor=ACTOR)
    commons = create_tenant("commons", TenantFields(title="Commons", public=True), actor=ACTOR)
    return Cast(
        acme=acme,
        globex=globex,
        commons=commons,
        owner=_person("owner", acme, Role.OWNER),
        operator=_person("operator", acme, Role.OPERATOR),
        auditor=_person("auditor", acme, Role.AUDITOR),
        member=_person("member", acme, Role.MEMBER),
        staff=Person(
            User.objects.create_user("staff", password=PASSWORD, is_staff=True, is_superuser=True)
        ),
        stranger=_person("stranger", globex, Role.OWNER),
    )


def _person(name: str, tenant: TenantSnapshot, role: Role) -> Person:
    user = User.objects.create_user(name, password=PASSWORD)
    set_member(tenant.id, user, role, actor=ACTOR)
    itself = Actor.person(user.pk, name)
    mcp = TokenRequest(f"{name}'s client", (LIST_TOOLS, CALL_TOOLS))
    api = TokenRequest(f"{name}'s script", (READ_API, WRITE_API), Audience.API)
    works_with_api = role in (Role.OWNER, Role.OPERATOR)
    return Person(
        user,
        mcp_token=issue(tenant.id, user, mcp, actor=itself).plaintext,
        api_token=issue(tenant.id, user, api, actor=itself).plaintext if works_with_api else "",
    )
