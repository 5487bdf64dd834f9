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

FUNCTIONS: Final = {
    # Annotations
    "postponed": "@tool  # @@\ndef bad(x: 'datetime.Date') -> str: ...",
    "unknown_name": "@tool  # @@\ndef bad(x: 'Nowhere') -> str: ...",
    "annotation_syntax": "@tool  # @@\ndef bad(x: 'a b') -> str: ...",
    "annotation_exits": "@tool  # @@\ndef bad(x: 'sys.exit(3)') -> str: ...",
    "annotation_value": "@tool  # @@\ndef bad(x: 5) -> str: ...",
    "return_value": "@tool  # @@\ndef bad(x: int) -> 'datetime.Date': ...",
    "annotations_replaced": "@tool  # @@\ndef bad(x: int) -> str: ...\nbad.__annotations__ = {'x': 1j}",
    "context_in_list": "@tool  # @@\ndef bad(x: list[Context]) -> str: ...",
    # Hooks of types
    "core_schema": """
        class Odd:
            @classmethod
            def __get_pydantic_core_schema__(cls, source, handler):
                raise KeyError("odd")

        @tool  # @@
        def bad(x: Odd) -> str: ...
        """,
    "json_schema": """
        class Odd(BaseModel):
            @classmethod
            def __get_pydantic_json_schema__(cls, schema, handler):
                raise SystemExit("odd")

        @tool  # @@
        def bad(x: Odd) -> str: ...
        """,
    "json_schema_extra": """
        def extra(schema):
            raise GeneratorExit

        @tool  # @@
        def bad(x: Annotated[int, Field(json_schema_extra=extra)]) -> str: ...
        """,
    "json_schema_cancelled": """
        def extra(schema):
            raise asyncio.CancelledError

        @tool  # @@
        def bad(x: Annotated[int, Field(json_schema_extra=extra)]) -> str: ...
        """,
    "json_schema_memory": """
        def extra(schema):
            raise MemoryError

        @tool  # @@
        def bad(x: Annotated[int, Field(json_schema_extra=extra)]) -> str: ...
        """,
    "json_schema_recursion": """
        def extra(schema):
            extra(schema)

        @tool  # @@
        def bad(x: Annotated[int, Field(json_schema_extra=extra)]) -> str: ...
        """,
    "json_schema_interrupt": """
        def extra(schema):
            raise KeyboardInterrupt

        @tool  # @@
        def bad(x: Annotated[int, Field(json_schema_extra=extra)]) -> str: ...
        """,
    "error_without_text": """
        class Odd(Exception):
            def __str__(self):
                raise SystemExit(9)

        def extra(schema):
            raise Odd

        @tool  # @@
        def bad(x: Annotated[int, Field(json_schema_extra=extra)]) -> str: ...
        """,
    "error_of_odd_characters": """
        def extra(schema):
            raise RuntimeError("\\ud800\\x1b[2J\\0")

        @tool  # @@
        def bad(x: Annotated[int, Field(json_schema_extra=extra)]) -> str: ...
        """,
    "output_schema": """
        class Out(BaseModel):
            @classmethod
            def __get_pydantic_json_schema__(cls, schema, handler):
                raise LookupError("out")

        @tool  # @@
        def bad() -> Out: ...
        """,
    "not_serializable": """
        class Strange: ...

        @tool  # @@
        def bad() -> Strange: ...
        """,
    "meta_class": """
        class Meta(type):
            def __subclasscheck__(cls, other):
                raise OSError("meta")

            def __instancecheck__(cls, other):
                raise OSError("meta")

            def __eq__(cls, other):
                raise OSError("meta")

            __hash__ = type.__hash__

        class Odd(metaclass=Meta): ...

        @tool  # @@
        def bad(x: Odd) -> Odd: ...
        """,
    # Schemas
    "schema_no_object": "@tool(input_schema={'type': 'string'})  # @@\ndef bad(**rest) -> str: ...",
    "schema_type": "@tool(input_schema=5)  # @@\ndef bad(**rest) -> str: ...",
    "schema_no_json": (
        "@tool(input_schema={'type': 'object', 'default': {1j}})  # @@\ndef bad(**rest) -> str: ..."
    ),
    "schema_nan": (
        "@tool(input_schema={'type': 'object', 'default': {'x': float('nan')}})  # @@\n"
        "def bad(**rest) -> str: ..."
    ),
    "schema_circular": """
        circle = {"type": "object"}
        circle["properties"] = circle

        @tool(input_schema=circle)  # @@
        def bad(**rest) -> str: ...
        """,
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
    "schema_required": (
        "@tool(input_schema={'type': 'object', 'required': 5})  # @@\ndef bad(**rest) -> str: ..."
    ),
    "output_schema_type": "@tool(output_schema=['x'])  # @@\ndef bad() -> str: ...",
    "output_schema_reference": (
        "@tool(output_schema={'$ref': 'https://x.example/y'})  # @@\ndef bad() -> str: ..."
    ),
    "default_nan": "@tool  # @@\ndef bad(x: float = float('nan')) -> str: ...",
    "default_surrogate": "@tool  # @@\ndef bad(x: str = '\\ud800') -> str: ...",
    "default_nul": "@tool  # @@\ndef bad(x: str = '\\0') -> str: ...",
    "default_huge": "@tool  # @@\ndef bad(x: int = 2**70) -> str: ...",
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
    "wrapped_odd": """
        class Odd:
            def __getattr__(self, name):
                raise SystemExit(name)

        @tool  # @@
        def bad() -> str: ...
        bad.__wrapped__ = Odd()
        """,
    "weird_name": "@tool  # @@\ndef bad() -> str: ...\nglobals()['a b'] = bad\ndel bad",
    "long_name": f"@tool  # @@\ndef {'b' * 200}() -> str: ...",
    # Options
    "annotations_dict": "@tool(annotations={'readOnlyHint': True})  # @@\ndef bad() -> str: ...",
    "annotations_none": "@tool(annotations=None)  # @@\ndef bad() -> str: ...",
    "name_type": "@tool(name=5)  # @@\ndef bad() -> str: ...",
    "title_type": "@tool(title=['x'])  # @@\ndef bad() -> str: ...",
    "title_surrogate": "@tool(title='\\ud800')  # @@\ndef bad() -> str: ...",
    "description_type": "@tool(description=b'x')  # @@\ndef bad() -> str: ...",
    "description_nul": "@tool(description='a\\0b')  # @@\ndef bad() -> str: ...",
    "docstring_surrogate": "@tool  # @@\ndef bad() -> str:\n    '''Half \\ud800.'''",
    "version_type": "@tool(version=1.2)  # @@\ndef bad() -> str: ...",
    "time_limit_type": "@tool(time_limit='5')  # @@\ndef bad() -> str: ...",
    "requires_type": "@tool(requires=5)  # @@\ndef bad() -> str: ...",
    "requires_item": "@tool(requires=[object()])  # @@\ndef bad() -> str: ...",
    "threads_type": "@tool(threads=1.5)  # @@\ndef bad() -> str: ...",
    "answer_within_type": "@tool(answer_within=[1])  # @@\ndef bad() -> str: ...",
    "claims_type": "@tool(claims='yes')  # @@\ndef bad() -> str: ...",
    "unasked_type": "@tool(unasked=1)  # @@\ndef bad() -> str: ...",
    "retries_type": "@tool(tasks='slow', retries=2.0)  # @@\ndef bad() -> str: ...",
    "prompt_title": "@prompt(title=object())  # @@\ndef bad() -> str: ...",
    "prompt_requires": "@prompt(requires={'a': 1})  # @@\ndef bad() -> str: ...",
    "prompt_argument": "@prompt  # @@\ndef bad(x: list[int]) -> str: ...",
    "prompt_hook": """
        class Odd(str):
            @classmethod
            def __get_pydantic_core_schema__(cls, source, handler):
                raise asyncio.CancelledError

        @prompt  # @@
        def bad(x: Odd) -> str: ...
        """,
    "resource_uri": "@resource('no uri')  # @@\ndef bad() -> str: ...",
    "resource_mime_type": "@resource('a://b', mime_type=5)  # @@\ndef bad() -> str: ...",
    "resource_mime_text": "@resource('a://b', mime_type='x')  # @@\ndef bad() -> str: ...",
    "resource_annotations": (
        "@resource('a://b', annotations={'priority': 1})  # @@\ndef bad() -> str: ..."
    ),
    "resource_name": "@resource('a://b', name=('x',))  # @@\ndef bad() -> str: ...",
    "resource_variables": "@resource('a://{x}')  # @@\ndef bad(y: str) -> str: ...",
    # Completers
    "completer_argument": (
        "@prompt  # @@\ndef bad(x: str) -> str: ...\n@complete(bad, 5)\ndef other(typed): ..."
    ),
    "completer_annotation": (
        "@prompt  # @@\ndef bad(x: str) -> str: ...\n"
        "@complete(bad, 'x')\ndef other(typed: 'Nowhere'): ..."
    ),
    "completer_no_function": "@prompt  # @@\ndef bad(x: str) -> str: ...\ncomplete(bad, 'x')(5)",
    "completer_object": (
        "@resource('a://{x}')  # @@\ndef bad(x: str) -> str: ...\n"
        "complete(bad, 'x')(functools.partial(print, 'x'))"
    ),
}
"""Files with the function `beside`, and one function more that cannot be offered."""

