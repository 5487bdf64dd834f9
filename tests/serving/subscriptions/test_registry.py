"""Which listeners are notified of what: by scopes, list and URI."""

from collections.abc import Mapping

from mcphost.catalogue.snapshots import Offering
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.serving.subscriptions import registry
from mcphost.serving.subscriptions.registry import Group, Listener, TenantChanges
from tests.serving.offers import offering, prompt, resource, template
from tests.serving.turns import tenant
from tests.wire import check_message

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

    def leave(self) -> None: ...


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


def test_each_list_is_told_of_on_its_own() -> None:
    group = group_of(offering())
    assert told(group, offering(prompt("poem")), set(ALL), set()) == ["prompt"]
    both = offering(prompt("poem"), template("notes://{day}"))
    assert told(group, both, {"resource"}, set()) == ["resource"]
    assert told(group, both, set(ALL), set()) == []
    assert told(group, offering(), {"prompt"}, set()) == ["prompt"]


def test_what_the_scopes_do_not_show_is_no_change() -> None:
    hidden = offering(prompt("poem", scopes=["mcp:guarded"]))
    assert told(group_of(offering()), hidden, {"prompt"}, set()) == []
    assert told(group_of(offering(), scopes=WIDE), hidden, {"prompt"}, set()) == ["prompt"]


def test_a_new_version_is_news_at_its_uri_though_the_list_stays() -> None:
    group = group_of(offering(resource(NOTES)), NOTES)
    assert told(group, offering(resource(NOTES)), {"resource"}, set()) == []
    assert told(group, offering(resource(NOTES, "2+0")), {"resource"}, set()) == [NOTES]
    assert told(group, offering(resource(NOTES, "2+0")), {"tool"}, set()) == []


def test_a_new_version_of_a_template_is_news_at_the_uris_that_fit_it() -> None:
    group = group_of(offering(template("notes://{day}")), NOTES)
    changed = offering(template("notes://{day}", "2+0"))
    assert told(group, changed, {"resource"}, set()) == [NOTES]


def test_an_announcement_is_told_at_its_uri_alone() -> None:
    served = offering(template("notes://{day}"))
    group = group_of(served, NOTES, "notes://tomorrow")
    assert told(group, served, set(), {NOTES, "notes://never"}) == [NOTES]


def test_what_cannot_be_read_any_more_is_not_told_of() -> None:
    group = group_of(offering(resource(NOTES)), NOTES)
    guarded = offering(resource(NOTES, scopes=["mcp:guarded"]))
    assert told(group, guarded, {"resource"}, {NOTES}) == ["resource"]
    assert told(group, guarded, set(), {NOTES}) == []
    again = offering(resource(NOTES))
    assert sorted(told(group, again, {"resource"}, set())) == [NOTES, "resource"]


def test_where_a_resource_is_hidden_a_template_may_be_read() -> None:
    both = offering(resource(NOTES, scopes=["mcp:guarded"]), template("notes://{day}", "7+0"))
    assert registry.reading(both, NOTES, NARROW) == (both.templates[0].id, "7+0")
    assert registry.reading(both, NOTES, WIDE) == (both.resources[0].id, "1+0")
    assert registry.reading(both, "other://x", WIDE) is None


def test_the_last_one_takes_its_topic_along() -> None:
    group = group_of(offering(resource(NOTES)))
    one, other = listener({NOTES: NOTES}), listener({NOTES: NOTES})
    served = offering(resource(NOTES))
    for each in (one, other):
        group.add(each, served, {NOTES: registry.reading(served, NOTES, NARROW)})
    group.discard(one)
    assert NOTES in group.by_topic
    group.discard(other)
    group.discard(other)
    assert NOTES not in group.by_topic
    assert group.changed(NOTES, offering(), updated=True) == set()


def test_a_client_is_told_by_the_names_it_uses() -> None:
    one = listener({"notes://a%2Fb": "NOTES://a%2fb"}, "tool")
    one.tell("notes://a%2Fb")
    one.tell("tool")
    assert isinstance(one.stream, Heap)
    updated, changed = map(check_message, one.stream.messages)
    assert updated["params"]["uri"] == "NOTES://a%2fb"
    assert changed["method"] == "notifications/tools/list_changed"
