"""The check of scripts knows exactly what the sandbox's interpreter provides."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from pydantic_monty import Monty

from mcphost.kinds.script.kind import ScriptKind
from mcphost.kinds.script.library import (
    ENCODINGS,
    INSTEAD,
    METHODS,
    MISSING_BUILTINS,
    MISSING_MEMBERS,
    MISSING_METHODS,
    MODULES,
)
from mcphost.runtime.outcomes import Failed
from mcphost.sandbox.pool import Sandbox
from tests.kinds.rounds_with_client import accept, asking_call
from tests.kinds.script.interpreter import SAMPLES, Interpreter
from tests.kinds.script.script_calls import DrivenScript

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "scripts.md"


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with Monty(min_processes=1, max_processes=1) as monty, monty.checkout() as session:
        yield Interpreter(session)


@pytest.fixture(scope="module")
def kind(sandbox: Sandbox) -> ScriptKind:
    return ScriptKind(sandbox)


def test_modules_have_exactly_the_listed_names(interpreter: Interpreter):
    for module, names in MODULES.items():
        assert set(interpreter.names_of(module)) <= names, module
        assert all(interpreter.has(f"{module}.{name}") for name in names), module


def test_missing_members_are_listed_unless_another_type_has_them(interpreter: Interpreter):
    missing = set(interpreter.missing_members())
    assert {name for _, name in missing if name in MISSING_MEMBERS} == MISSING_MEMBERS
    documented = DOCUMENT.read_text()
    for type, name in sorted(missing):
        if name not in MISSING_MEMBERS:  # so it cannot be refused by its name
            assert f"`{type.rpartition('.')[2]}.{name}`" in documented, (type, name)
    assert set(SAMPLES) >= {type for type, _ in missing}


@pytest.mark.parametrize("value", [*SAMPLES.values(), "csv.Error('a')", "re.error('a')"])
@pytest.mark.parametrize("line", ["return {}", "log({})"])
async def test_a_value_of_any_type_does_not_end_the_worker(sandbox: Sandbox, line: str, value: str):
    source = f"import collections, csv, datetime, decimal, re\ndef f():\n    {line.format(value)}"
    outcome = await DrivenScript(source, sandbox).advance()
    assert not isinstance(outcome, Failed) or "worker" not in outcome.error.detail, outcome


def test_missing_built_in_names_are_listed(interpreter: Interpreter):
    assert set(interpreter.missing_builtins()) <= MISSING_BUILTINS
    assert not any(interpreter.has(name) for name in MISSING_BUILTINS)


def test_the_page_lists_the_modules_and_the_replacements_for_others():
    text = DOCUMENT.read_text()
    for module in (*MODULES, *INSTEAD):
        assert f"`{module}`" in text, module


def refused(kind: ScriptKind, body: str) -> list[str]:
    head, _, rest = body.rpartition("\n--\n")
    code = f"{head}\ndef f(a: str) -> object:\n    return {rest}\n"
    return list(kind.inspect({"code": code}, str(uuid4())).get("code", ()))


MISSING = {
    "from datetime import date\n--\nlist(date(2026, 1, 1).isocalendar())": "`isocalendar`",
    "--\n'abc'.translate({97: 'b'})": "`translate`",
    "--\nstr.maketrans('a', 'b')": "`maketrans`",
    "--\nint.from_bytes(b'a', 'big')": "`from_bytes`",
    "--\n(5).bit_length()": "`bit_length`",
    "import re\n--\nre.sub('a', lambda m: 'b', a)": "use finditer",
    "import re\ndef _g(m): return 'b'\n--\nre.compile('a').sub(_g, a)": "use finditer",
    "import re\n--\nre.sub(pattern='a', repl=lambda m: 'b', string=a)": "use finditer",
    "import re\n--\nre.subn('a', 'b', a)": "`subn`",
    "import re as r\n--\nr.VERBOSE": "`re` has no `VERBOSE`",
    "import json\n--\njson.dumps({'a': 1}, default=str)": "does not take `default`",
    "from json import loads\n--\nloads(a, object_hook=dict)": "does not take `object_hook`",
    "import functools\n--\nfunctools.wraps": "`functools` has no `wraps`",
    "from typing import cast\n--\ncast(int, a)": "`typing` has no `cast`",
    "--\nbytearray(b'a')": "`bytearray`",
    "--\ncallable(a)": "`callable`",
    "from datetime import datetime\n--\ndatetime.utcnow()": "`utcnow`",
    "--\nsorted([a], key=str.lower)": "write lambda value: value.lower(…)",
    "_D = {'a': 1}\n--\nmax(_D, key=_D.get)": "`get` can only be called",
    "--\nlist(map(a.replace, [a], [a]))": "`replace` can only be called",
    "from datetime import date\n--\nlist(map(date.fromisoformat, [a]))": "`fromisoformat` can only",
    "--\na.__class__.__name__": "`__class__` is not in the sandbox",
    "--\nValueError('a', 1)": "`ValueError` takes one text at most",
    "--\nKeyError(1)": "`KeyError` takes one text at most",
    "def _g(x: int): raise ValueError(x)\n--\na": "`ValueError` takes one text at most",
    "def _g(x: list[str]): raise ValueError(x)\n--\na": "`ValueError` takes one text at most",
    "_X = {'a': 1}\ndef _g(): raise ValueError(_X)\n--\na": "`ValueError` takes one text",
    "def _g():\n    n = len('a')\n    raise ValueError(n)\n--\na": "`ValueError` takes one text",
    "def _g():\n    try: int('x')\n    except ValueError as e: raise KeyError(e)\n--\na": "`KeyError` takes one",
    "--\ngetattr(a, 'upper')()": "`getattr` does not find `upper`",
    "--\nhasattr(a, 'bit_length')": "`hasattr` does not find `bit_length`",
    "--\npow(3, -1, 7)": "`pow` takes no negative exponent",
    "from datetime import timedelta\n--\ntimedelta(hours=1.5).seconds": "takes whole numbers",
    "import datetime\n--\ndatetime.timedelta(0, 3 / 2).seconds": "takes whole numbers",
    "--\na.encode('latin-1')": "no encoding 'latin-1'",
    "--\nstr(b'a', 'cp1252')": "no encoding 'cp1252'",
    "--\nbytes([1, 2])": "`bytes` takes no list",
    "--\nbytes(range(3))": "`bytes` takes no list",
    "class A:\n    def __lt__(self, other): return True\n--\nA() < A()": "`__lt__` is never called",
    "from datetime import UTC\n--\nUTC": "use timezone.utc",
    "from collections import OrderedDict\n--\nOrderedDict()": "use a dict",
    "import collections.abc\n--\na": "use typing",
    "import hmac\n--\na": "a Python function can",
    "import pandas\n--\na": "there are no packages",
}


@pytest.mark.parametrize("body", MISSING)
def test_features_missing_in_the_interpreter_are_refused_when_a_script_is_saved(kind, body: str):
    body = body.removeprefix("--\n") if body.startswith("--") else body
    problems = refused(kind, body)
    assert any(
        MISSING[("--\n" if "\n--\n" not in body else "") + body] in each for each in problems
    )
    assert all(each.startswith("Line ") for each in problems)


TAKEN = {
    "from functools import reduce\n--\nreduce(lambda x, y: x + y, [1, 2], 10)": 13,
    "from functools import reduce\n--\nreduce(lambda x, y: {**x, y: 1}, ['b'], {})": {"b": 1},
    "from functools import reduce\n--\nreduce(lambda x, y: x.get(y, {}), ['b'], {'b': 5})": 5,
    "--\nmax([{'n': 1}, {'n': 2}], key=lambda row: row['n'])": {"n": 2},
    "--\nmin([3, 2], key=lambda x: x % 3)": 3,
    "class _A:\n    upper = 5\n--\ngetattr(_A(), 'upper')": 5,
    "--\n[pow(3, 2), pow(3, -1), pow(3, 2, 7)]": [9, 1 / 3, 2],
    "def _g(x: int | str) -> str:\n    x = f'{x}'\n    try: raise ValueError(x)\n"
    "    except ValueError as e: return str(e)\n--\n[_g(5)]": ["5"],
}


@pytest.mark.parametrize("body", TAKEN)
async def test_a_script_that_the_sandbox_can_run_is_not_refused(
    kind: ScriptKind, sandbox: Sandbox, body: str
):
    head, _, expression = body.rpartition("--\n")
    code = f"{head}\ndef f() -> object:\n    return {expression}\n"
    assert kind.inspect({"code": code}, str(uuid4())) == {}
    result = await DrivenScript(code, sandbox, asking_call({})).completes()
    assert result == TAKEN[body] or result["result"] == TAKEN[body]


def test_what_is_wrong_in_a_lambda_is_refused(kind: ScriptKind):
    problems = refused(kind, "from functools import reduce\n--\nreduce(lambda x, y: nope, [1])")
    assert any("`nope` used when not defined" in each for each in problems), problems


def test_a_missing_feature_in_a_branch_is_refused_with_its_position(kind: ScriptKind):
    code = "def f(a: str) -> str:\n    if a:\n        import uuid\n        return 'é' + a.translate({})\n    return a"
    assert list(kind.inspect({"code": code}, str(uuid4()))["code"])[:2] == [
        "Line 3, column 16: `uuid` cannot be imported in a script: use new_uuid(); docs/scripts.md lists what there is.",
        "Line 4, column 22: `translate` is not in the sandbox: use replace; docs/scripts.md lists what there is.",
    ]


@pytest.mark.parametrize("module", [*INSTEAD, "urllib.parse", "email.utils", "numpy"])
def test_a_missing_module_is_refused_once_with_its_replacement(kind, module: str):
    for line in (f"import {module}", f"from {module} import x"):
        problems = kind.inspect({"code": f"{line}\ndef f() -> None:\n    pass"}, str(uuid4()))[
            "code"
        ]
        about = [each for each in problems if "cannot be imported in a script" in each]
        instead = INSTEAD.get(module) or INSTEAD.get(module.partition(".")[0], "")
        assert len(about) == 1 and instead in about[0]
        assert not any("Cannot resolve" in each or "ModuleNotFound" in each for each in problems)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("del a", "the 'del' statement"),
        ("async with a: pass", "async context managers"),
    ],
)
def test_unsupported_syntax_is_refused_in_plain_words(kind: ScriptKind, line: str, words: str):
    code = f"from typing import Any\nasync def f(a: Any) -> None:\n    {line}"
    problems = kind.inspect({"code": code}, str(uuid4()))["code"]
    assert any(f"A script cannot use {words}" in each for each in problems), problems
    assert not any("monty" in each.lower() for each in problems)


def test_a_wildcard_import_is_refused_in_plain_words(kind: ScriptKind):
    code = "from math import *\ndef f() -> None: ..."
    problems = kind.inspect({"code": code}, str(uuid4()))["code"]
    assert problems == [
        "Line 1, column 1: A script cannot use wildcard imports (`from ... import *`)."
    ]


def test_methods_of_pythons_types_are_no_values_in_the_interpreter(interpreter: Interpreter):
    for type, value in SAMPLES.items():
        for name in METHODS:
            assert not interpreter.has(f"({value}).{name}", f"{type}.{name}"), (type, name)


EXPRESSIONS = {
    "__lt__": "A() < 1", "__le__": "A() <= 1", "__gt__": "A() > 1", "__ge__": "A() >= 1",
    "__ne__": "1 / (1 - (A() != 1))", "__len__": "len(A())", "__bool__": "1 / (1 - bool(A()))",
    "__iadd__": "a += 1", "__ior__": "a |= 1", "__imul__": "a *= 1", "__getattr__": "A().b",
    "__getattribute__": "A().b", "__reversed__": "reversed(A())", "__format__": "int(f'{A()}')",
    "__bytes__": "bytes(A())", "__complex__": "complex(A())", "__new__": "1 / (A() == 0)",
}  # fmt: skip
"""Expressions that fail if the method of a class `A` is not called, which returns 0."""


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_special_methods_that_are_refused_are_not_called_by_the_interpreter(
    interpreter: Interpreter, name: str
):
    assert name in MISSING_METHODS
    source = f"class A:\n    def {name}(self, *more): return 0\na = A()\n{EXPRESSIONS[name]}"
    assert not interpreter.runs(source)
    assert interpreter.runs(source.replace(name, "__eq__").replace(EXPRESSIONS[name], "A() == 1"))


@pytest.mark.parametrize(
    "name", ["utf-8", "UTF8", "u8", "utf_16_le", "utf-32be", "us-ascii", "646"]
)
def test_the_encodings_of_the_interpreter_are_not_refused(interpreter: Interpreter, name: str):
    assert ENCODINGS.fullmatch(name)
    assert interpreter.runs(f"'a'.encode({name!r}).decode({name!r})")


@pytest.mark.parametrize("name", ["latin-1", "utf-8-sig", "cp1252", "utf-7", "hex"])
def test_other_encodings_are_refused(interpreter: Interpreter, name: str):
    assert not ENCODINGS.fullmatch(name)
    assert not interpreter.runs(f"'a'.encode({name!r})")


def test_methods_of_a_script_its_named_tuples_and_the_server_may_be_values(kind: ScriptKind):
    code = """
