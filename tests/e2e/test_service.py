"""Clients of every SDK at a service of two nodes, with each request at another node."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.admin import Admin
from tests.e2e.callers import CLIENTS
from tests.e2e.client_process import talking
from tests.e2e.node_client import FOLDER, NODE
from tests.e2e.nodes import Service
from tests.e2e.test_python_client import DEMO_TOOLS, REVISION

# The page that lists it, its name, and how it is listed to clients.
LISTS = (
    ("tools", "picture", "picture"),
    ("prompts", "greeting", "greeting"),
    ("resources", "map", "note://map"),
)
OFFER = """
from mcphost.audit.records import Actor
from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.models import Tenant
actor, tenant = Actor.system("a test"), Tenant.objects.get(slug="demo").id
greeting = {
    "arguments": [{"name": "who", "choices": ["Ada", "Alan", "Bob"]}],
    "messages": [{"role": "user", "content": {"type": "text", "text": "Greet {who}."}}],
}
readme = {"uri": "note://readme", "text": "Read me."}
map = {"uri": "note://map", "text": "A map."}
note = {
    "uri": "note://{shelf}/{name}",
    "text": "{name} on {shelf}",
    "choices": {"name": ["one", "other", "third"]},
}
for name, sort, config in (
    ("greeting", PrimitiveType.PROMPT, greeting),
    ("readme", PrimitiveType.RESOURCE, readme),
    ("map", PrimitiveType.RESOURCE, map),
    ("note", PrimitiveType.TEMPLATE, note),
):
    fields = PrimitiveFields(name=name, primitive_type=sort, kind="text", config=config, description=name)
    services.publish(services.create(tenant, fields, actor).id, actor)
"""


@pytest.fixture(scope="module")
def offered(pair: Service) -> None:
    pair.manage("shell", "-c", OFFER)


@pytest.fixture(params=["python", "typescript"])
def client(request: pytest.FixtureRequest) -> Sequence[str]:
    if request.param == "typescript":
        request.getfixturevalue("node")
        return [str(NODE), str(FOLDER / "service.mjs")]
    return [sys.executable, str(CLIENTS / "python_client.py")]


def test_every_client_lists_all_primitives_and_is_notified_of_changes_on_either_node(
    two_nodes: Service, offered: None, client: Sequence[str], tmp_path: Path
) -> None:
    service, server = two_nodes, two_nodes.server
    service.proxy.served.clear()
    password = (service.first.home / "admin-password").read_text().strip()
    admins = [Admin(node.port, password) for node in (service.first, service.second)]
    with talking(client, tmp_path, url=server.url, token=server.token) as following:
        seen = following("seen")
        assert len(following("listening")) == len(LISTS) + 1
        for kind, name, entry in LISTS:
            for admin, verb in zip(admins, ("disable", "enable"), strict=True):
                admin.press("demo", kind, name, verb)
                assert (entry in following(kind)) is (verb == "enable")
        for admin in admins:
            admin.press("demo", "resources", "readme", "announce")
            assert following("read") == "Read me."
    assert set(seen.pop("tools")) >= DEMO_TOOLS
    assert all(entry in seen.pop(kind) for kind, _, entry in LISTS[1:])
    assert "note://{shelf}/{name}" in seen.pop("templates")
    assert seen == {
        "revision": REVISION,
        "called": "grüße",
        "got": "Greet Ada.",
        "read": "Read me.",
        "matched": "one on top",
        "who": ["Ada", "Alan"],
        "name": ["one", "other"],
    }
    assert service.proxy.failures == []
    assert service.proxy.served.keys() == {service.first.port, service.second.port}
