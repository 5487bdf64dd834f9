"""Which listeners are notified of what: by scopes, list and URI."""

from collections.abc import Mapping

from mcphost.catalogue.snapshots import Offering
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.serving.subscriptions import registry
from mcphost.serving.subscriptions.registry import Group, Listener, TenantChanges
from tests.serving.defined_rounds import tenant
from tests.serving.made_offerings import offering, resource, template

WIDE = frozenset({"mcp:list", "mcp:call", "mcp:guarded"})
NARROW = frozenset({"mcp:list", "mcp:call"})
ALL = ("tool", "prompt", "resource")


class Heap:
    """A stream that keeps the messages sent to it."""

    closed = False

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def send(self, message: bytes) -> None:
        self.messages.append(message)

    async def stay(self) -> None: ...

    def end_stay(self) -> None: ...


def listener(uris: Mapping[str, str] | None = None, *lists: str) -> Listener:
    principal = Principal(PrincipalKind.TOKEN, tenant().id)
    return Listener("seven", principal, Heap(), lists, uris or {})


def told(group: Group, served: Offering, lists: set[str], updated: set[str]) -> list[str]:
    """The topics of which a group is notified for these changes."""
    changes = TenantChanges(lists, updated)
    return [
        topic
        for topic in group.concerned(changes)
        if group.changed(topic, served, updated=topic in updated)
    ]


def group_of(served: Offering, *uris: str, scopes: frozenset[str] = NARROW) -> Group:
    group = Group(scopes)
    read = {uri: registry.reading(served, uri, scopes) for uri in uris}
    group.add(listener({uri: uri for uri in uris}, *ALL), served, read)
    return group


NOTES = "notes://today"


def test_a_new_version_of_a_resource_is_notified_at_its_uri_only() -> None:
    group = group_of(offering(resource(NOTES)), NOTES)
    assert told(group, offering(resource(NOTES)), {"resource"}, set()) == []
    assert told(group, offering(resource(NOTES, "2+0")), {"resource"}, set()) == [NOTES]
    assert told(group, offering(resource(NOTES, "2+0")), {"tool"}, set()) == []


def test_a_resource_that_became_unreadable_is_not_notified() -> None:
    group = group_of(offering(resource(NOTES)), NOTES)
    guarded = offering(resource(NOTES, scopes=["mcp:guarded"]))
    assert told(group, guarded, {"resource"}, {NOTES}) == ["resource"]
    assert told(group, guarded, set(), {NOTES}) == []
    again = offering(resource(NOTES))
    assert sorted(told(group, again, {"resource"}, set())) == [NOTES, "resource"]


def test_a_template_is_read_where_a_resource_is_hidden() -> None:
    both = offering(resource(NOTES, scopes=["mcp:guarded"]), template("notes://{day}", "7+0"))
    assert registry.reading(both, NOTES, NARROW) == (both.templates[0].id, "7+0")
    assert registry.reading(both, NOTES, WIDE) == (both.resources[0].id, "1+0")
    assert registry.reading(both, "other://x", WIDE) is None
