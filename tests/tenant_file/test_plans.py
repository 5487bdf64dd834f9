"""A file is compared with a tenant, and its differences are applied as the console's services would make them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import PermissionDenied

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.catalogue import selectors, services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.models import Grant, Primitive, PrimitiveVersion
from mcphost.catalogue.states import PrimitiveState
from mcphost.feed.models import Change
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.script.kind import script_kind
from mcphost.tenant_file.documents import read, write
from mcphost.tenant_file.errors import InvalidFileError, MovedError
from mcphost.tenant_file.exports import export
from mcphost.tenant_file.file_format import SECTIONS
from mcphost.tenant_file.plans import Plan, apply_plan, make_plan
from mcphost.tenants import services as tenants
from mcphost.tenants.errors import UnknownTenantError
from mcphost.tenants.roles import Permission
from mcphost.tenants.selectors import tenant as tenant_snapshot
from mcphost.vault.secrets.services import delete_secret
from tests.cast import Cast
from tests.tenant_file.conftest import ACTOR, FUNCTION, new_tenant, scripts, store_secret

pytestmark = pytest.mark.django_db

REQUEST = {"method": "GET", "url": "https://api.example.com/orders/{arguments.id}"}
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
SENDING = {**REQUEST, "headers": [{"name": "X-Api-Key", "value": "{secrets.api_key}"}]}


def http(
    description: str = "Reads an order.", request: Mapping[str, Any] = REQUEST, **members: Any
) -> dict[str, Any]:
    config = {"input_schema": SCHEMA, "request": request}
    return {"kind": "http", "description": description, "config": config, **members}


def file(**sections: Any) -> bytes:
    return write({"format": 1, **sections}).encode()


def apply(tenant: UUID, data: bytes) -> Plan:
    plan = make_plan(tenant, data)
    apply_plan(plan, ACTOR)
    return plan


def changes(plan: Plan) -> list[tuple[str, Sequence[str]]]:
    return [(f"{change.section}.{change.name}", tuple(change.verbs)) for change in plan.changes]


def problems(tenant: UUID, data: bytes, *permissions: Permission) -> list[str]:
    with pytest.raises(InvalidFileError) as refusal:
        make_plan(tenant, data, permissions or frozenset(Permission))
    return [str(problem) for problem in refusal.value.problems]


def entries(tenant: UUID) -> list[tuple[str, str, Any]]:
    """What is recorded of primitives, but for digests and labels of versions."""
    rows = Entry.objects.filter(tenant=tenant, action__startswith="tool.").order_by("id")
    kept = {"kind", "changed", "number"}
    return [
        (row.action, row.target, {name: row.facts[name] for name in kept & row.facts.keys()})
        for row in rows
    ]


def prepare(tenant: UUID, state: PrimitiveState | None) -> None:
    """Make the tool `orders` with the services, in a state; None: it does not exist."""
    if state is None:
        return
    config = {"input_schema": SCHEMA, "request": REQUEST}
    fields = PrimitiveFields("orders", config, kind="http", description="Reads an order.")
    tool = services.create(tenant, fields, ACTOR).id
    if state is not PrimitiveState.DRAFT:
        services.publish(tool, ACTOR)
    if state is PrimitiveState.DISABLED:
        services.disable(tool, ACTOR)
    if state is PrimitiveState.ARCHIVED:
        services.archive(tool, ACTOR)


STATES = (None, *PrimitiveState)
TRANSITIONS = [
    pair
    for pair in product(STATES, PrimitiveState)
    if not (pair[1] is PrimitiveState.DRAFT and pair[0] not in (None, PrimitiveState.DRAFT))
]


@pytest.mark.parametrize(("start", "end"), TRANSITIONS)
@pytest.mark.parametrize("description", ["Reads an order.", "Reads one order."])
def test_a_file_leads_from_every_state_to_every_state(
    acme: UUID, start: PrimitiveState | None, end: PrimitiveState, description: str
) -> None:
    prepare(acme, start)
    data = file(tools={"orders": http(description, state=end.value)})
    apply(acme, data)
    (row,) = selectors.primitives(tenants_of(acme))
    assert (row.state, row.fields.description, row.edited) == (end, description, False)
    assert (row.version != "") is (end is not PrimitiveState.DRAFT)
    served = [tool.name for tool in selectors.offering(acme).tools]
    assert served == (["orders"] if end is PrimitiveState.PUBLISHED else [])
    assert not make_plan(acme, data).changes
    assert not make_plan(acme, export(acme).encode()).changes


def tenants_of(tenant: UUID) -> Any:
    return tenants.Tenant.objects.filter(pk=tenant)


def by_services(tenant: UUID, verb: str) -> None:
    tool = Primitive.objects.get(tenant=tenant).id
    getattr(services, verb)(tool, ACTOR)


@pytest.mark.parametrize(
    ("start", "end", "verbs"),
    [
        (None, PrimitiveState.DRAFT, []),
        (PrimitiveState.DRAFT, PrimitiveState.PUBLISHED, ["publish"]),
        (PrimitiveState.DRAFT, PrimitiveState.ARCHIVED, ["publish", "archive"]),
        (PrimitiveState.PUBLISHED, PrimitiveState.DISABLED, ["disable"]),
        (PrimitiveState.DISABLED, PrimitiveState.PUBLISHED, ["enable"]),
        (PrimitiveState.ARCHIVED, PrimitiveState.PUBLISHED, ["restore", "enable"]),
        (PrimitiveState.ARCHIVED, PrimitiveState.DISABLED, ["restore"]),
    ],
)
def test_a_file_records_and_announces_what_the_services_would(
    acme: UUID, globex: UUID, start: PrimitiveState | None, end: PrimitiveState, verbs: list[str]
) -> None:
    prepare(acme, start)
    prepare(globex, start)
    if start is None:
        prepare(globex, PrimitiveState.DRAFT)
    for verb in verbs:
        by_services(globex, verb)
    apply(acme, file(tools={"orders": http(state=end.value)}))
    assert entries(acme) == entries(globex)
    versions = [
        list(
            PrimitiveVersion.objects.filter(primitive__tenant=tenant).values(
                "number", "digest", "snapshot", "function", "code", "published_by"
            )
        )
        for tenant in (acme, globex)
    ]
    assert versions[0] == versions[1]
    announced = Change.objects.filter(
        tenant=acme, object_id=str(Primitive.objects.get(tenant=acme).id)
    )
    assert announced.order_by("seq").values_list("name", flat=True).last() == "tool"


def test_a_new_version_has_the_next_number_and_the_old_ones_stay(acme: UUID) -> None:
    apply(acme, file(tools={"orders": http()}))
    apply(acme, file(tools={"orders": http("Reads one order.")}))
    rows = PrimitiveVersion.objects.filter(primitive__tenant=acme).order_by("number")
    assert [(row.number, row.snapshot["description"]) for row in rows] == [
        (1, "Reads an order."),
        (2, "Reads one order."),
    ]


def test_an_edit_that_is_not_published_is_a_draft_in_the_file_and_stays_one(
    acme: UUID, globex: UUID
) -> None:
    edited = http(draft={"description": "Reads one order.", "time_limit_seconds": 5})
    plan = apply(acme, file(tools={"orders": edited}))
    assert changes(plan) == [("tools.orders", ("created", "published"))]
    (row,) = selectors.primitives(tenants_of(acme))
    assert (row.fields.description, row.edited) == ("Reads one order.", True)
    (tool,) = selectors.offering(acme).tools
    assert tool.listing["description"] == "Reads an order."
    text = export(acme)
    assert read(text.encode()).value["tools"]["orders"]["draft"] == edited["draft"]
    apply(globex, text.replace("title: Acme", "title: Globex").encode())
    assert export(globex).replace("Globex", "Acme") == text


EVERYTHING = {
    "tenant": {"title": "All", "allowed_origins": ["https://app.example.com"], "calls_per_minute": 60, "outgoing_hosts": ["*.example.com"], "instructions": "Use it.\n\nWell.", "metadata_documents_only": True},
    "functions": [FUNCTION],
    "tools": {
        "echo": {"kind": "python", "config": {"function": FUNCTION}, "scopes": ["mcp:echo"], "time_limit_seconds": 2.5, "target_seconds": 60},
        "orders": http(request=SENDING, answer_within_seconds=120),
        "old": http(state="archived"),
        "off": http(state="disabled", draft={"title": "Off"}),
        "new": http(state="draft"),
        "double": {"kind": "script", "description": "Doubles.", "config": {"code": "def double(number: int) -> int:\n    return 2 * number\n"}},
    },
    "prompts": {"greet": {"kind": "text", "description": "Greets.", "config": {"arguments": [{"name": "who", "required": True}], "messages": [{"role": "user", "content": {"type": "text", "text": "Hello {who}"}}]}}},
    "resources": {"about": {"kind": "text", "config": {"uri": "docs://about", "text": "no\n"}}},
    "templates": {"page": {"kind": "text", "config": {"uri": "docs://pages/{id}", "text": "Page {id}"}}},
}  # fmt: skip


def test_the_export_of_a_tenant_with_all_kinds_makes_an_equal_tenant(acme: UUID) -> None:
    store_secret(acme)
    apply(acme, file(**EVERYTHING))
    text = export(acme)
    assert not make_plan(acme, text.encode()).changes
    copy = new_tenant("copy")
    store_secret(copy)
    plan = apply(copy, text.encode())
    assert not plan.missing_secrets
    assert export(copy) == text
    assert not make_plan(copy, text.encode()).changes
    value = read(text.encode()).value
    assert value["tools"]["off"]["draft"] == {"title": "Off"}
    assert value["secrets"] == {"api_key": {"hosts": ["api.example.com"], "places": ["header"]}}
    assert "a-secret-value" not in text


def test_the_second_application_changes_and_records_nothing(acme: UUID) -> None:
    data = file(tools={f"orders_{number}": http() for number in range(50)})
    assert len(apply(acme, data).changes) == 50
    before = Entry.objects.count(), Change.objects.count(), PrimitiveVersion.objects.count()
    assert not apply(acme, data).changes
    assert (
        Entry.objects.count(),
        Change.objects.count(),
        PrimitiveVersion.objects.count(),
    ) == before


def test_the_application_is_recorded_with_its_digest(acme: UUID) -> None:
    plan = apply(acme, file(tools={"orders": http()}, tenant={"title": "New"}))
    entry = Entry.objects.get(action="tenant.applied", tenant=acme)
    assert entry.facts == {"digest": plan.digest, "changes": 2}
    assert (entry.actor_label, entry.target) == ("olga", "acme")
    assert Entry.objects.filter(action="tenant.updated", tenant=acme).count() == 1


def test_settings_that_are_omitted_stay(acme: UUID) -> None:
    apply(acme, file(tenant={"instructions": "Be brief.", "calls_per_minute": 5}))
    plan = apply(acme, file(tenant={"title": "New"}))
    assert plan.changes[0][:4] == ("tenant", "acme", ["updated"], ["title"])
    after = tenant_snapshot(acme)
    assert after is not None
    assert (after.title, after.instructions, after.calls_per_minute) == ("New", "Be brief.", 5)
    apply(acme, file(tenant={"calls_per_minute": None}))
    after = tenant_snapshot(acme)
    assert after is not None
    assert after.calls_per_minute is None


def test_a_tool_whose_secret_is_missing_stays_a_draft_until_it_is_stored(acme: UUID) -> None:
    data = file(secrets={"api_key": None}, tools={"orders": http(request=SENDING), "plain": http()})
    plan = apply(acme, data)
    assert plan.missing_secrets == ["api_key"]
    assert [(change.name, change.verbs, change.missing) for change in plan.changes] == [
        ("orders", ["created"], ["api_key"]),
        ("plain", ["created", "published"], []),
    ]
    store_secret(acme)
    assert changes(apply(acme, data)) == [("tools.orders", ("published",))]
    assert not make_plan(acme, data).changes


def test_a_published_tool_whose_new_version_lacks_a_secret_is_served_as_before(acme: UUID) -> None:
    apply(acme, file(tools={"orders": http()}))
    plan = apply(acme, file(tools={"orders": http(request=SENDING)}))
    assert [(change.verbs, change.missing) for change in plan.changes] == [
        (["updated"], ["api_key"])
    ]
    (row,) = selectors.primitives(tenants_of(acme))
    assert (row.state, row.edited) == (PrimitiveState.PUBLISHED, True)


def test_primitives_that_the_file_does_not_name_stay_unless_it_prunes(acme: UUID) -> None:
    apply(acme, file(tools={"orders": http(), "old": http(), "idea": http(state="draft")}))
    plan = make_plan(acme, file(tools={"orders": http()}))
    assert (plan.changes, plan.kept) == ((), ["tools.idea", "tools.old"])
    plan = apply(acme, file(prune=True, tools={"orders": http()}))
    assert changes(plan) == [("tools.old", ("archived",))]
    assert plan.kept == ["tools.idea"]
    assert not make_plan(acme, file(prune=True, tools={"orders": http()})).changes


def test_functions_are_granted_by_platform_staff_only(acme: UUID, globex: UUID) -> None:
    data = file(
        functions=[FUNCTION], tools={"echo": {"kind": "python", "config": {"function": FUNCTION}}}
    )
    everyday = frozenset(Permission) - {Permission.GRANT_FUNCTIONS}
    assert problems(globex, data, *everyday) == [
        "line 3: functions.0: probe.echo is not granted to this tenant. Ask platform staff."
    ]
    plan = apply(globex, data)
    assert changes(plan) == [
        ("functions.probe.echo", ("granted",)),
        ("tools.echo", ("created", "published")),
    ]
    assert Grant.objects.filter(tenant=globex, function=FUNCTION).exists()
    assert not make_plan(globex, data, everyday).changes
    assert problems(
        new_tenant("other"),
        file(tools={"echo": {"kind": "python", "config": {"function": FUNCTION}}}),
    ) == ["line 6: tools.echo.config.function: probe.echo is not granted to this tenant."]


def test_settings_are_changed_by_owners_only(acme: UUID) -> None:
    data = file(tenant={"title": "New"})
    assert problems(acme, data, Permission.EDIT_TOOLS) == [
        "line 2: tenant: Only owners may change the settings of the tenant."
    ]
    assert make_plan(acme, file(tenant={"title": "Acme"}), [Permission.EDIT_TOOLS]).changes == ()


def test_all_problems_are_reported_with_their_lines_and_nothing_is_changed(acme: UUID) -> None:
    data = b"""format: 1
