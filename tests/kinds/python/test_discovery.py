"""Every file of the folder is imported once, and a broken file does not affect the others."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from mcphost.kinds.kind import KindError
from mcphost.kinds.python.discovery import discover
from mcphost.kinds.python.kind import PythonKind
from tests.tool_modules import restored_modules

Write = Callable[..., Path]
PATIENCE = 60.0


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Write files into a folder `tools`, and unload their modules afterwards."""
    folder = tmp_path / "tools"
    folder.mkdir()

    def write(**files: str) -> Path:
        for name, text in files.items():
            (folder / f"{name}.py").write_text(dedent(text))
        return folder

    with restored_modules():
        yield write


GOOD = """
    from mcphost.sdk import tool

    @tool(title="Good", version="7", time_limit=5, requires=["sampling"])
    def good(text: str = "") -> int:
        '''Be good.'''
        return len(text)

    @tool
    async def better() -> str:
        return "better"

    def helper(): ...

    alias = helper
"""


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("@tool\n@functools.cache\ndef a() -> int: return 1", "_lru_cache_wrapper"),
        ("a = tool(functools.partial(print, 1))", "partial"),
        ("@tool\nclass A:\n    def __call__(self) -> int: return 1", "type"),
        ("class A:\n    @tool\n    @staticmethod\n    def a() -> int: return 1", "staticmethod"),
        ("class A:\n    def a(self) -> int: return 1\na = tool(A().a)", "method"),
        ("a = tool(len)", "builtin_function_or_method"),
    ],
)
def test_what_is_no_function_is_reported_and_not_left_out_silently(
    write: Write, code: str, kind: str
) -> None:
    found = discover(write(other=f"import functools\nfrom mcphost.sdk import tool\n{code}\n"))
    assert f"a {kind} cannot be offered" in str(found.broken["other"])


LOST = {
    "class A:\n    @tool\n    def a(self) -> int: return 1": ("A.a", "method of a class", 4),
    "class A:\n    @staticmethod\n    @tool\n    def a() -> int: return 1": ("A.a", "method", 4),
    "class A:\n    class B:\n        @prompt\n        def a(self) -> str: ...": ("A.B.a", "method", 5),
    "def make():\n    @tool\n    def a() -> int: return 1\n    return a\nall = [make()]": (
        "make.<locals>.a", "inside another function", 4),
    "@tool\ndef a() -> int: return 1\n@tool\ndef a() -> int: return 2": ("a", "another object's", 3),
    "@tool\n@prompt\ndef a() -> str: ...": ("a", "two such decorators", 3),
    "@lambda f: lambda: f()\n@tool\ndef a() -> int: return 1": ("a", "returns another function", 3),
}  # fmt: skip
"""Files with a function that no name leads to, its own name, the reason, and its line."""


@pytest.mark.parametrize("code", LOST)
def test_a_marked_function_that_is_not_offered_is_reported_with_the_reason(
    write: Write, code: str
) -> None:
    good = "\n@tool\ndef good() -> int: return 1\n"
    discovered = discover(write(other=f"from mcphost.sdk import tool, prompt\n\n{code}{good}"))
    assert "other.good" in discovered.functions
    name, reason, line = LOST[code]
    (problem,) = discovered.broken.values()
    assert problem.path.startswith("tools/other.py:")
    assert abs(int(problem.path.rpartition(":")[2]) - line) <= 1
    assert problem.message.startswith(f"{name}: @") and reason in problem.message


@pytest.mark.parametrize("decorator", ["tool", "prompt", "resource"])
def test_an_unknown_option_is_reported_in_words_of_the_decorator(write: Write, decorator: str):
    first = "'a://b', " if decorator == "resource" else ""
    code = f"from mcphost.sdk import {decorator}\n@{decorator}({first}titel='A')\ndef a() -> str: ...\n"
    problem = str(discover(write(other=code)).broken["other"])
    assert f"@{decorator} has no option 'titel': it has " in problem and "title" in problem


