"""Tests of the words for what is wrong with a configuration: those of people, not of pydantic."""

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from mcphost.kinds.config_problems import problem_sentence
from mcphost.kinds.http.configs import HttpToolConfig
from mcphost.kinds.http.openapi_places import place_in_document
from mcphost.kinds.script.kind import ScriptConfig
from mcphost.kinds.text.configs import PromptConfig, ResourceConfig, TemplateConfig

FIELD = {"name": "a", "value": "b", "style": "form", "explode": True}
HTTP = {
    "input_schema": {},
    "questions": [{"key": "k", "message": "m", "requested_schema": {}, "when": {}}],
    "request": {
        "method": "POST",
        "url": "https://api.example.com/{arguments.a}",
        "path": [{"name": "a", "value": "{arguments.a}", "style": "label", "explode": False}],
        "query": [FIELD],
        "headers": [{"name": "X-A", "value": "b", "style": "json", "explode": False}],
        "body": {"type": "form", "fields": [FIELD], "more": ""},
        "timeout_seconds": 1,
        "retries": 1,
        "repeatable": True,
    },
    "response": {"select": "", "content": "auto", "errors": ["404"], "most_bytes": 1},
    "tasks": "never",
}
MULTIPART = deepcopy(HTTP)
MULTIPART["request"]["body"] = {  # type: ignore[index]
    "type": "multipart",
    "fields": [{**FIELD, "media_type": "text/csv"}],
    "files": [{"name": "f", "content": "{arguments.f}", "file_name": "", "media_type": ""}],
}
TEXT = {"type": "text", "text": "a"}
MODELS: list[tuple[type[BaseModel], dict[str, Any]]] = [
    (HttpToolConfig, HTTP),
    (HttpToolConfig, MULTIPART),
    (ScriptConfig, {"code": "", "tasks": "never"}),
    (
        PromptConfig,
        {
            "arguments": [{"name": "a", "description": "d", "required": True}],
            "messages": [{"role": "user", "content": TEXT}],
        },
    ),
    (ResourceConfig, {"uri": "a:b", "mime_type": "text/plain", "text": "a"}),
    (TemplateConfig, {"uri_template": "a:{b}", "mime_type": "text/plain", "text": "a"}),
]
WRONG: list[Any] = [None, "", "\0", "x" * 100_000, -1, 10**9, 0.5, [], [1] * 300, {}, {"a": 1}]
OF_PYDANTIC = re.compile(r"should|Input|permitted|Field required|\{[a-z_]+\}")


def changed(config: Any) -> Iterator[Any]:
    """Yield the configuration with each of its values wrong, missing, and beside one that is none."""
    if isinstance(config, dict):
        yield {**config, "no_field": 1}
        for name, value in config.items():
            yield {key: part for key, part in config.items() if key != name}
            for other in (*WRONG, *changed(value)):
                yield {**config, name: other}
    elif isinstance(config, list):
        for number, value in enumerate(config):
            for other in (*WRONG, *changed(value)):
                yield [*config[:number], other, *config[number + 1 :]]


@pytest.mark.parametrize(("model", "config"), MODELS)
def test_a_problem_of_a_configuration_is_a_sentence_for_people(
    model: type[BaseModel], config: dict[str, Any]
) -> None:
    types = set()
    for wrong in changed(config):
        try:
            model.model_validate(wrong)
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_input=False):
                sentence = problem_sentence(detail)  # type: ignore[arg-type]
                written_here = detail["type"] == "value_error"
                assert written_here or not OF_PYDANTIC.search(sentence), (detail, sentence)
                types.add(detail["type"])
    assert len(types) > 2


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("request.headers.0.value", "the header 'X-A'"),
        ("request.query.0", "the query parameter 'a'"),
        ("request.query.9.name", "the query parameter"),
        ("request.body.form.fields.0.value", "the body 'a'"),
        ("request.url", "the address of its server with its path"),
        ("input_schema", "the schema of its arguments"),
        ("questions.0.key", ""),
        ("", ""),
    ],
)
def test_a_part_of_a_configuration_has_a_name_in_words_of_openapi(path: str, place: str) -> None:
    assert place_in_document(path.split("."), HTTP) == place
