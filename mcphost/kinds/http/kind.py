"""The kind `http`: tools that send a request to an HTTP API, written as data in the console."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson
from mcp_types import ToolAnnotations
from pydantic import BaseModel, ValidationError

from mcphost.kinds.http.config_checks import check_config, inspect_config
from mcphost.kinds.http.configs import HttpToolConfig
from mcphost.kinds.http.program import MAPPING_SECONDS, Asked, HttpProgram, HttpTool, Search
from mcphost.kinds.http.requests import RequestTemplate
from mcphost.kinds.http.templates import SECRETS
from mcphost.kinds.kind import Compiled, Kind, Sending
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.sdk import ToolDefinition

MAX_COMPILED = 4096


class HttpKind(Kind):
    """Implements `kinds.kind.Kind`. `search` evaluates JMESPath expressions."""

    name = "http"
    label = "HTTP request"
    primitive_types: Collection[PrimitiveType] = (PrimitiveType.TOOL,)

    def __init__(self, search: Search) -> None:
        self._search = search
        self._compiled = lru_cache(MAX_COMPILED)(self._compile)

    def config_model(self, primitive_type: PrimitiveType) -> type[BaseModel]:
        """Return the model: questions, a request, and what becomes of the response."""
        return HttpToolConfig

    def compile(
        self, config: Mapping[str, Any], primitive_type: PrimitiveType = PrimitiveType.TOOL
    ) -> Compiled:
        """Compile a configuration. Raises KindError with problems by field, such as
        `request.url`."""
        return self._compiled(orjson.dumps(config))

    def inspect(self, config: Mapping[str, Any], tenant: str) -> Mapping[str, list[str]]:
        """Return more problems of a configuration that is to be saved, by field.

        Names of arguments, answers and functions that do not exist: an older version may have been
        published with such.
        """
        return inspect_config(config)

    def sendings_of(self, config: Mapping[str, Any]) -> Sequence[Sending]:
        """Return the request, and each secret in it; nothing if the configuration cannot be read."""
        try:
            request = HttpToolConfig.model_validate(config).request
        except ValidationError:
            return ()
        parts = RequestTemplate(request).parts
        secrets = [
            Sending(f"request.{part.field}", request.url, placeholder.steps[0], part.secret_place)
            for part in parts
            for placeholder in part.placeholders
            if placeholder.root == SECRETS
        ]
        return (Sending("request.url", request.url), *secrets)

    def _compile(self, written: bytes) -> Compiled:
        config, schemas, request = check_config(orjson.loads(written))
        waits = bool(config.response.select) and not config.request.is_safe
        seconds = config.request.timeout_seconds * 2 + 5 + (MAPPING_SECONDS if waits else 0)
        definition = ToolDefinition(
            annotations=ToolAnnotations.model_validate(dict(config.annotations)),
            time_limit=seconds,
            tasks=config.tasks,
        )
        tool = HttpTool(
            definition=definition,
            parameters=schemas.parameters,
            returns=schemas.returns,
            questions=tuple(map(Asked.of, config.questions)),
            request=request,
            sending=config.request,
            response=config.response,
            search=self._search,
        )
        return Compiled(
            name="",
            input_schema=schemas.parameters.schema,
            output_schema=schemas.returns.schema,
            program=HttpProgram(tool),
            annotations=config.annotations,
            # The order of arguments makes no other version.
            author_version=hashlib.sha256(
                orjson.dumps(orjson.loads(written), option=orjson.OPT_SORT_KEYS)
            ).hexdigest(),
            time_limit=seconds,
            task_support=config.tasks,
        )
