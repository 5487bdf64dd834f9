"""What is wrong with the configuration of an HTTP tool: everything at once, so that its author corrects it once.

Of a configuration that cannot be read, what is wrong is replaced by something harmless, and the rest is checked.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, NamedTuple

import jmespath
from jmespath.functions import Functions
from pydantic import ValidationError

from mcphost.kinds.config_problems import problem_sentence
from mcphost.kinds.functions.program import Parameters
from mcphost.kinds.functions.returns import ANYTHING, Returns
from mcphost.kinds.functions.schemas import SignatureError, input_validator, output_validator
from mcphost.kinds.http.configs import HttpToolConfig, QuestionConfig, condition
from mcphost.kinds.http.numbers import IntegerArguments
from mcphost.kinds.http.requests import RequestTemplate
from mcphost.kinds.http.templates import ANSWERS, ARGUMENTS, Placeholder, TextTemplate, names
from mcphost.kinds.kind import KindError
from mcphost.runtime.questions import QuestionRefusedError
from mcphost.sdk.questions import form

CONTEXT: Final = "ctx"
ARGUMENTS_PARAMETER: Final = "arguments"
MAX_REPAIRS: Final = 4
"""How often a configuration is repaired: some rules apply only once all fields can be read."""
HARMLESS: Final[Mapping[str, Any]] = {
    "url": "https://example.com/",
    "name": "x",
    "key": "x",
    "value": "",
    "message": "x",
    "text": "",
    "content": "{arguments.x}",
    "requested_schema": {"type": "object", "properties": {"x": {"type": "string"}}},
    "request": {"url": "https://example.com/"},
}
"""Values of required fields, in place of those that cannot be read."""

_PATTERNS: Final[Mapping[str, str]] = {
    "key": "A key has 1 to 64 of A-Z, a-z, 0-9, dots, hyphens and underscores.",
    "media_type": "Write a media type, such as application/json or text/csv; charset=utf-8.",
}
"""Sentences for fields whose text must match a pattern."""

Problems = dict[str, list[str]]
"""Sentences by the path of a field, such as `request.url`."""


class CompiledToolSchemas:
    """The compiled schemas of a configuration; `problems` are those of schemas that are not legal."""

    def __init__(self, config: HttpToolConfig) -> None:
        self.problems: Problems = {}
        try:
            validator = input_validator(config.input_schema)
            integers = IntegerArguments(config.input_schema)
            self.parameters = Parameters(
                validator, lambda plain: {ARGUMENTS_PARAMETER: integers.read(plain)}, (CONTEXT,)
            )
        except SignatureError as error:
            self.problems["input_schema"] = [_sentence(error)]
        try:
            schema = config.output_schema
            self.returns = Returns(ANYTHING, None if schema is None else output_validator(schema))
        except SignatureError as error:
            self.problems["output_schema"] = [_sentence(error)]


class CheckedConfig(NamedTuple):
    """A configuration without problems, with what was compiled of it."""

    config: HttpToolConfig
    schemas: CompiledToolSchemas
    request: RequestTemplate


def check_config(written: Mapping[str, Any]) -> CheckedConfig:
    """Read a configuration. Raises KindError with all its problems by field."""
    config, problems = _readable(written)
    if config is None:
        raise KindError(problems)
    schemas, request = CompiledToolSchemas(config), RequestTemplate(config.request)
    _merge(problems, schemas.problems.items())
    _merge(problems, _question_problems(config))
    _merge(problems, _request_problems(config, request, _Names.of(config, problems)))
    if problems:
        raise KindError(problems)
    return CheckedConfig(config, schemas, request)


def inspect_config(written: Mapping[str, Any]) -> Problems:
    """Return the problems that keep a configuration from being saved, but not from being served."""
    config, problems = _readable(written)
    if config is None:
        return {}
    _merge(problems, CompiledToolSchemas(config).problems.items())
    extra: Problems = {}
    _merge(extra, _names_in_questions(config, _Names.of(config, problems)))
    if sentences := _unknown_functions(config.response.select):
        extra["response.select"] = sentences
    return {path: sentences for path, sentences in extra.items() if not _covered(path, problems)}


def unused_arguments(written: Mapping[str, Any]) -> list[str]:
    """Return the arguments that are neither in the request nor in a question; none if it is not known
    which arguments there are."""
    config, problems = _readable(written)
    if config is None:
        return []
    request = RequestTemplate(config.request)
    placeholders = [placeholder for part in request.parts for placeholder in part.placeholders]
    for question in config.questions:
        placeholders += [used for _, in_field in _used_in(question) for used in in_field]
    listed = _Names.of(config, problems).arguments or ()
    return [name for name in listed if name not in names(placeholders, ARGUMENTS)]


def _readable(written: Mapping[str, Any]) -> tuple[HttpToolConfig | None, Problems]:
    """Return a configuration with its unreadable parts replaced, and their problems.

    None if it cannot be repaired.
    """
    config, problems = deepcopy(dict(written)), Problems()
    for _ in range(MAX_REPAIRS):
        try:
            return HttpToolConfig.model_validate(config), problems
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False)
        for detail in details:
            steps = _steps(detail["loc"])
            _merge(problems, [(".".join(steps), [_words_for(detail, steps)])])
            if not _replaced(config, steps):
                return None, problems
    return None, problems


def _words_for(detail: Mapping[str, Any], steps: Sequence[str]) -> str:
    """Return the sentence for an error of pydantic."""
    kind = detail["type"]
    if kind == "string_pattern_mismatch" and steps and steps[-1] in _PATTERNS:
        return _PATTERNS[steps[-1]]
    if kind == "string_too_short" and detail["ctx"]["min_length"] == 1:
        return "It is required."
    return problem_sentence(detail)


def _steps(location: Sequence[int | str]) -> list[str]:
    """Return the path of a field, without pydantic's step for the type of the body."""
    steps = list(map(str, location))
    if steps[:2] == ["request", "body"]:
        del steps[2:3]
    return steps


