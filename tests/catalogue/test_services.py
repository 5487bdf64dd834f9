"""Tests of the verbs on tools: each is atomic, recorded once and announced once, or fails."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError

from mcphost.audit.models import Entry
from mcphost.catalogue import selectors, services
from mcphost.catalogue.errors import InvalidPrimitiveError, UnchangedError, WrongStateError
from mcphost.catalogue.models import Grant, Primitive, PrimitiveVersion
from mcphost.catalogue.states import PrimitiveState, PrimitiveVerb, following
from mcphost.feed.models import Change
from mcphost.tenants.errors import UnknownTenantError
from mcphost.tenants.services import close_tenant
from tests.catalogue.memory_kind import ACTOR, OTHER, Shelf, fields

pytestmark = pytest.mark.django_db


class Traces:
    """The entries and changes that were written since its creation."""

    def __init__(self) -> None:
        self.entries = set(Entry.objects.values_list("id", flat=True))
        self.changes = set(Change.objects.values_list("seq", flat=True))

    def entry(self) -> Entry:
        """Return the only new entry, after checking the only new change."""
        entry = Entry.objects.exclude(pk__in=self.entries).get()
        change = Change.objects.exclude(pk__in=self.changes).get()
        assert (change.name, change.tenant) == ("tool", entry.tenant)
        assert (entry.actor_kind, entry.actor_id, entry.actor_label) == ("system", "", "olga")
        return entry

    def none(self) -> bool:
        return not (
            Entry.objects.exclude(pk__in=self.entries).exists()
            or Change.objects.exclude(pk__in=self.changes).exists()
        )


def in_state(tenant: UUID, state: PrimitiveState) -> UUID:
    tool = services.create(tenant, fields(), ACTOR).id
    if state != PrimitiveState.DRAFT:
        services.publish(tool, ACTOR)
    if state == PrimitiveState.DISABLED:
        services.disable(tool, ACTOR)
    if state == PrimitiveState.ARCHIVED:
        services.archive(tool, ACTOR)
    return tool


def test_a_new_tool_is_a_draft_and_not_served(acme: UUID) -> None:
    traces = Traces()
    row = services.create(
        acme,
        fields(title=" Echo ", scopes=["mcp:b", "mcp:a", "mcp:b"], time_limit_seconds=2),
        ACTOR,
    )
    assert (row.state, row.version, row.edited) == (PrimitiveState.DRAFT, "", False)
    assert (row.fields.title, row.fields.scopes) == ("Echo", ["mcp:a", "mcp:b"])
    assert selectors.offering(acme).tools == ()
    entry = traces.entry()
    assert (entry.action, entry.tenant, entry.target) == ("tool.created", acme, "echo")
    assert selectors.primitive(row.id) == row


def test_a_tool_of_an_unknown_or_closed_tenant_is_neither_created_nor_published(acme: UUID) -> None:
    with pytest.raises(UnknownTenantError):
        services.create(uuid4(), fields(), ACTOR)
    tool = services.create(acme, fields(), ACTOR).id
    close_tenant(acme, actor=ACTOR)
    with pytest.raises(UnknownTenantError):
        services.create(acme, fields("demo.add"), ACTOR)
    with pytest.raises(UnknownTenantError):
        services.publish(tool, ACTOR)


@pytest.mark.requirement("tools.names-unique")
def test_a_duplicate_name_in_a_tenant_is_reported_as_a_problem_of_the_name(
    acme: UUID, globex: UUID
) -> None:
    services.create(acme, fields(), ACTOR)
    traces = Traces()
    with pytest.raises(InvalidPrimitiveError) as refusal:
        services.create(acme, fields("demo.add", name="echo"), ACTOR)
    assert list(refusal.value.problems) == ["name"]
    assert traces.none()
    services.grant_function(globex, "demo.echo", ACTOR)
    services.create(globex, fields(), ACTOR)


def test_an_edit_of_a_published_tool_is_served_only_when_it_is_published(acme: UUID) -> None:
    tool = in_state(acme, PrimitiveState.PUBLISHED)
    traces = Traces()
    row = services.update(tool, fields(title="Louder", scopes=("mcp:loud",)), ACTOR)
    assert row.edited
    assert row.state == PrimitiveState.PUBLISHED
    assert traces.entry().facts == {"changed": ["title", "scopes"]}
    served = selectors.offering(acme).tools[0]
    assert "title" not in served.listing
    assert served.scopes == frozenset()

    row = services.publish(tool, ACTOR)
    assert not row.edited
    served = selectors.offering(acme).tools[0]
    assert (served.listing["title"], served.scopes) == ("Louder", {"mcp:loud"})


def test_only_drafts_can_be_renamed_and_the_kind_never_changes(acme: UUID) -> None:
    tool = services.create(acme, fields(), ACTOR).id
    assert services.update(tool, fields(name="parrot"), ACTOR).name == "parrot"
    services.publish(tool, ACTOR)
    services.disable(tool, ACTOR)
    before, traces = selectors.primitive(tool), Traces()
    for field, refused in (
        ("name", fields(name="polly")),
        ("kind", fields(name="parrot", kind="http")),
        ("title", fields(name="parrot", title="x" * 201)),
    ):
        with pytest.raises(InvalidPrimitiveError) as refusal:
            services.update(tool, refused, ACTOR)
        assert list(refusal.value.problems) == [field]
    assert selectors.primitive(tool) == before
    assert traces.none()


@pytest.mark.parametrize("state", list(PrimitiveState))
@pytest.mark.parametrize("verb", list(PrimitiveVerb))
def test_each_verb_follows_the_state_table_or_is_refused_without_an_entry(acme, state, verb):
    tool = in_state(acme, state)
    services.update(tool, fields(title="Changed since"), ACTOR)
    before = selectors.primitive(tool)
    traces = Traces()
    expected = following(state, verb)
    if expected is None:
        with pytest.raises(WrongStateError, match=f"cannot {verb.value} echo: it is {state.value}"):
            getattr(services, verb.value)(tool, ACTOR)
        assert selectors.primitive(tool) == before
        assert traces.none()
        return
    assert getattr(services, verb.value)(tool, ACTOR).state == expected
    served = [one.id for one in selectors.offering(acme).tools]
    assert served == ([tool] if expected == PrimitiveState.PUBLISHED else [])
    assert traces.entry().action == f"tool.{verb.value.rstrip('e')}ed"


def test_each_publication_adds_a_version_and_keeps_earlier_ones(acme: UUID) -> None:
    tool = in_state(acme, PrimitiveState.PUBLISHED)
    services.update(tool, fields(title="Second"), ACTOR)
    traces = Traces()
    row = services.publish(tool, ACTOR)
    newest, oldest = selectors.versions(tool)
    assert (newest.number, newest.live, newest.snapshot["title"]) == (2, True, "Second")
    assert (oldest.number, oldest.live, oldest.snapshot["title"]) == (1, False, "")
    assert newest.published_by == "olga"
    assert row.version == newest.label == f"2+{newest.digest[:8]}"
    facts = {"number": 2, "digest": newest.digest, "version": newest.label}
    assert traces.entry().facts == facts


@pytest.mark.parametrize("state", [PrimitiveState.PUBLISHED, PrimitiveState.DISABLED])
def test_an_unchanged_tool_is_not_published_again(acme: UUID, state: PrimitiveState) -> None:
    tool = in_state(acme, state)
    before = selectors.primitive(tool)
    traces = Traces()
    with pytest.raises(UnchangedError, match=r"echo has not changed since version 1\+") as refusal:
        services.publish(tool, ACTOR)
    assert ("Enable it" in str(refusal.value)) is (state is PrimitiveState.DISABLED)
    assert selectors.primitive(tool) == before
    assert len(selectors.versions(tool)) == 1
    assert traces.none()


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Other"},
        {"scopes": ["mcp:other"]},
        {"icons": [{"src": "https://example.test/icon.png", "mimeType": "image/png"}]},
        {"config": {"function": "demo.add"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_different_content_has_a_different_digest(acme: UUID, change: dict[str, Any]) -> None:
    tool = in_state(acme, PrimitiveState.PUBLISHED)
    services.update(tool, fields(**change), ACTOR)
    services.publish(tool, ACTOR)
    newest, oldest = selectors.versions(tool)
    assert newest.digest != oldest.digest


@pytest.mark.parametrize(
    "code",
    [
        {"annotations": {"readOnlyHint": True}},
        {"input_schema": OTHER},
        {"output_schema": {"type": "object"}},
        {"author_version": "2"},
    ],
    ids=lambda code: next(iter(code)),
)
def test_texts_and_schemas_of_the_code_are_part_of_the_version_and_its_digest(acme, shelf, code):
    tool = in_state(acme, PrimitiveState.PUBLISHED)
    shelf.put("demo.echo", **code)
    services.publish(tool, ACTOR)
    newest, oldest = selectors.versions(tool)
    assert newest.digest != oldest.digest
    compiled = shelf.functions["demo.echo"]
    assert newest.code["input_schema"] == compiled.input_schema
    assert newest.code["description"] == compiled.description


def test_publishing_an_invalid_edit_is_refused_and_the_old_version_stays_served(
    acme: UUID, shelf: Shelf
):
    tool = in_state(acme, PrimitiveState.PUBLISHED)
    services.update(tool, fields("demo.add", name="echo"), ACTOR)
    del shelf.functions["demo.add"]
    traces = Traces()
    with pytest.raises(InvalidPrimitiveError) as refusal:
        services.publish(tool, ACTOR)
    assert list(refusal.value.problems) == ["config.function"]
    assert traces.none()
    assert [one.version[:2] for one in selectors.offering(acme).tools] == ["1+"]


def test_enabling_serves_the_last_published_version_despite_later_edits(acme: UUID) -> None:
    tool = in_state(acme, PrimitiveState.DISABLED)
    services.update(tool, fields(title="Unpublished"), ACTOR)
    services.revoke_grant(acme, "demo.echo", ACTOR)
    with pytest.raises(InvalidPrimitiveError) as refusal:
        services.enable(tool, ACTOR)
    assert list(refusal.value.problems) == ["config.function"]
    services.grant_function(acme, "demo.echo", ACTOR)
    services.enable(tool, ACTOR)
    (served,) = selectors.offering(acme).tools
    assert "title" not in served.listing
    assert served.version.startswith("1+")


def test_a_tool_is_served_only_while_its_tenant_has_the_grant(acme, globex):
    tool = in_state(acme, PrimitiveState.PUBLISHED)
    assert not services.revoke_grant(globex, "demo.echo", ACTOR), "a grant is one tenant's"
    for verb, action in (
        (services.revoke_grant, "function.revoked"),
        (services.grant_function, "function.granted"),
    ):
        traces = Traces()
        assert verb(acme, "demo.echo", ACTOR)
        entry = traces.entry()
        assert (entry.action, entry.target) == (action, "demo.echo")
        again = Traces()
        assert not verb(acme, "demo.echo", ACTOR), "doing it again changes nothing"
        assert again.none()
        if verb is services.revoke_grant:
            assert selectors.offering(acme).tools == ()
            (problem,) = selectors.problems(acme)
            assert (problem.primitive_id, problem.tenant_id) == (tool, acme)
            assert problem.message == "The function is no longer granted to the tenant."
    assert [one.id for one in selectors.offering(acme).tools] == [tool]


def test_a_published_tool_needs_a_version_and_a_version_is_immutable(acme):
    tool = in_state(acme, PrimitiveState.PUBLISHED)
    version = PrimitiveVersion.objects.get()
    assert str(Primitive.objects.get()) == "echo"
    assert str(version) == f"1+{version.digest[:8]}"
    assert str(Grant.objects.get(function="demo.add")) == "demo.add"
    version.number = 5
    with pytest.raises(TypeError, match="never changes"):
        version.save()
    with pytest.raises(IntegrityError):
        Primitive.objects.filter(pk=tool).update(live=None)
