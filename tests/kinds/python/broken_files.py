"""Tool files with a mistake, one of each kind, for all tests of what a mistake may stop.

`@@` marks the line that a report of the mistake has to name.
"""

from pathlib import Path
from textwrap import dedent
from typing import Final

GOOD: Final = """
from mcphost.sdk import tool

@tool
def good(text: str = "fine") -> str:
    '''Return the text.'''
    return text
"""

IMPORTS: Final = """
import asyncio, datetime, functools, os, socket, sys, threading, time, types, warnings
from typing import Annotated, Any, Literal
from pydantic import BaseModel, BeforeValidator, Field, computed_field
from mcphost.sdk import Context, ToolAnnotations, complete, prompt, resource, tool

@tool
def beside() -> str:
    '''Return a text, whatever the function beside it is like.'''
    return "beside"

"""


def hooked(hook: str, body: str, base: str = "BaseModel", uses: str = "bad(x: Odd) -> str") -> str:
    """Return a tool of a type whose hook for pydantic does something."""
    head = f"class Odd({base}):\n    @classmethod\n"
    signature = f"    def __get_pydantic_{hook}__(cls, schema, handler): {body}\n"
    return f"{head}{signature}\n@tool  # @@\ndef {uses}: ...\n"


def extra(body: str, before: str = "") -> str:
    """Return a tool with a parameter whose schema is changed by this code."""
    parameter = "x: Annotated[int, Field(json_schema_extra=extra)]"
    return (
        f"{before}def extra(schema):\n    {body}\n\n@tool  # @@\ndef bad({parameter}) -> str: ...\n"
    )


def schema(expression: str, before: str = "") -> str:
    """Return a tool with an input schema given verbatim."""
    return f"{before}@tool(input_schema={expression})  # @@\ndef bad(**rest) -> str: ...\n"


def option(options: str, decorator: str = "tool") -> str:
    """Return a function that is marked with options."""
    return f"@{decorator}({options})  # @@\ndef bad() -> str: ...\n"


def completed(completer: str, template: bool = False) -> str:
    """Return a prompt, or a template, with a completer."""
    marked = "@resource('a://{x}')" if template else "@prompt"
    return f"{marked}  # @@\ndef bad(x: str) -> str: ...\n{completer}\n"


FUNCTIONS: Final = {
    # Annotations
    "postponed": "@tool  # @@\ndef bad(x: 'datetime.Date') -> str: ...",
    "annotation_syntax": "@tool  # @@\ndef bad(x: 'a b') -> str: ...",
    "return_value": "@tool  # @@\ndef bad(x: int) -> 'datetime.Date': ...",
    "context_in_list": "@tool  # @@\ndef bad(x: list[Context]) -> str: ...",
    # Hooks of types
    "json_schema": hooked("json_schema", "raise SystemExit('odd')"),
    "json_schema_cancelled": extra("raise asyncio.CancelledError"),
    "json_schema_memory": extra("raise MemoryError"),
    "error_without_text": extra(
        "raise Odd", "class Odd(Exception):\n    def __str__(self): raise SystemExit(9)\n\n"
    ),
    "output_schema": hooked("json_schema", "raise LookupError('out')", uses="bad() -> Odd"),
    "meta_class": """
        class Meta(type):
            def __subclasscheck__(cls, other): raise OSError("meta")
            __instancecheck__ = __eq__ = __subclasscheck__
            __hash__ = type.__hash__

        class Odd(metaclass=Meta): ...

        @tool  # @@
        def bad(x: Odd) -> Odd: ...
        """,
    # Schemas
    "schema_no_object": schema("{'type': 'string'}"),
    "schema_circular": schema(
        "circle", "circle = {'type': 'object'}\ncircle['properties'] = circle\n\n"
    ),
    "schema_raises": """
        class Odd(dict):
            def get(self, *args):
                raise ZeroDivisionError("odd")
            keys = items = values = __iter__ = __getitem__ = get

        @tool(input_schema=Odd(type="object"))  # @@
        def bad(**rest) -> str: ...
        """,
    "schema_huge": (
        "@tool  # @@\ndef bad(x: Literal[tuple(f'a{n}' for n in range(20000))]) -> str: ..."
    ),
    "output_schema_reference": option("output_schema={'$ref': 'https://x.example/y'}"),
    "default_surrogate": "@tool  # @@\ndef bad(x: str = '\\ud800') -> str: ...",
    "default_raises": """
        class Odd:
            def __repr__(self):
                raise BaseException("odd")
            __eq__ = __hash__ = __bool__ = __str__ = __copy__ = __deepcopy__ = __repr__

        @tool  # @@
        def bad(x: Any = Odd()) -> str: ...
        """,
    # Signatures
    "positional": "@tool  # @@\ndef bad(x: int, /) -> str: ...",
    "generator": "@tool  # @@\ndef bad():\n    yield 1",
    "signature_raises": """
        @tool  # @@
        def bad() -> str: ...
        bad.__signature__ = 5
        """,
    "wrapped_by_itself": "@tool  # @@\ndef bad() -> str: ...\nbad.__wrapped__ = bad",
    "long_name": f"@tool  # @@\ndef {'b' * 200}() -> str: ...",
    # Options
    "annotations_list": option("annotations=['readOnlyHint']"),
    "annotations_dict": option("annotations={'readOnlyHint': 'yes'}"),
    "annotations_resource": option("'a://b', annotations={'priority': 'high'}", "resource"),
    "name_type": option("name=5"),
    "description_nul": option("description='a\\0b'"),
    "version_type": option("version=1.2"),
    "requires_type": option("requires=5"),
    "threads_type": option("threads=1.5"),
    "retries_type": option("tasks='slow', retries=2.0"),
    "prompt_argument": "@prompt  # @@\ndef bad(x: list[int]) -> str: ...",
    "prompt_hook": hooked("core_schema", "raise asyncio.CancelledError", "str").replace(
        "@tool", "@prompt"
    ),
    "resource_uri": option("'no uri'", "resource"),
    "resource_mime_text": option("'a://b', mime_type='x'", "resource"),
    "resource_variables": "@resource('a://{x}')  # @@\ndef bad(y: str) -> str: ...",
    # Completers
    "completer_argument": completed("@complete(bad, 5)\ndef other(typed): ..."),
    "completer_annotation": completed("@complete(bad, 'x')\ndef other(typed: 'Nowhere'): ..."),
    "completer_no_function": completed("complete(bad, 'x')(5)"),
}
"""Files with the function `beside`, and one function more that cannot be offered."""


