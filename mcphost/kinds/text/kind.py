"""The kind `text`: prompts and resources that operators write in the console."""

import hashlib
from base64 import b64decode
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from mcphost.kinds.completing import Choices
from mcphost.kinds.config_problems import problem_sentence
from mcphost.kinds.kind import Compiled, Kind, KindError
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.text.configs import PromptConfig, ResourceConfig, TemplateConfig
from mcphost.kinds.text.placeholders import count_in, names_in
from mcphost.kinds.text.programs import PromptText, ResourceText, TemplateText
from mcphost.protocol.prompts import PromptArgument
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.runtime.program import Program

MAX_PLACEHOLDERS = 10_000
"""In all texts together. Filling them takes a millisecond or two, which blocks the event loop."""

Config = TypeVar("Config", bound=BaseModel)

_MODELS: Mapping[PrimitiveType, type[BaseModel]] = {
    PrimitiveType.PROMPT: PromptConfig,
    PrimitiveType.RESOURCE: ResourceConfig,
    PrimitiveType.TEMPLATE: TemplateConfig,
}
_NO_TYPE = "Content has a type: text, image, audio, resource or resource_link."
_WORDS = {"union_tag_not_found": _NO_TYPE, "union_tag_invalid": _NO_TYPE}
"""Messages for validation errors that pydantic describes in its own terms."""


class TextKind(Kind):
    """Written prompts and resources: they need nothing of the environment, and no function to run."""

    name = "text"
    label = "Text"
    primitive_types: Collection[PrimitiveType] = tuple(_MODELS)

    def config_model(self, primitive_type: PrimitiveType) -> type[BaseModel]:
        """Return the model: messages with placeholders, contents, or a text for a URI template."""
        return _MODELS[primitive_type]

    def compile(
        self, config: Mapping[str, Any], primitive_type: PrimitiveType = PrimitiveType.PROMPT
    ) -> Compiled:
        """Compile a configuration. Raises KindError with problems by field, such as
        `messages.0.content`."""
        match primitive_type:
            case PrimitiveType.PROMPT:
                return _prompt(_validate_config(PromptConfig, config))
            case PrimitiveType.RESOURCE:
                return _resource(_validate_config(ResourceConfig, config))
            case PrimitiveType.TEMPLATE:
                return _template(_validate_config(TemplateConfig, config))
            case PrimitiveType.TOOL:
                raise KindError({"": ["The kind text does not support tools."]})


def _validate_config(model: type[Config], config: Mapping[str, Any]) -> Config:
    try:
        return model.model_validate(config)
    except ValidationError as error:
        problems: dict[str, list[str]] = {}
        for detail in error.errors(include_url=False, include_input=False):
            message = _WORDS.get(detail["type"]) or problem_sentence(detail)
            steps = list(map(str, detail["loc"]))
            if "content" in steps:  # after it pydantic adds the type of the block: not a field
                tag = steps.index("content") + 1
                del steps[tag : tag + 1]
            problems.setdefault(".".join(steps), []).append(message)
        raise KindError(problems) from None


def _prompt(config: PromptConfig) -> Compiled:
    names = [argument.name for argument in config.arguments]
    duplicates = [name for at, name in enumerate(names) if name in names[:at]]
    _refuse(duplicates, "arguments", "There are two arguments called {}.")
    for number, message in enumerate(config.messages):
        for field, text in message.content.texts.items():
            unknown = [name for name in names_in(text) if name not in names]
            _refuse(unknown, f"messages.{number}.content.{field}", "There is no argument {}.")
    texts = [text for message in config.messages for text in message.content.texts.values()]
    _check_placeholders("messages", texts)
    messages = [message.wire for message in config.messages]
    return Compiled(
        name="",
        primitive_type=PrimitiveType.PROMPT,
        input_schema=_texts_schema(
            names, [argument.name for argument in config.arguments if argument.required]
        ),
        program=PromptText(messages),
        author_version=_digest(messages),
        arguments=tuple(
            PromptArgument(argument.name, argument.title, argument.description, argument.required)
            for argument in config.arguments
        ),
        completer=_completer({argument.name: argument.choices for argument in config.arguments}),
    )


def _resource(config: ResourceConfig) -> Compiled:
    if config.text is not None:
        contents, data = {"text": config.text}, config.text.encode()
    else:
        contents, data = {"blob": config.blob or ""}, b64decode(config.blob or "")
    return Compiled(
        name="",
        primitive_type=PrimitiveType.RESOURCE,
        input_schema=_texts_schema((), ()),
        program=ResourceText({"mimeType": config.mime_type, **contents}),
        author_version=_digest(contents),
        uri=config.uri,
        mime_type=config.mime_type,
        size=len(data),
    )


def _template(config: TemplateConfig) -> Compiled:
    template = UriTemplate(config.uri)
    variables = template.variables
    unknown = [name for name in names_in(config.text) if name not in variables]
    _refuse(unknown, "text", "The URI template has no variable {}.")
    _check_placeholders("text", [config.text])
    unknown_choices = [name for name in config.choices if name not in variables]
    _refuse(unknown_choices, "choices", "The URI template has no variable {}.")
    return Compiled(
        name="",
        primitive_type=PrimitiveType.TEMPLATE,
        input_schema=_texts_schema(
            variables, [name for name in variables if name not in template.optional]
        ),
        program=TemplateText({"mimeType": config.mime_type, "text": config.text}),
        author_version=_digest(config.text),
        uri=config.uri,
        mime_type=config.mime_type,
        completer=_completer(config.choices),
    )


def _check_placeholders(field: str, texts: Sequence[str]) -> None:
    if sum(map(count_in, texts)) > MAX_PLACEHOLDERS:
        raise KindError({field: [f"There are more than {MAX_PLACEHOLDERS} placeholders."]})


def _refuse(names: Sequence[str], field: str, sentence: str) -> None:
    problems = [sentence.format(repr(name)) for name in dict.fromkeys(names)]
    if problems:
        raise KindError({field: problems})


def _texts_schema(names: Collection[str], required: Collection[str]) -> dict[str, Any]:
    """Return the arguments as a JSON Schema, which also determines which arguments may be recorded."""
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": list(required),
    }


def _completer(choices: Mapping[str, Sequence[str]]) -> Program | None:
    offered = {name: values for name, values in choices.items() if values}
    return Choices(offered) if offered else None


def _digest(content: Any) -> str:
    return hashlib.sha256(orjson.dumps(content)).hexdigest()


text_kind = TextKind()
"""The instance that the platform uses."""
