"""Code that will surprise callers is reported to the author when it is loaded."""

from pathlib import Path
from textwrap import dedent

import pytest

from mcphost.kinds.python.discovery import FoundFunctions, discover
from mcphost.kinds.python.kind import PythonKind

HEAD = """
import enum
from typing import Any, Literal
from pydantic import BaseModel
from mcphost.sdk import Context, Form, SyncContext, ToolError, tool

class Level(enum.Enum):
    LOW = "low"

class Name(BaseModel):
    name: str

class Own(Exception): pass
class Shown(ToolError): pass
def helper(ctx, *args, **options): ...
SCHEMA = {"type": "object", "properties": {}}

"""


def found(folder: Path, body: str, parameters: str = "ctx: Context") -> FoundFunctions:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    code = f"{HEAD}@tool\nasync def asking({parameters}) -> str:\n    '''Ask.'''\n{lines}"
    (folder / "asks.py").write_text(dedent(code))
    return discover(folder)


LINE = HEAD.count("\n") + 4
"""The line of the first statement in the body."""

NOTED = {
    "raise ValueError('there is no table')": "raise ValueError(…)",
    "raise RuntimeError(f'no table {ctx}')": "raise RuntimeError(…)",
    "class ValueError(Exception): pass\nraise OSError('x')": "raise OSError(…)",
    "raise Own('x')": "raise Own(…)",
    "if ctx: raise KeyError('x') from None": "raise KeyError(…)",
    "await ctx.get_state('a')": "no 'get_state'",
    "return ctx.session": "no 'session'",
    "await ctx.info('a', logger_name='b')": "ctx.info(data, logger)",
    "ctx.progress()": "ctx.progress(progress, total, message)",
    "await ctx.step('a')": "ctx.step(",
}


@pytest.mark.parametrize("body", NOTED)
def test_code_that_will_surprise_callers_is_noted_with_its_line(tmp_path: Path, body: str) -> None:
    loaded = found(tmp_path, body)
    assert "asks.asking" in loaded.functions and not loaded.broken
    (note,) = loaded.notes
    assert note.path == f"{tmp_path.name}/asks.py:{LINE + body.count(chr(10))}"
    assert note.message.startswith("asking: ") and NOTED[body] in note.message


REFUSED = [
    "await ctx.elicit('Which level?', Level)",
    "await ctx.elicit('Which level?', response_type=Level)",
    "await ctx.elicit('level', 'Which level?', Level)",
    "await ctx.elicit('level', 'Which level?', str)",
    "await ctx.elicit('level', 'Which level?', ['low', 'high'])",
    "await ctx.elicit('level', 'Which level?', model=None)",
    "await ctx.elicit(message='Which level?', schema=Name)",
    "await ctx.elicit('level', 'Which level?', SCHEMA)",
    "await ctx.ask_form('Which level?', Name)",
    "await ctx.ask_form('level', 'Which level?', Level)",
    "try:\n    await ctx.elicit('Which level?')\nexcept ValueError: pass",
]


@pytest.mark.parametrize("body", REFUSED)
def test_an_input_request_that_can_only_fail_is_refused_with_the_correct_form(
    tmp_path: Path, body: str
) -> None:
    loaded = found(tmp_path, body)
    problem = loaded.broken["asks.asking"]
    assert "(key, message, Model)" in problem.message
    assert f"line {LINE + body.count(chr(10), 0, body.index('ctx'))}:" in problem.message


FINE = [
    "await ctx.elicit('name', 'Who?', Name)",
    "await ctx.elicit(key='name', message='Who?', model=Name)",
    "await ctx.ask_form('name', 'Who?', SCHEMA)",
    "await ctx.ask_form('name', 'Who?', {'type': 'object'})",
    "model = Level\nawait ctx.elicit('name', 'Who?', model)",
    "await ctx.elicit(*args)",
    "await ctx.sample('s', 'Say', max_tokens=5, system_prompt='x')",
    "await ctx.report_progress(1, 2)",
    "raise ToolError('no table')",
    "raise NotImplementedError('later')",
    "class E(ToolError): pass\nraise E('no table')",
    "class E(RuntimeError): pass\nraise E('no table')",
    "class ValueError(ToolError): pass\nraise ValueError('no table')",
    "ValueError = ToolError\nraise ValueError('no table')",
    "raise Shown('no table')",
    "raise SystemExit('no table')",
    "raise ValueError",
    "try:\n    raise ValueError('x')\nexcept ValueError:\n    return 'no'",
    "ctx = helper(ctx)\nctx.other('x')",
    "helper(ctx).other",
    "await ctx.store.get('a')",
]


@pytest.mark.parametrize("body", FINE)
def test_valid_code_has_no_notes(tmp_path: Path, body: str) -> None:
    loaded = found(tmp_path, body)
    assert (loaded.notes, loaded.broken) == ([], {})


def test_code_that_cannot_be_parsed_statically_is_still_served(tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(
        "from mcphost.sdk import tool\n"
        "exec('@tool\\ndef made() -> str:\\n    raise ValueError(\"x\")', globals())\n"
        "line = tool(name='line')(lambda: 'x')\n"
    )
    kind = PythonKind()
    kind.configure(tmp_path)
    assert "asks.made" in kind.functions()
    assert kind.notes() == ()


SURPRISING = {
    "@tool\ndef asking(ctx, a: int) -> int: ...": "write ctx: Context",
    "@tool\ndef asking(self, a: int) -> int: ...": "'self' is an argument",
    "@tool(annotations={'readOnly': True})\ndef asking(a: int) -> int: ...": "'readOnly' means nothing",
}


@pytest.mark.parametrize("code", SURPRISING)
def test_a_signature_that_is_not_what_it_seems_is_noted(tmp_path: Path, code: str) -> None:
    (tmp_path / "asks.py").write_text(f"{HEAD}{code}\n")
    loaded = discover(tmp_path)
    assert "asks.asking" in loaded.functions
    (note,) = loaded.notes
    assert SURPRISING[code] in note.message


def test_a_usual_signature_has_no_notes(tmp_path: Path) -> None:
    code = "@tool(annotations={'readOnlyHint': True, 'title': 'A'})\ndef asking(ctx: Context, name) -> int: ..."
    (tmp_path / "asks.py").write_text(f"{HEAD}{code}\n")
    assert discover(tmp_path).notes == []