FILES: Final = {
    "syntax": "def broken(:  # @@",
    "nul": "x = 1\0",
    "encoding": "# -*- coding: nonsense -*-",
    "raises": "x = 1\nx / 0  # @@",
    "exits": "import sys\nsys.exit(4)  # @@",
    "interrupt": "raise KeyboardInterrupt  # @@",
    "generator_exit": "raise GeneratorExit  # @@",
    "cancelled": "import asyncio\nraise asyncio.CancelledError  # @@",
    "memory": "raise MemoryError  # @@",
    "recursion": "def f():\n    f()  # @@\nf()",
    "group": "raise BaseExceptionGroup('all', [SystemExit(1), ValueError()])  # @@",
    "syntax_by_hand": "raise SyntaxError  # @@",
    "syntax_of_odd_types": "raise SyntaxError(5, (__file__, 'x', 3, 4))  # @@",
    "text_raises": "class E(Exception):\n    def __str__(self): raise E\nraise E  # @@",
    "text_no_string": "class E(Exception):\n    def __str__(self): return 5\nraise E  # @@",
    "name_raises": """
        class M(type):
            @property
            def __name__(cls): raise SystemExit

        class E(Exception, metaclass=M): ...

        raise E("x")  # @@
        """,
    "traceback_raises": """
        class E(Exception):
            @property
            def __traceback__(self): raise SystemExit

        raise E("x")  # @@
        """,
    "text_is_odd": "raise ValueError('\\ud800\\x1b]0;x\\x07\\u202e')  # @@",
    "import_missing": "import nowhere_at_all  # @@",
    "import_of_itself": "from mcphost_tools.import_of_itself import tool  # @@",
    "removes_itself": "import sys\ndel sys.modules[__name__]\n1 / 0  # @@",
    "globals_changed": "__name__ = None\n__file__ = 5\n__spec__ = None\n1 / 0  # @@",
    "signal_handler": "import signal\nsignal.signal(signal.SIGTERM, print)  # @@",
    "reads_input": "input()  # @@",
    "option": "from mcphost.sdk import tool\n@tool(colour='red')  # @@\ndef f(): ...",
    "tasks_option": "from mcphost.sdk import tool\n@tool(tasks=['slow'])  # @@\ndef f(): ...",
    "retries_option": "from mcphost.sdk import tool\n@tool(tasks='slow', retries='2')  # @@\ndef f(): ...",
    "requires_text": "from mcphost.sdk import prompt\n@prompt(requires='a')  # @@\ndef f(): ...",
    "resource_no_uri": "from mcphost.sdk import resource\n@resource(5)  # @@\ndef f(): ...",
    "completer_of_nothing": (
        "from mcphost.sdk import complete\n@complete(print, 'x')  # @@\ndef f(t): ..."
    ),
    "completer_unhashable": (
        "from mcphost.sdk import complete, prompt\n@prompt\ndef f(x: str): ...\n"
        "@complete(f, [])  # @@\ndef g(t): ..."
    ),
    "marked_builtin": "from mcphost.sdk import tool\ntool(print)  # @@",
}
"""Files that cannot be imported."""

ENDLESS: Final = {
    "loops": "while True: pass  # @@",
    "loops_on": """
        while True:
            try:
                while True: pass  # @@
            except Exception: pass
        """,
    "sleeps": "import time\ntime.sleep(1e6)  # @@",
    "locks": "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()  # @@",
    "joins": """
        import threading
        thread = threading.Thread(target=threading.Event().wait)
        thread.start()
        thread.join()  # @@
        """,
    "receives": "import socket\na, b = socket.socketpair()\na.recv(1)  # @@",
    "reads": "import os\nr, w = os.pipe()\nos.read(r, 1)  # @@",
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
