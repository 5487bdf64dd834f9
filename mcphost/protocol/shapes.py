"""Whether a message fits its wire model of `mcp_types`: these as compiled schemas, in which integers have no
fraction.

Pydantic checks the whole value and keeps an error for each misfit: a megabyte of zeros in place of
content blocks takes seconds and gigabytes. A compiled schema stops at the first misfit.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

import jsonschema_rs
from pydantic import BaseModel, TypeAdapter

from mcphost.protocol.revisions import REVISION

DEEP: Final = frozenset({"prompts/get", "completion/complete", "subscriptions/listen"})
"""The methods whose params are validated against the wire models."""

_WHOLE: Final = "writtenWhole"
_ANYTHING: Final = "JSONValue"
"""The definition that any JSON matches."""


class _WrittenWhole:
    """Keyword: an integer is written without a fraction. JSON Schema accepts `1.0` as one, the
    models do not."""

    def __init__(self, parent: Any, value: Any, path: Any) -> None:
        pass

    def validate(self, instance: Any) -> None:
        if isinstance(instance, float):
            raise ValueError("has a fraction")


class Shape:
    """The values that a wire type accepts, by the JSON Schema that pydantic generates for it."""

    __slots__ = ("_compiled",)

    def __init__(self, model: type[BaseModel] | TypeAdapter[Any]) -> None:
        adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
        self._compiled: Final = jsonschema_rs.Draft202012Validator(
            _with_whole_integers(adapter.json_schema()),
            offline=True,
            keywords={_WHOLE: _WrittenWhole},
        )

    def fits(self, value: Any) -> bool:
        """Whether JSON, as `orjson` parses it, is of the type. Stops at the first misfit."""
        return self._compiled.is_valid(value)


class NotLoadedError(Exception):
    """The wire models are not loaded yet: call `WireShapes.load`, then try again."""


class RequestShape(NamedTuple):
    """A request of one method in one revision: its model explains what its schema refuses."""

    model: type[BaseModel]
    shape: Shape


class _Loaded(NamedTuple):
    requests: Mapping[tuple[str, str], RequestShape]
    responses: Shape


class WireShapes:
    """The schemas of requests of all revisions, and of input responses.

    The models behind them take a third of a second to import, and few requests need them. They are
    loaded at the first use, by a caller that may wait: nothing here loads them by itself.
    """

    def __init__(self) -> None:
        self._loaded: _Loaded | None = None

    @property
    def loaded(self) -> bool:
        return self._loaded is not None

    def load(self) -> None:
        """Import the models and compile their schemas. A second call does nothing."""
        if self._loaded is None:
            self._loaded = _load()

    def request(self, method: str, revision: str) -> RequestShape | None:
        """Return the shape of a request of a method in `DEEP`; None if the revision does not have it.
        Raises NotLoadedError."""
        return self._require().requests.get((method, revision))

    @property
    def responses(self) -> Shape:
        """The shape of `inputResponses`. Raises NotLoadedError."""
        return self._require().responses

    def _require(self) -> _Loaded:
        if self._loaded is None:
            raise NotLoadedError
        return self._loaded


wire_shapes: Final = WireShapes()


def _load() -> _Loaded:
    models = import_module("mcp_types.methods").CLIENT_REQUESTS
    requests = {
        key: RequestShape(models[key], Shape(models[key])) for key in models if key[0] in DEEP
    }
    # The type of all input responses, which has no public name of its own.
    call = models["tools/call", REVISION].model_fields["params"].annotation
    responses = call.model_fields["input_responses"].annotation
    return _Loaded(requests, Shape(TypeAdapter(responses)))


def _with_whole_integers(node: Any) -> Any:
    """Rewrite a schema so that integers have no fraction, except where any number is allowed."""
    if isinstance(node, list):
        numbers = {"type": "number"} in node
        return [
            member if numbers and member == {"type": "integer"} else _with_whole_integers(member)
            for member in node
        ]
    if not isinstance(node, Mapping):
        return node
    schema = {
        name: True if name == _ANYTHING else _with_whole_integers(value)
        for name, value in node.items()
    }
    return {**schema, _WHOLE: True} if node.get("type") == "integer" else schema
