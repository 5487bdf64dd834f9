"""The order of the members of JSON objects, which PostgreSQL's `jsonb` does not keep.

Clients and forms show properties in the order in which their author wrote them. So it is stored
beside a configuration, as the names of each object, from the outermost to the innermost.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Order = Sequence[Sequence[str]]


def order_of(value: Any) -> list[list[str]]:
    """Return the names of all objects in a value, each object before those inside it."""
    return list(_names(value))


def in_order(value: Any, order: Order) -> Any:
    """Return a value with the members of its objects in this order.

    If the order is not that of this value, such as that of one that was changed by an older release,
    the value is returned as it is.
    """
    remaining = iter(order)
    try:
        ordered = _ordered(value, remaining)
    except (StopIteration, _OtherValueError):
        return value
    return value if next(remaining, None) is not None else ordered


def property_order(value: Any) -> list[list[str]]:
    """Return the names of the properties of all schemas in a value: the order that users see.

    It does not depend on the order of other members.
    """
    return list(_properties(value))


class _OtherValueError(Exception):
    """The order is that of another value."""


def _names(value: Any) -> Iterator[list[str]]:
    if isinstance(value, Mapping):
        yield list(value)
    for child in _inside(value):
        yield from _names(child)


def _properties(value: Any) -> Iterator[list[str]]:
    if isinstance(value, Mapping):
        properties = value.get("properties")
        if isinstance(properties, Mapping):
            yield list(properties)
        value = dict(sorted(value.items()))
    for child in _inside(value):
        yield from _properties(child)


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value


def _ordered(value: Any, remaining: Iterator[Sequence[str]]) -> Any:
    if isinstance(value, Mapping):
        names = next(remaining)
        if len(names) != len(value) or not all(name in value for name in names):
            raise _OtherValueError
        return {name: _ordered(value[name], remaining) for name in names}
    if isinstance(value, list | tuple):
        return [_ordered(child, remaining) for child in value]
    return value