def test_a_function_with_a_decorator_above_is_offered_once(write: Write) -> None:
    code = """
    import functools
    from mcphost.sdk import tool

    def logged(function):
        @functools.wraps(function)
        def call(*values, **named):
            return function(*values, **named)
        return call

    @logged
    @tool
    def first() -> int:
        return 1

    """
    discovered = discover(write(other=code))
    assert "other.first" in discovered.functions
    assert not any("does not offer" in str(problem) for problem in discovered.broken.values())


def test_marked_functions_are_found_by_module_and_name(write: Write) -> None:
    found = discover(write(first=GOOD, second=GOOD))
    assert sorted(found.functions) == ["first.better", "first.good", "second.better", "second.good"]
    assert found.broken == {}


def test_a_function_imported_from_another_file_is_not_offered_twice(write: Write) -> None:
    folder = write(a_first=GOOD)
    (folder / "b_second.py").write_text("from mcphost_tools.a_first import good\n")
    assert sorted(discover(folder).functions) == ["a_first.better", "a_first.good"]


def test_a_keyboard_interrupt_at_start_is_not_reported_as_a_broken_file(write: Write) -> None:
    """In a process of its own, because this one ignores interrupts if a shell runs the tests in the background."""
    folder = write(slow='import time\nprint("began", flush=True)\ntime.sleep(60)')
    program = (
        "import signal; from pathlib import Path; from mcphost.kinds.python.discovery import discover; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"discover(Path({str(folder)!r}), seconds={PATIENCE})"
    )
    run = [sys.executable, "-c", program]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            assert process.stdout.readline() == b"began\n"
            process.send_signal(signal.SIGINT)
            status = process.wait(PATIENCE)
            assert (status, b"KeyboardInterrupt" in process.stderr.read()) == (-signal.SIGINT, True)
        finally:
            process.kill()


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    found = discover(tmp_path / "nowhere")
    assert [str(problem) for problem in found.broken.values()] == [
        f"{tmp_path / 'nowhere'}: there is no such folder of tools"
    ]


def test_several_folders_are_merged_and_the_first_file_of_a_name_wins(write: Write, tmp_path: Path):
    more = tmp_path / "more"
    more.mkdir()
    (more / "some.py").write_text("raise RuntimeError")
    (more / "other.py").write_text(dedent(GOOD))
    first = write(some=GOOD)
    found = discover(first, more)
    assert sorted(found.functions) == ["other.better", "other.good", "some.better", "some.good"]
    assert [str(problem) for problem in found.broken.values()] == [
        f"{more / 'some.py'}: {first / 'some.py'} has the same name"
    ]
    assert found.why_not("some.bad") == "There is no tool function 'some.bad'."


def the_kind(folder: Path) -> PythonKind:
    kind = PythonKind()
    kind.configure(folder)
    return kind


def test_a_compiled_configuration_has_the_values_of_its_author(write: Write) -> None:
    compiled = the_kind(write(some=GOOD)).compile({"function": "some.good"})
    said = (compiled.name, compiled.title, compiled.description, compiled.author_version)
    assert said == ("good", "Good", "Be good.", "7")
    assert (compiled.time_limit, compiled.requires) == (5, ("sampling",))
    assert (compiled.annotations, compiled.output_schema) == ({}, {"type": "integer"})
    assert compiled.input_schema["properties"] == {"text": {"type": "string", "default": ""}}


def test_a_broken_function_is_reported_by_check_and_where_it_is_used(write: Write) -> None:
    kind = the_kind(write(broken="1 / 0", some=GOOD))
    [problem] = kind.check()
    assert str(problem) == "tools/broken.py:1: ZeroDivisionError: division by zero"
    with pytest.raises(KindError, match="division by zero") as caught:
        kind.compile({"function": "broken.echo"})
    assert caught.value.problems == {"function": [str(problem)]}


@pytest.mark.parametrize("reference", ["some.missing", "nowhere", "", 5, None])
def test_a_wrong_configuration_names_its_field(write: Write, reference: object) -> None:
    kind = the_kind(write(some=GOOD))
    wrong = {} if reference is None else {"function": reference}
    for config, field in ((wrong, "function"), ({"function": "some.good", "extra": 1}, "extra")):
        with pytest.raises(KindError) as caught:
            kind.compile(config)
        assert list(caught.value.problems) == [field]