def _replaced(config: dict[str, Any], steps: list[str]) -> bool:
    """Replace what is at a path by something harmless; False if that is impossible."""
    if steps == ["request"] and isinstance(config.get("request"), dict):
        steps = ["request", "body"]  # what does not fit the method
    *parents, last = steps or [""]
    node: Any = config
    for step in parents:
        node = _child(node, step)
    if isinstance(node, dict):
        node.pop(last, None)
        if last in HARMLESS:
            node[last] = deepcopy(HARMLESS[last])
        return True
    if not isinstance(node, list) or not last.isdecimal() or int(last) >= len(node):
        return False
    if isinstance(node[int(last)], dict):
        node[int(last)].pop("when", None)  # the only rule of an element as a whole
    else:
        node[int(last)] = "4xx"  # the only list of texts
    return True


def _child(node: Any, step: str) -> Any:
    if isinstance(node, dict):
        return node.get(step)
    if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
        return node[int(step)]
    return None


def _merge(problems: Problems, more: Any) -> None:
    """Add problems, except those that follow from others at the same place."""
    for path, sentences in tuple(more):
        if not _covered(path, problems):
            problems[path] = sentences


def _covered(path: str, problems: Collection[str]) -> bool:
    """Whether there is a problem at a path, or above it: but "request" only says what does not fit the
    method."""
    return any(path == at or (at != "request" and path.startswith(f"{at}.")) for at in problems)


class _Names(NamedTuple):
    """The arguments of a call, and the fields of its answers by question. None: they are not known."""

    arguments: Collection[str] | None
    answers: Mapping[str, Any] | None

    @classmethod
    def of(cls, config: HttpToolConfig, problems: Collection[str]) -> "_Names":
        """Return the names of a configuration as far as they are not among what is wrong with it."""
        roots = {path.partition(".")[0] for path in problems}
        answers = {question.key: _fields_of(question) for question in config.questions}
        return cls(
            None if "input_schema" in roots else _argument_names(config.input_schema),
            None if "questions" in roots else answers,
        )


def _fields_of(question: QuestionConfig) -> Any:
    return question.requested_schema.get("properties", {})


def _question_problems(config: HttpToolConfig) -> Iterator[tuple[str, list[str]]]:
    """Yield the problems of questions that could not be asked."""
    keys: set[str] = set()
    for number, question in enumerate(config.questions):
        at = f"questions.{number}"
        if question.key in keys:
            yield f"{at}.key", [f"There are two questions with the key {question.key!r}."]
        try:
            form(question.key, question.message, question.requested_schema)
        except QuestionRefusedError as error:
            yield f"{at}.requested_schema", [_sentence(error)]
        for field, placeholders in _used_in(question):
            late = [key for key in names(placeholders, ANSWERS) if key not in keys]
            if late:
                yield f"{at}.{field}", [f"There is no earlier question {late[0]!r}."]
        keys.add(question.key)


def _used_in(question: QuestionConfig) -> tuple[tuple[str, Sequence[Placeholder]], ...]:
    return (
        ("when", list(map(condition, question.when))),
        ("message", TextTemplate(question.message).placeholders),
    )


def _request_problems(
    config: HttpToolConfig, request: RequestTemplate, valid: _Names
) -> Iterator[tuple[str, list[str]]]:
    """Yield the parts of a request with placeholders for arguments and answers that cannot exist."""
    for part in request.parts:
        if sentences := _unknown(part.placeholders, valid):
            yield f"request.{part.field}", sentences


def _unknown(placeholders: Sequence[Placeholder], valid: _Names) -> list[str]:
    """Return what is wrong with placeholders for arguments, and for fields of answers by question."""
    sentences = []
    for placeholder in placeholders:
        if (
            placeholder.root == ARGUMENTS
            and valid.arguments is not None
            and placeholder.steps[0] not in valid.arguments
        ):
            sentences.append(f"There is no argument {placeholder.steps[0]!r} ({{{placeholder}}}).")
        elif (
            placeholder.root == ANSWERS
            and valid.answers is not None
            and not _has_field(valid.answers, placeholder)
        ):
            sentences.append(
                f"There is no answer {{{placeholder}}}: name a question and one of its fields."
            )
    return list(dict.fromkeys(sentences))


def _names_in_questions(config: HttpToolConfig, valid: _Names) -> Iterator[tuple[str, list[str]]]:
    """Yield the fields of questions that name what no call has, and what is wrong with each."""
    earlier: dict[str, Any] = {}
    for number, question in enumerate(config.questions):
        so_far = _Names(valid.arguments, None if valid.answers is None else earlier)
        for field, placeholders in _used_in(question):
            if sentences := _unknown(placeholders, so_far):
                yield f"questions.{number}.{field}", sentences
        earlier[question.key] = _fields_of(question)


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
