"""Tests of functions as prompts, resources and templates."""

import asyncio
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, SecretStr

from mcphost.kinds.functions.schemas import SignatureError
from mcphost.kinds.kind import Compiled
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.python.compiling import compile_function
from mcphost.kinds.python.kind import PythonKind
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Complete, Failed, FailureKind, Outcome
from mcphost.sdk import (
    Annotations,
    BlobResource,
    Context,
    Message,
    TextResource,
    ToolError,
    complete,
    current,
    prompt,
    resource,
)
from tests.kinds.rounds import a_call, ports, seen


def compiled(function: Callable[..., Any]) -> Compiled:
    return compile_function(seen(function))


async def outcome(function: Callable[..., Any], target: str = "x", **arguments: Any) -> Outcome:
    call = a_call(arguments)._replace(target=target)
    return await compiled(function).program.advance(call, EMPTY, ports())


async def result(function: Callable[..., Any], target: str = "x", **arguments: Any) -> Any:
    done = await outcome(function, target, **arguments)
    assert isinstance(done, Complete), done
    return done.result


async def suggested(function: Callable[..., Any], name: str, typed: str, **filled: str) -> Any:
    completer = compiled(function).completer
    asked = {"argument": {"name": name, "value": typed}, "context": {"arguments": filled}}
    done = await completer.advance(a_call(asked), EMPTY, ports())
    assert isinstance(done, Complete), done
    return done.result["completion"]["values"]


class Tone(Enum):
    WARM = "warm"
    COOL = "cool"


@prompt(title="Greeting", version="2")
async def greeting(
    who: Annotated[str, Field(description="Whom.", title="Who")],
    times: int = 1,
    tone: Tone = Tone.WARM,
    loud: bool = False,
) -> list[Message | str]:
    """Greet somebody."""
    text = f"{tone.value}: {who}" * times
    return [text.upper() if loud else text, Message("Hello", role="assistant")]


async def test_a_prompt_converts_its_texts_to_the_annotated_types() -> None:
    done = await result(greeting, who="Ada", times="2", tone="cool", loud="true")
    assert done["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "COOL: ADACOOL: ADA"}},
        {"role": "assistant", "content": {"type": "text", "text": "Hello"}},
    ]


@pytest.mark.parametrize(
    ("name", "typed", "values"),
    [("tone", "c", ["cool"]), ("loud", "", ["true", "false"]), ("who", "A", [])],
)
async def test_arguments_with_few_possible_values_are_completed(
    name: str, typed: str, values: list[str]
) -> None:
    assert await suggested(greeting, name, typed) == values


async def test_a_wrong_argument_is_refused_by_name() -> None:
    done = await outcome(greeting, who="Ada", times="many")
    assert isinstance(done, Failed)
    assert done.error.kind is FailureKind.INVALID_ARGUMENTS
    assert "times" in done.error.message


@prompt
async def broken(kind: Literal["refused", "crash", "wrong", "slow"]) -> Any:
    """Fail."""
    match kind:
        case "refused":
            raise ToolError("Not today.")
        case "crash":
            raise RuntimeError("secret")
        case "slow":
            await asyncio.sleep(60)
    return 7


@pytest.mark.parametrize(
    ("kind", "failure", "said"),
    [
        ("refused", FailureKind.TOOL_ERROR, "Not today."),
        ("crash", FailureKind.CRASHED, "The prompt failed. The error has been logged."),
        ("wrong", FailureKind.INVALID_RESULT, "not valid"),
    ],
)
async def test_a_prompt_fails_as_a_failure(kind: str, failure: FailureKind, said: str) -> None:
    done = await outcome(broken, kind=kind)
    assert isinstance(done, Failed)
    assert done.error.kind is failure
    assert said in done.error.message
    assert "secret" not in done.error.message


@prompt
def described(day: str, hour: int = 1) -> str:
    """Ask for a plan.

    It has several parts.

    Args:
        day: Of the week.
        hour: From midnight.
    """
    return f"{day} {hour}"


@resource("plans://{day}")
def plan(day: str) -> str:
    """The plan.

    It has several parts.

    Args:
        day: Of the week.
    """
    return day


def test_a_docstring_describes_a_prompt_its_arguments_and_a_template() -> None:
    offered = compiled(described)
    assert offered.description == "Ask for a plan.\n\nIt has several parts."
    texts = [(each.name, each.description) for each in offered.arguments]
    assert texts == [("day", "Of the week."), ("hour", "From midnight.")]
    # Variables of a template are not described anywhere else.
    whole = "The plan.\n\nIt has several parts.\n\nArgs:\n    day: Of the week."
    assert compiled(plan).description == whole


class Card(BaseModel):
    """Somebody."""

    user: str


@resource("users://{user}/card{?lang}", title="Card", annotations=Annotations(priority=0.5))
async def card(ctx: Context, user: str, lang: str = "en") -> Card:
    """A user's card."""
    assert current() is ctx
    return Card(user=f"{user} {lang}")


@complete(card, "user")
async def users(typed: str, lang: str = "?") -> list[str]:
    return [f"{typed}{lang}", "Ada"]


@complete(card, "lang")
def languages(typed: str, ctx: Context) -> list[str]:
    return [ctx.client, typed]