def importing(names: str, text: str) -> str:
    return f"from mcphost.sdk import {names}\n{text}"


FILES: Final = {
    "syntax": "def broken(:  # @@",
    "encoding": "# -*- coding: nonsense -*-",
    "raises": "x = 1\nx / 0  # @@",
    "exits": "import sys\nsys.exit(4)  # @@",
    "cancelled": "import asyncio\nraise asyncio.CancelledError  # @@",
    "group": "raise BaseExceptionGroup('all', [SystemExit(1), ValueError()])  # @@",
    "syntax_of_odd_types": "raise SyntaxError(5, (__file__, 'x', 3, 4))  # @@",
    "text_raises": "class E(Exception):\n    def __str__(self): raise E\nraise E  # @@",
    "traceback_raises": """
        class E(Exception):
            @property
            def __traceback__(self): raise SystemExit

        raise E("x")  # @@
        """,
    "text_is_odd": "raise ValueError('\\ud800\\x1b]0;x\\x07\\u202e')  # @@",
    "import_missing": "import nowhere_at_all  # @@",
    "removes_itself": "import sys\ndel sys.modules[__name__]\n1 / 0  # @@",
    "signal_handler": "import signal\nsignal.signal(signal.SIGTERM, print)  # @@",
    "option": importing("tool", "@tool(colour='red')  # @@\ndef f(): ..."),
    "retries_option": importing("tool", "@tool(tasks='slow', retries='2')  # @@\ndef f(): ..."),
    "requires_text": importing("prompt", "@prompt(requires='a')  # @@\ndef f(): ..."),
    "completer_of_nothing": importing("complete", "@complete(print, 'x')  # @@\ndef f(t): ..."),
    "completer_unhashable": importing(
        "complete, prompt", "@prompt\ndef f(x: str): ...\n@complete(f, [])  # @@\ndef g(t): ..."
    ),
}
"""Files that cannot be imported."""

ENDLESS: Final = {
    "locks": "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()  # @@",
    "loops": "while True: pass  # @@",
    "loops_on": """
        while True:
            try:
                while True: pass  # @@
            except Exception: pass
        """,
    "joins": """
        import threading
        thread = threading.Thread(target=threading.Event().wait, name="mcphost-load-x")
        thread.start()
        thread.join()  # @@
        """,
    "retries_on": """
        import time
        while True:
            try:
                raise OSError
            except:
                time.sleep(0.01)  # @@
        """,
    "error_without_end": """
        class E(Exception):
            def __str__(self):
                while True: pass  # @@
        raise E
        """,
}
"""Files that never end being imported."""


def function_file(name: str) -> str:
    """Return the text of a file of FUNCTIONS."""
    return IMPORTS + dedent(FUNCTIONS[name]).lstrip("\n") + "\n"


def whole_file(text: str) -> str:
    """Return the text of a file of FILES or ENDLESS."""
    return dedent(text).lstrip("\n") + "\n"


def marked_line(text: str) -> int:
    """Return the line that a report has to name: the marked one, or the first."""
    lines = text.splitlines()
    return next((n for n, line in enumerate(lines, 1) if "@@" in line), 1)


def write_all(folder: Path, *endless: str) -> dict[str, int]:
    """Write all files with a mistake, and one without; return the lines to report, by stem."""
    texts = {name: function_file(name) for name in FUNCTIONS}
    texts |= {name: whole_file(text) for name, text in FILES.items()}
    texts |= {name: whole_file(ENDLESS[name]) for name in endless}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, "utf-8", "surrogatepass")
    (folder / "zz_good.py").write_text(GOOD)
    return {name: marked_line(text) for name, text in texts.items()}
