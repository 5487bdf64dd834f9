"""Requests of imported operations, as they would be sent. Nothing is sent."""

from collections.abc import Mapping
from typing import Any, Final

from mcphost.egress.addresses import AllowedHost, Target
from mcphost.egress.messages import build
from mcphost.egress.secret_values import Filler, Secret, SecretPlace
from mcphost.kinds.functions.program import InvalidArgumentsError
from mcphost.kinds.http.configs import HttpToolConfig
from mcphost.kinds.http.kind import HttpKind
from mcphost.kinds.http.openapi import Operation, operations
from mcphost.kinds.http.openapi_servers import ServerAddress
from mcphost.kinds.http.requests import RequestTemplate
from mcphost.sdk import ToolError
from tests.kinds.http.http_tool_calls import no_search
from tests.openapi_corpus.sample_arguments import samples
from tests.openapi_corpus.validation import LOCATION, WireRequest

CHUNK: Final = 400
"""How many operations are converted in one reading, as the product does."""
_HOSTS: Final = (AllowedHost.parse("*"), AllowedHost.parse("http://*"))
_SECRET: Final = Secret("YTpwYXNzd29yZA==", _HOSTS, frozenset(SecretPlace))


class _Secrets(dict[str, Secret]):
    def __missing__(self, name: str) -> Secret:
        return _SECRET


def imported(document: Mapping[str, Any]) -> list[Operation]:
    """Return all operations, read in portions."""
    address = ServerAddress(location=LOCATION)
    sources = [o.source for o in operations(document, address, is_selected=lambda source: False)]
    converted: list[Operation] = []
    for start in range(0, len(sources), CHUNK):
        chunk = frozenset(sources[start : start + CHUNK])
        found = operations(document, address, is_selected=chunk.__contains__)
        converted += [operation for operation in found if operation.source in chunk]
    return converted


def sent(operation: Operation) -> WireRequest | str:
    """Return the request of an operation, or why there is none."""
    assert operation.config is not None
    schema = HttpKind(no_search).compile(operation.config).input_schema
    reason = "no arguments made"
    for arguments in samples(schema):
        try:
            return request_for(operation, arguments)
        except InvalidArgumentsError as error:
            reason = f"no arguments made: {str(error)[:200]}"
        except ToolError as error:
            reason = f"refused at the call: {error}"
    return reason


def request_for(operation: Operation, arguments: Mapping[str, Any]) -> WireRequest:
    """Return the request of a call. Raises InvalidArgumentsError, ToolError."""
    assert operation.config is not None, operation.problem
    compiled = HttpKind(no_search).compile(operation.config)
    parameters = compiled.program._tool.parameters  # type: ignore[attr-defined]
    template = RequestTemplate(HttpToolConfig.model_validate(operation.config).request)
    request = template.fill({**parameters.bind(arguments), "answers": {}}, "key-1")
    target = Target.parse(request.url)
    filled = build(request, target, Filler(_Secrets(), target), 1 << 24, compressed=False)
    headers = {name.decode(): value.decode("latin-1") for name, value in filled.headers}
    return WireRequest(filled.method, target.origin, filled.target.path, headers, filled.body)
