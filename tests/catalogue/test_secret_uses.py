"""Which primitives use a secret: by their working copies and by what is published."""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import pytest

from mcphost.catalogue import compiling, kinds, selectors, services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.rows import SecretUse
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.python.kind import PythonKind
from mcphost.kinds.text.kind import TextKind
from tests.catalogue.memory_kind import ACTOR, Shelf

pytestmark = pytest.mark.django_db


class Naming(Shelf):
    """A shelf whose functions use secrets, whether they are on it or not."""

    names = {"demo.echo": ("weather_key",), "demo.add": ("weather_key", "map_key")}

    def secrets_of(self, config: Mapping[str, Any]) -> Collection[str]:
        return self.names.get(str(config.get("function")), ())


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Naming:
    shelf = Naming()
    for reference in ("demo.echo", "demo.add", "demo.clock"):
        shelf.put(reference)
    monkeypatch.setitem(kinds.KINDS, "python", shelf)
    compiling.forget_all()
    return shelf


def tool(tenant: UUID, name: str, function: str = "demo.echo") -> UUID:
    return services.create(tenant, fields(name, function), ACTOR).id


def fields(name: str, function: str) -> PrimitiveFields:
    return PrimitiveFields(name=name, config={"function": function})


def uses(tenant: UUID, secret: str = "weather_key") -> list[tuple[str, bool, bool]]:
    found = selectors.secret_uses(tenant).get(secret, ())
    return [(use.name, use.live, use.published) for use in found]


def test_a_draft_uses_a_secret_by_its_working_copy(acme: UUID, globex: UUID) -> None:
    made = tool(acme, "forecast")
    tool(acme, "clock", "demo.clock")
    assert selectors.secret_uses(acme) == {
        "weather_key": [SecretUse(made, PrimitiveType.TOOL, "forecast", False, False)]
    }
    assert selectors.published_uses(acme, "weather_key") == []
    assert selectors.secret_uses(globex) == {}


def test_a_published_version_uses_a_secret_until_another_version_is_published(acme: UUID) -> None:
    made = tool(acme, "forecast")
    services.publish(made, ACTOR)
    services.update(made, fields("forecast", "demo.clock"), ACTOR)
    assert uses(acme) == [("forecast", True, True)]
    assert selectors.published_uses(acme, "weather_key") == ["forecast"]
    services.publish(made, ACTOR)
    assert uses(acme) == []
    services.update(made, fields("forecast", "demo.echo"), ACTOR)
    assert uses(acme) == [("forecast", False, False)], "a working copy is no publication"


def test_an_unserved_tool_uses_its_secret_while_its_kind_is_registered(acme, shelf, monkeypatch):
    services.publish(tool(acme, "forecast"), ACTOR)
    del shelf.functions["demo.echo"]
    assert uses(acme) == [("forecast", True, True)]
    monkeypatch.delitem(kinds.KINDS, "python")
    assert uses(acme) == []
    assert not PythonKind().secrets_of({"function": "demo.echo"})
    assert not TextKind().secrets_of({"text": "weather_key"})
