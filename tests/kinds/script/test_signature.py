"""The tool that a script declares: its name, its texts and its schemas."""

from typing import Any

import pytest

from mcphost.kinds.script.signature import MAX_CHARACTERS, ScriptProblemError, signature_of

WHOLE = '''
from dataclasses import dataclass
from typing import Literal, Optional

@dataclass
class Item:
    name: str
    tags: list[str]

def _helper(): pass

def order(count: int, note: str | None = None, *, size: Literal["s", "m"] = "m", more: Optional[dict[str, float]] = None) -> Item:
    """Order
    something.

    At once.

    Args:
        count: How many,
            at least one.
        size (str): Its size.

    Returns:
        item: What was ordered.
    """
'''


def test_a_signature_becomes_the_schemas_and_texts_of_the_tool():
    found = signature_of(WHOLE)
    assert (found.name, found.waits) == ("order", False)
    assert found.description == (
        "Order\nsomething.\n\nAt once.\n\nReturns:\n    item: What was ordered."
    )
    assert found.input_schema == {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "description": "How many, at least one."},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "size": {"enum": ["s", "m"], "default": "m", "description": "Its size."},
            "more": {
                "anyOf": [
                    {"type": "object", "additionalProperties": {"type": "number"}},
                    {"type": "null"},
                ],
                "default": None,
            },
        },
        "required": ["count"],
        "additionalProperties": False,
    }
    assert found.output_schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name", "tags"],
    }


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        ("", {}),
        (": Any", {}),
        (": bool", {"type": "boolean"}),
        (": list", {"type": "array"}),
        (": int | str | None", {"anyOf": [{"type": t} for t in ("integer", "string", "null")]}),
        (": Union[int, str]", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (": Literal[1, 'a', True, None]", {"enum": [1, "a", True, None]}),
        (
            ": list[list[int]]",
            {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        ),
    ],
)
def test_an_annotation_becomes_a_schema(annotation: str, schema: dict[str, Any]):
    assert signature_of(f"def f(a{annotation}): pass").input_schema["properties"]["a"] == schema


DOUBLING = "".join(f"class A{i}:\n  a: A{i + 1}\n  b: A{i + 1}\n" for i in range(19)) + (
    "class A19:\n  a: int\ndef f() -> A0: pass"
)
WRONG = {
    "no function": ("x = 1", 1, 1),
    "two functions": ("def a(): pass\n\ndef b(): pass", 3, 1),
    "syntax": ("def f():\n  x = = 1", 2, 7),
    "positional": ("def f(a, /): pass", 1, 7),
    "keywords": ("def f(**rest): pass", 1, 9),
    "unknown type": ("def f(a: Foo): pass", 1, 10),
    "keys of numbers": ("def f(a: dict[int, str]): pass", 1, 10),
    "a dataclass as argument": ("class A:\n  x: int\ndef f(a: A): pass", 3, 10),
    "a default that runs": ("def f(a=len('x')): pass", 1, 9),
    "a default that is no JSON": ("def f(a=(1, 2)): pass", 1, 9),
    "a dataclass of itself": ("class A:\n  x: A\ndef f() -> A: pass", 2, 1),
    "nested too deep": (f"def f(a: {'list[' * 30}int{']' * 30}): pass", 1, 1),
    "a default that is infinite": ("def f(a=1e999): pass", 1, 9),
    "a default of more than 64 bits": (f"def f(a=0x{'f' * 60_000}): pass", 1, 9),
    "a default that is no text": (r"def f(a='\ud800'): pass", 1, 9),
    "a shift": ("def f(a=1 << 10**9): pass", 1, 9),
    "a power": ("def f(a: Literal[2 ** 10**9]): pass", 1, 18),
    "a docstring that is no text": (r"def f(): '\ud800'", 1, 1),
    "many words": ("x\n" * 20_001, 1, 1),
    "many types": (f"def f(a: Union[{'int,' * 9_000}]): pass", 1, 8012),
    "many parameters": (f"def f({','.join(f'a{i}' for i in range(9_000))}): pass", 1, 10897),
    "classes that double": (DOUBLING, 56, 6),
    "a long chain of names": (f"def f(a: {'.'.join('a' * 900)}): pass", 1, 10),
    "too long": ("#" * (MAX_CHARACTERS + 1), 1, 1),
    "parentheses": ("(" * 20_000, 1, 201),
    "a sum": ("1" + "+1" * 9_999, 1, 1),
    "indents": ("\n".join(" " * i + "if 1:" for i in range(300)), 101, 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_script_that_is_not_a_tool_is_refused_with_the_position(name: str):
    source, line, column = WRONG[name]
    with pytest.raises(ScriptProblemError) as problem:
        signature_of(source)
    assert (problem.value.line, problem.value.column) == (line, column), problem.value