tenant:
  title: ''
  allowed_origins: ['nonsense']
functions: [demo.nothing]
tools:
  fine:
    kind: script
    description: Fine.
    config:
      code: |
        def fine() -> int:
            return 1
  bad name:
    kind: http
    description: Bad.
    config: {request: {method: GET, url: 'ftp://x'}}
  unknown:
    kind: cobol
    config: {}
  loop:
    kind: script
    description: Loops.
    config: {code: 'import os'}
"""
    assert [tuple(line.split(": ")[:2]) for line in problems(acme, data)] == [
        ("line 3", "tenant.title"),
        ("line 4", "tenant.allowed_origins"),
        ("line 5", "functions.0"),
        ("line 14", "tools.bad name.name"),
        ("line 17", "tools.bad name.config.request.url"),
        ("line 19", "tools.unknown.kind"),
        ("line 24", "tools.loop.config.code"),
    ]
    assert not Primitive.objects.filter(tenant=acme).exists()


WRONG = (5, True, 1.5, "text", [], [1], {}, {"a": 1}, {"a": None}, [{"src": 1}])
MEMBERS = (
    "kind", "state", "title", "description", "scopes", "time_limit_seconds", "answer_within_seconds",
    "icons", "config", "draft", "target_seconds",
)  # fmt: skip


def refused(tenant: UUID, data: bytes, path: str) -> bool:
    """Whether a file is refused; if it is, each problem is at `path`, and not on its first line."""
    try:
        make_plan(tenant, data)
    except InvalidFileError as error:
        assert all(problem.path.startswith(path) for problem in error.problems), error
        assert all(problem.message and problem.line for problem in error.problems)
        return True
    return False


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_of_a_wrong_type_is_refused_at_its_place(acme: UUID, member: str) -> None:
    results = [
        refused(acme, file(tools={"orders": {**http(), member: value}}), "tools.orders")
        for value in WRONG
    ]
    assert sum(results) >= 5


@pytest.mark.parametrize(
    "section", ["tenant", "secrets", "functions", *SECTIONS, "prune", "format"]
)
def test_a_section_of_a_wrong_type_is_refused_at_its_place(acme: UUID, section: str) -> None:
    results = [
        refused(acme, write({"format": 1, section: value}).encode(), section) for value in WRONG
    ]
    assert sum(results) >= 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: format: The file must begin with `format: 1`."),
        ("format: 2\n", "line 1: format: The file must begin with `format: 1`."),
        ("- 1\n", "line 1: This must be a mapping."),
        ("format: 1\ntool: {}\n", "line 2: tool: There is no member of this name. Use format, prune, tenant, secrets, functions, tools, prompts, resources, templates."),
        ("format: 1\ntools:\n  a: {}\n", "line 3: tools.a: Its kind and config must be given."),
        ("format: 1\ntenant: {slug: x}\n", "line 2: tenant.slug: There is no member of this name. Use title, icon, instructions, allowed_origins, outgoing_hosts, public, metadata_documents_only, calls_per_minute, concurrent_calls."),
        ("format: 1\ntools:\n  a:\n    kind: http\n    config: {}\n    state: live\n", "line 6: tools.a.state: This must be one of draft, published, disabled, archived."),
        ("format: 1\ntools:\n  a:\n    kind: http\n    config: {}\n    state: draft\n    draft: {title: x}\n", "line 7: tools.a.draft: A draft has no other one. Write its members beside `state`."),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_refused_in_words(acme: UUID, text: str, message: str) -> None:
    assert message in problems(acme, text.encode())


def test_what_was_published_keeps_its_kind_its_uri_and_its_publication(acme: UUID) -> None:
    page = {"kind": "text", "config": {"uri": "docs://about", "text": "About"}}
    apply(acme, file(tools={"orders": http()}, resources={"about": page}))
    moved = {"kind": "text", "config": {"uri": "docs://other", "text": "About"}}
    script = {
        "kind": "script",
        "description": "x",
        "config": {"code": "def orders() -> int:\n    return 1\n"},
    }
    data = file(tools={"orders": script}, resources={"about": moved})
    assert [line.split(": ", 2)[1:] for line in problems(acme, data)] == [
        ["tools.orders.kind", "The kind of a tool cannot be changed. Use another name, and archive this one (delete a draft)."],
        ["resources.about.config.uri", "It was published at another URI, which cannot be changed. Use another name for the new one."],
    ]  # fmt: skip
    assert problems(acme, file(tools={"orders": http(state="draft")})) == [
        "line 17: tools.orders.state: It was published, so it cannot be a draft again. It can be disabled or archived."
    ]


def test_two_primitives_of_a_file_cannot_have_one_uri(acme: UUID) -> None:
    page = {"kind": "text", "config": {"uri": "docs://about", "text": "About"}}
    (problem,) = problems(acme, file(resources={"a": page, "b": page}))
    assert "resources.b.config.uri: Another resource of this tenant has that URI." in problem


@pytest.mark.parametrize("change", ["tool", "settings", "secret", "grant", "version", "closed"])
def test_a_plan_is_refused_after_any_change_of_the_tenant(acme: UUID, change: str) -> None:
    secret = store_secret(acme)
    prepare(acme, PrimitiveState.PUBLISHED)
    plan = make_plan(acme, file(tools={"other": http(request=SENDING)}))
    tool = Primitive.objects.get(tenant=acme)
    if change == "tool":
        services.update(
            tool.id, replace(selectors.primitives(tenants_of(acme))[0].fields, title="x"), ACTOR
        )
    elif change == "settings":
        settings = tenant_snapshot(acme)
        assert settings is not None
        tenants.update_tenant(acme, replace(settings.fields, title="x"), actor=ACTOR)
    elif change == "secret":
        delete_secret(acme, secret, actor=ACTOR)
    elif change == "grant":
        services.revoke_grant(acme, FUNCTION, ACTOR)
    elif change == "version":
        services.disable(tool.id, ACTOR)
        services.enable(tool.id, ACTOR)
    else:
        tenants.close_tenant(acme, actor=ACTOR)
    before = Entry.objects.count()
    with pytest.raises(UnknownTenantError if change == "closed" else MovedError):
        apply_plan(plan, ACTOR)
    assert Entry.objects.count() == before
    assert not Primitive.objects.filter(tenant=acme, name="other").exists()


def test_a_digest_names_the_file_the_tenant_and_its_state(acme: UUID, globex: UUID) -> None:
    data = file(tools={"orders": http()})
    digest = make_plan(acme, data).digest
    assert make_plan(acme, data).digest == digest
    others = {make_plan(globex, data).digest, make_plan(acme, data + b"\n").digest}
    prepare(acme, PrimitiveState.DRAFT)
    others.add(make_plan(acme, data).digest)
    assert len(others | {digest}) == 4
    with pytest.raises(MovedError):
        apply_plan(make_plan(acme, data), ACTOR, digest)


def test_a_person_without_the_right_applies_nothing(cast: Cast) -> None:
    plan = make_plan(cast.acme.id, file(tools={"orders": http()}, tenant={"title": "New"}))
    for person in (cast.auditor, cast.member, cast.stranger):
        with pytest.raises(PermissionDenied):
            apply_plan(plan, Actor.person(person.user.pk, "x"))
    # An operator edits tools, and must not change the settings: neither is changed.
    with pytest.raises(PermissionDenied):
        apply_plan(plan, Actor.person(cast.operator.user.pk, "x"))
    assert not Primitive.objects.filter(tenant=cast.acme.id).exists()
    apply_plan(plan, Actor.person(cast.owner.user.pk, "x"))
    assert Primitive.objects.filter(tenant=cast.acme.id).exists()


def test_a_plan_for_a_tenant_that_does_not_exist_is_refused() -> None:
    with pytest.raises(tenants.Tenant.DoesNotExist):
        make_plan(uuid4(), file())


def test_every_type_of_primitive_has_a_section() -> None:
    assert set(SECTIONS.values()) == set(PrimitiveType)


def test_checks_end_with_the_last_problem_that_is_reported(
    acme: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a file of wrong members occupies the process for minutes."""
    monkeypatch.setattr("mcphost.tenant_file.plans.MAX_PROBLEMS", 10)
    wrong = {f"tool_{number}": {"kind": "http", "config": {}} for number in range(50)}
    with pytest.raises(InvalidFileError) as refused:
        make_plan(acme, file(tools=wrong))
    names = {problem.path.split(".")[1] for problem in refused.value.problems}
    assert 10 <= len(refused.value.problems) < 20
    assert len(names) <= 10


def test_more_scripts_than_are_checked_in_a_minute_are_planned_by_repetition(
    acme: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcphost.sandbox.check_slots.MAX_PER_MINUTE", 2)
    data = scripts(4)
    with pytest.raises(InvalidFileError, match="at most 2 scripts are checked in a minute"):
        make_plan(acme, data)
    script_kind.sandbox.check_slots._begun.clear()  # a minute later
    plan = make_plan(acme, data)
    apply_plan(make_plan(acme, data), ACTOR, plan.digest)
    assert Primitive.objects.filter(tenant=acme, kind="script").count() == 4
