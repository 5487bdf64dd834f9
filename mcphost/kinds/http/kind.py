"""The kind `http`: tools that send a request to an HTTP API, written as data in the console."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import jmespath
import orjson
from jmespath.functions import Functions
from mcp_types import ToolAnnotations
from pydantic import BaseModel, ValidationError

from mcphost.kinds.config_problems import problem_sentence
from mcphost.kinds.functions.program import Parameters
from mcphost.kinds.functions.returns import ANYTHING, Returns
from mcphost.kinds.functions.schemas import SignatureError, input_validator, output_validator
from mcphost.kinds.http.configs import HttpToolConfig, condition
from mcphost.kinds.http.numbers import IntegerArguments
from mcphost.kinds.http.program import MAPPING_SECONDS, Asked, HttpProgram, HttpTool, Search
from mcphost.kinds.http.requests import RequestTemplate
from mcphost.kinds.http.templates import (
    ANSWERS,
    ARGUMENTS,
    SECRETS,
    Placeholder,
    TextTemplate,
    names,
)
from mcphost.kinds.kind import Compiled, Kind, KindError, Sending
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.runtime.questions import QuestionRefusedError
from mcphost.sdk import ToolDefinition
from mcphost.sdk.questions import form

MAX_COMPILED = 4096
CONTEXT = "ctx"
ARGUMENTS_PARAMETER = "arguments"


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
        """Return more problems of a configuration that is to be saved, by field; none for one that
        `compile` refuses.

        Names of arguments, answers and functions that do not exist: an older version may have been
        published with such.
        """
        try:
            self.compile(config)
        except KindError:
            return {}
        read = _validate_config(config)
        problems = dict(_names_in_questions(read))
        if sentences := _unknown_functions(read.response.select):
            problems["response.select"] = sentences
        return problems

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
        config = _validate_config(orjson.loads(written))
        schemas = _Schemas(config)
        _check_questions(config)
        request = RequestTemplate(config.request)
        _check_names(config, request)
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


class _Schemas:
    """The compiled schemas of a configuration. Raises KindError."""

    def __init__(self, config: HttpToolConfig) -> None:
        problems: dict[str, list[str]] = {}
        try:
            validator = input_validator(config.input_schema)
            integers = IntegerArguments(config.input_schema)
            self.parameters = Parameters(
                validator, lambda plain: {ARGUMENTS_PARAMETER: integers.read(plain)}, (CONTEXT,)
            )
        except SignatureError as error:
            problems["input_schema"] = [_sentence(error)]
        try:
            schema = config.output_schema
            self.returns = Returns(ANYTHING, None if schema is None else output_validator(schema))
        except SignatureError as error:
            problems["output_schema"] = [_sentence(error)]
        if problems:
            raise KindError(problems)


def _validate_config(config: Mapping[str, Any]) -> HttpToolConfig:
    try:
        return HttpToolConfig.model_validate(config)
    except ValidationError as error:
        problems: dict[str, list[str]] = {}
        for detail in error.errors(include_url=False, include_input=False):
            problems.setdefault(_path(detail["loc"]), []).append(problem_sentence(detail))
        raise KindError(problems) from None


def _path(location: Sequence[int | str]) -> str:
    """Return the path of a field, without pydantic's step for the type of the body."""
    steps = list(map(str, location))
    if steps[:2] == ["request", "body"]:
        del steps[2:3]
    return ".".join(steps)


def _check_questions(config: HttpToolConfig) -> None:
    """Refuse questions that could not be asked. Raises KindError."""
    problems: dict[str, list[str]] = {}
    keys: set[str] = set()
    for number, question in enumerate(config.questions):
        at = f"questions.{number}"
        if question.key in keys:
            problems[f"{at}.key"] = [f"There are two questions with the key {question.key!r}."]
        try:
            form(question.key, question.message, question.requested_schema)
        except QuestionRefusedError as error:
            problems[f"{at}.requested_schema"] = [_sentence(error)]
        used = {
            "when": list(map(condition, question.when)),
            "message": TextTemplate(question.message).placeholders,
        }
        for field, placeholders in used.items():
            late = [key for key in names(placeholders, ANSWERS) if key not in keys]
            if late:
                problems[f"{at}.{field}"] = [f"There is no earlier question {late[0]!r}."]
        keys.add(question.key)
    if problems:
        raise KindError(problems)


def _check_names(config: HttpToolConfig, request: RequestTemplate) -> None:
    """Refuse placeholders for arguments and answers that cannot exist. Raises KindError."""
    arguments = _argument_names(config.input_schema)
    fields = {
        question.key: question.requested_schema.get("properties", {})
        for question in config.questions
    }
    problems: dict[str, list[str]] = {}
    for part in request.parts:
        if sentences := _unknown(part.placeholders, arguments, fields):
            problems[f"request.{part.field}"] = sentences
    if problems:
        raise KindError(problems)


def _unknown(
    placeholders: Sequence[Placeholder],
    arguments: Collection[str] | None,
    fields: Mapping[str, Any],
) -> list[str]:
    """Return what is wrong with placeholders for arguments, and for fields of answers by question."""
    sentences = []
    for placeholder in placeholders:
        if (
            placeholder.root == ARGUMENTS
            and arguments is not None
            and placeholder.steps[0] not in arguments
        ):
            sentences.append(f"There is no argument {placeholder.steps[0]!r} ({{{placeholder}}}).")
        elif placeholder.root == ANSWERS and not _has_field(fields, placeholder):
            sentences.append(
                f"There is no answer {{{placeholder}}}: name a question and one of its fields."
            )
    return list(dict.fromkeys(sentences))


def _names_in_questions(config: HttpToolConfig) -> Iterator[tuple[str, list[str]]]:
    """Yield the fields of questions that name what no call has, and what is wrong with each."""
    arguments = _argument_names(config.input_schema)
    fields: dict[str, Any] = {}
    for number, question in enumerate(config.questions):
        used = {
            "when": list(map(condition, question.when)),
            "message": TextTemplate(question.message).placeholders,
        }
        for field, placeholders in used.items():
            if sentences := _unknown(placeholders, arguments, fields):
                yield f"questions.{number}.{field}", sentences
        fields[question.key] = question.requested_schema.get("properties", {})


def _unknown_functions(expression: str) -> list[str]:
    parsed = jmespath.compile(expression).parsed if expression else {}
    unknown = (name for name in _functions(parsed) if name not in Functions.FUNCTION_TABLE)
    return [f"JMESPath has no function {name}()." for name in dict.fromkeys(unknown)]


def _functions(node: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the functions that a parsed expression calls."""
    if node.get("type") == "function_expression":
        yield node["value"]
    for child in node.get("children", ()):
        if isinstance(child, Mapping):
            yield from _functions(child)


def _argument_names(schema: Mapping[str, Any]) -> Collection[str] | None:
    """Return the names of the arguments; None if the schema does not list them in one place."""
    composed = ("$ref", "allOf", "anyOf", "oneOf", "patternProperties")
    return None if any(keyword in schema for keyword in composed) else schema.get("properties", {})


def _has_field(fields: Mapping[str, Any], placeholder: Placeholder) -> bool:
    key, *rest = placeholder.steps
    return key in fields and (not rest or rest[0] in fields[key])


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."