from __future__ import annotations

import math
from collections import namedtuple

Row = namedtuple("Row", "count index")

class Box:
    def pop(self) -> int:
        return 5

def sub(a: str) -> list:
    take = Box().pop
    send = http.get
    header = send("https://api.example.com").headers.get
    return [Row(1, 2).count, take(), header("a"), *map(math.floor, [1.5])]
"""
    assert kind.inspect({"code": code}, str(uuid4())) == {}


def test_names_defined_by_a_script_are_not_taken_for_library_names(kind: ScriptKind):
    code = """

class Box:
    numerator: int = 5

    def translate(self) -> int:
        return self.numerator

def _callable(vars: int) -> int:
    return vars

def sub(a: str) -> int:
    dir = Box()
    return dir.translate() + dir.numerator + _callable(2) + len(a.replace("a", "b"))
"""
    assert kind.inspect({"code": code}, str(uuid4())) == {}


async def test_a_script_can_convert_time_zones_and_create_uuids(sandbox: Sandbox):
    source = """
    from datetime import datetime, timezone

    def f() -> dict:
        summer = datetime(2026, 7, 1, 12, tzinfo=timezone.utc)
        first = new_uuid()
        elicit("go", "Go on?", {"ok": bool})
        try:
            in_zone(summer, "Nowhere/../etc")
        except ValueError as error:
            wrong = str(error)
        return {
            "oslo": in_zone(summer, "Europe/Oslo").isoformat(),
            "winter": in_zone(datetime(2026, 1, 1, 12), "Europe/Oslo").isoformat(),
            "ids": [first, new_uuid()],
            "wrong": wrong,
        }
    """
    driven = DrivenScript(source, sandbox, asking_call({}))
    await driven.asks()
    done = await driven.completes(go=accept(ok=True))
    assert done["oslo"] == "2026-07-01T14:00:00+02:00"
    assert done["winter"] == "2026-01-01T12:00:00+01:00"
    assert len(set(done["ids"])) == 2 and all(UUID(one).version == 4 for one in done["ids"])
    assert "is not a time zone" in done["wrong"]