async def test_a_template_reads_the_variables_of_its_uri() -> None:
    done = await result(card, "users://ada/card?lang=de", user="ada", lang="de")
    assert done["contents"] == [
        {
            "uri": "users://ada/card?lang=de",
            "mimeType": "application/json",
            "text": '{"user":"ada de"}',
        }
    ]
    said = compiled(card)
    assert (said.primitive_type, said.uri) == (PrimitiveType.TEMPLATE, "users://{user}/card{?lang}")
    assert said.annotations == {"priority": 0.5}


async def test_completers_receive_the_typed_value_and_the_other_arguments() -> None:
    assert await suggested(card, "user", "B") == ["B?", "Ada"]
    assert await suggested(card, "user", "B", lang="de", other="x") == ["Bde", "Ada"]
    assert await suggested(card, "lang", "e") == ["Inspector", "e"]


@resource("docs://readme")
def readme() -> str:
    """What this is."""
    return "# Hello"


@resource("docs://logo", mime_type="image/png")
async def logo() -> bytes:
    """A picture."""
    return b"\x89PNG\r\n\x1a\n"


@resource("docs://all")
async def everything() -> list[TextResource | BlobResource]:
    """Both."""
    return [
        TextResource(uri="docs://a", text="a", mime_type="text/plain"),
        BlobResource(uri="docs://b", blob="AAAA"),
    ]


@pytest.mark.parametrize(
    ("function", "contents"),
    [
        (readme, [{"uri": "x", "mimeType": "text/plain", "text": "# Hello"}]),
        (logo, [{"uri": "x", "mimeType": "image/png", "blob": "iVBORw0KGgo="}]),
        (
            everything,
            [
                {"uri": "docs://a", "mimeType": "text/plain", "text": "a"},
                {"uri": "docs://b", "blob": "AAAA"},
            ],
        ),
    ],
)
async def test_a_resource_is_text_bytes_or_contents(function: Any, contents: Any) -> None:
    assert (await result(function))["contents"] == contents
    assert compiled(function).primitive_type is PrimitiveType.RESOURCE


BROKEN = {
    "has no variables": '@resource("docs://a")\ndef f(a: str) -> str: ...',
    "differ: 'b'": '@resource("docs://{a}")\ndef f(a: str, b: str) -> str: ...',
    "a default is required": '@resource("docs://x{?a}")\ndef f(a: str) -> str: ...',
    "the template": '@resource("docs://{a")\ndef f(a: str) -> str: ...',
    "there is no argument 'b'": (
        '@prompt\ndef f(a: str) -> str: ...\n@complete(f, "b")\ndef g(typed): ...'
    ),
    "needs a parameter for the typed text": '@prompt\ndef f(a: str) -> str: ...\n@complete(f, "a")\ndef g(): ...',
    "called without 'b'": '@prompt\ndef f(a: str) -> str: ...\n@complete(f, "a")\ndef g(t, b): ...',
    "marked @prompt": 'def f(): ...\n@complete(f, "a")\ndef g(t): ...',
}


@pytest.mark.parametrize("said", BROKEN)
def test_an_invalid_offer_is_reported_with_the_reason(said: str, tmp_path: Path) -> None:
    imports = "from mcphost.sdk import complete, prompt, resource\n"
    (tmp_path / "some.py").write_text(imports + BROKEN[said])
    kind = PythonKind()
    kind.configure(tmp_path)
    assert said in " ".join(map(str, kind.check()))
    assert kind.choices() == ()


def test_a_prompt_argument_that_cannot_be_read_from_text_is_refused() -> None:
    @prompt
    def tags(tags: list[str], depth: int, owner: Card | None = None) -> str:
        """Tag."""
        return ""

    with pytest.raises(SignatureError, match="'owner', 'tags' cannot be read from one"):
        seen(tags)


@pytest.mark.parametrize(
    "annotation",
    [
        SecretStr,
        SecretStr | None,
        Annotated[str, Field(json_schema_extra={"writeOnly": True})],
        Annotated[str, Field(json_schema_extra={"format": "password"})],
        Annotated[int | None, Field(json_schema_extra={"writeOnly": True})],
    ],
)
def test_arguments_that_must_not_be_recorded_stay_marked(annotation: Any) -> None:
    def sign_in(word: Any, name: str) -> str:
        """Sign in."""
        return ""

    sign_in.__annotations__["word"] = annotation
    said = compiled(prompt(sign_in)).input_schema["properties"]
    assert said == {"word": {"type": "string", "writeOnly": True}, "name": {"type": "string"}}


@resource("docs://scan", mime_type="image/png")
def scan() -> bytes:
    """No picture."""
    return b"text"


@resource("docs://some")
def some() -> list[Any]:
    """A list of both."""
    return [TextResource(uri="docs://one", text="one"), "two"]


@pytest.mark.parametrize(
    ("function", "detail"),
    [(scan, "does not match its MIME type (image/png)"), (some, "must not mix complete contents")],
)
async def test_an_unreadable_resource_is_an_invalid_result_with_the_reason_in_the_log(
    function, detail
):
    done = await outcome(function)
    assert isinstance(done, Failed)
    assert done.error.kind is FailureKind.INVALID_RESULT
    assert done.error.message == "The resource returned a result that is not valid."
    assert detail in done.error.detail
