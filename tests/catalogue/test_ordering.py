"""The order in which an author wrote the arguments of a tool is the order that clients see."""

from typing import Any

import pytest

from mcphost.catalogue import compiling, selectors, services
from mcphost.catalogue.errors import UnchangedError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.loading import load_offering
from mcphost.catalogue.models import Primitive, PrimitiveVersion
from mcphost.catalogue.ordering import in_order, order_of, property_order
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.models import Tenant
from tests.cast import ACTOR, Cast

WRITTEN = ("zone", "id", "amount", "b")


def fields(*names: str, **others: Any) -> PrimitiveFields:
    """An HTTP tool whose arguments, and the fields of whose question, are in this order."""
    properties = {name: {"type": "string", "description": name} for name in names}
    config = {
        "input_schema": {"type": "object", "properties": properties},
        "questions": [
            {
                "key": "why",
                "message": "Why?",
                "requested_schema": {"type": "object", "properties": properties},
            }
        ],
        "request": {"method": "GET", "url": "https://api.example.com/orders"},
    }
    return PrimitiveFields("order", config, kind="http", description="Order.", **others)


def listed(cast: Cast) -> list[str]:
    """Return the arguments of the tool as clients see them."""
    compiling.forget_all()
    (tool,) = load_offering(cast.acme.id).tools
    return list(tool.listing["inputSchema"]["properties"])


def in_form(cast: Cast) -> list[list[str]]:
    """Return the properties of the working copy, and of the published version, as operators see them."""
    (row,) = selectors.primitives(Tenant.objects.filter(pk=cast.acme.id), PrimitiveType.TOOL)
    return property_order(row.fields.config)


@pytest.mark.parametrize(
    "value", [{}, {"b": {"z": 1, "a": [{"y": 1, "b": {}}]}, "a": {"x": None, "c": 2}}]
)
def test_the_key_order_of_a_stored_value_is_restored(value: Any) -> None:
    def jumbled(each: Any) -> Any:
        if isinstance(each, dict):
            return {name: jumbled(each[name]) for name in sorted(each)}
        return [jumbled(one) for one in each] if isinstance(each, list) else each

    assert repr(in_order(jumbled(value), order_of(value))) == repr(value)


@pytest.mark.parametrize("order", [[], [["b", "a"], ["c"]], [["a", "x"]]])
def test_the_key_order_of_a_different_value_changes_nothing(order: list[list[str]]) -> None:
    value = {"a": 1, "b": 2}
    assert in_order(value, order) is value


@pytest.mark.django_db
def test_clients_and_operators_see_arguments_in_the_order_of_the_author(cast: Cast) -> None:
    row = services.create(cast.acme.id, fields(*WRITTEN), ACTOR)
    services.publish(row.id, ACTOR)
    assert listed(cast) == list(WRITTEN)
    assert in_form(cast) == [list(WRITTEN), list(WRITTEN)]
    (version,) = selectors.versions(row.id)
    assert property_order(version.snapshot["config"]) == [list(WRITTEN), list(WRITTEN)]


@pytest.mark.django_db
def test_a_changed_order_of_arguments_can_be_published(cast: Cast) -> None:
    row = services.create(cast.acme.id, fields(*WRITTEN), ACTOR)
    services.publish(row.id, ACTOR)
    assert not services.update(row.id, fields(*WRITTEN), ACTOR).edited
    with pytest.raises(UnchangedError):
        services.publish(row.id, ACTOR)
    assert services.update(row.id, fields(*reversed(WRITTEN)), ACTOR).edited
    assert not services.publish(row.id, ACTOR).edited
    assert listed(cast) == list(reversed(WRITTEN))
    Primitive.objects.update(config_order=[])
    PrimitiveVersion.objects.update(config_order=[])
    assert sorted(listed(cast)) == sorted(WRITTEN), "rows without an order are served as they are"
    (found,) = selectors.primitives(Tenant.objects.filter(pk=cast.acme.id), PrimitiveType.TOOL)
    assert not found.edited
