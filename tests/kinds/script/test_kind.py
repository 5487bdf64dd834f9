"""The kind `script`: configurations, and the checks when one is saved."""

import re

import pytest

from mcphost.egress.client import EgressLimits
from mcphost.egress.messages import OutgoingRequest, ReceivedResponse
from mcphost.egress.secret_values import SecretHandle, Template
from mcphost.kinds.kind import KindError
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.script.kind import ScriptConfig, ScriptKind
from mcphost.kinds.script.signature import MAX_CHARACTERS
from mcphost.sandbox.pool import Sandbox
from mcphost.sandbox.processes import ROOT
from tests.kinds.rounds_with_client import accept, asking_call
from tests.kinds.script.script_calls import DrivenScript, responded

DOCUMENT = ROOT / "docs" / "design" / "sandbox.md"
EXAMPLE = re.compile(r"^```\n(def .*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def kind(sandbox: Sandbox) -> ScriptKind:
    return ScriptKind(sandbox)


def test_a_compiled_script_has_its_declared_values(kind: ScriptKind):
    code = 'def greet(name: str) -> str:\n    """Greet a person."""\n    return f"Hi {name}"'
    config = {"code": code, "annotations": {"readOnlyHint": True}}
    compiled = kind.compile(config)
    assert (compiled.name, compiled.description) == ("greet", "Greet a person.")
    assert compiled.annotations == {"readOnlyHint": True}
    assert compiled.input_schema["required"] == ["name"]
    assert compiled.output_schema is None
    assert kind.compile(config) is compiled
    assert kind.config_model(PrimitiveType.TOOL) is ScriptConfig
    assert (kind.check(), kind.choices()) == ((), ())


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({}, "code"),
        ({"code": "def f(): pass", "more": 1}, "more"),
        ({"code": "#" * (MAX_CHARACTERS + 1)}, "code"),
        ({"code": "x = 1"}, "code"),
    ],
)
def test_an_invalid_script_configuration_is_refused(kind, config, field):
    with pytest.raises(KindError) as refused:
        kind.compile(config)
    assert field in refused.value.problems
    assert kind.inspect(config, "acme") == refused.value.problems


GOOD = {
    "plain": "def f() -> str:\n return http.get('https://x.example/').text + secret('a')",
    "waiting": "async def f() -> str:\n return (await http.get('https://x.example/')).text",
    "asking": "def f() -> dict:\n return elicit('a', 'A?', {'n': int, 'c': ['x']})",
    "failing": "def f(a: int) -> str:\n if a: return 'x'\n fail('no')",
    "builtins": (
        "class A:\n n = 1\ndef f() -> list[str]:\n"
        " setattr(A, 'n', 2)\n odd = filter(lambda n: n % 2, [1, 2, 3])\n"
        " some = filter(None, odd)[:1] if hasattr(A, 'n') else []\n"
        " return map(str, some + [getattr(A, 'n', 0)])"
    ),
    "modules": "import json, re, datetime, math\ndef f() -> str:\n return json.dumps(math.pi)",
}


@pytest.mark.parametrize("name", GOOD)
def test_a_valid_script_has_no_problems(kind: ScriptKind, name: str):
    assert kind.inspect({"code": GOOD[name]}, "acme") == {}


async def test_builtins_known_to_the_type_checker_work_in_the_sandbox(kind: ScriptKind):
    assert await DrivenScript(GOOD["builtins"], kind.sandbox).completes() == ["1", "2"]


async def test_the_documented_example_runs(kind: ScriptKind):
    (code,) = EXAMPLE.findall(DOCUMENT.read_text())
    assert kind.inspect({"code": code}, "acme") == {}

    class Shop:
        async def send(self, request: OutgoingRequest, limits: EgressLimits) -> ReceivedResponse:
            bearer = Template(("Bearer ", SecretHandle("shop")))
            assert ("authorization", bearer) in request.headers
            return responded(request, b'{"left": 7}')

    call = asking_call({"item": "ink"})
    driven = DrivenScript(code, kind.sandbox, call, http=Shop())
    assert await driven.asks() == ["count"]
    assert await driven.completes(count=accept(count=3, wrap="paper")) == {"ordered": 3}
    assert driven.notes.logged == [("info", "3 are ordered", None)]


def test_a_script_cannot_be_saved_while_it_cannot_be_checked(kind, monkeypatch):
    monkeypatch.setattr("mcphost.sandbox.processes.BINARY", DOCUMENT)
    (problem,) = kind.inspect({"code": "def f(): pass"}, "acme")["code"]
    assert "could not be checked" in problem


BAD = {
    "def f() -> int:\n return 'x'": "Line 2, column 9",
    "def f():\n return nothing": "Line 2, column 9",
    "def f():\n return http.fetch('x')": "Line 2, column 9",
    "async def f():\n return http.get('x').text": "Line 2, column 9",
    "def f():\n return elicit('a')": "Line 2, column 9",
    "def f() -> list[int]:\n return map(str, [1])": "Line 2, column 9",
    "def f():\n yield 1": "Line 2, column 2",
    "import socket\ndef f(): pass": "Line 1, column 8",
    "while True: pass\ndef f(): pass": "Line 1, column 1",
}


@pytest.mark.parametrize("code", BAD)
def test_a_problem_is_reported_with_its_position(kind: ScriptKind, code: str):
    (problem, *_) = kind.inspect({"code": code}, "acme")["code"]
    assert problem.startswith(BAD[code]), problem


def test_a_script_that_uses_too_much_memory_while_checked_is_refused(kind: ScriptKind):
    code = "x = 'x'\nwhile True: x += x\ndef f(): pass"
    (problem,) = kind.inspect({"code": code}, "acme")["code"]
    assert "memory" in problem
