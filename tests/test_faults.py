"""A fault of the platform is never reported as a user's mistake without a line in the log."""

import ast
from collections.abc import Iterator

from tests.source_files import ROOT, parse, sources

FAULTS = frozenset(
    {"AssertionError", "AttributeError", "BaseException", "Exception", "IndexError", "KeyError"}
    | {"LookupError", "NameError", "TypeError"}
)
"""Errors that code raises which is wrong. Those of data are ValueError, or have a class of their own."""
LOGGING = frozenset({"debug", "error", "exception", "info", "warning"})

ALLOWED = {
    "api/resources/trials.py::_opened": "a state of another version, signed by us",
    "audit/writer/writer.py::_lose_waiting": "the queue may be empty",
    "audit/writer/writer.py::_write_batch": "counts the failure, and logs the first of several",
    "catalogue/cache.py::_fill": "each waiter gets the error",
    "catalogue/compiling.py::_prepare": "the error of `json.dumps` is the reason that is shown",
    "console/primitives/trial_results.py::_blob": "reads what a tool returned",
    "console/primitives/saved_comparisons.py::client_of": "a client that another version saved",
    "console/records/wire.py::_input_request": "what is redacted may lack any member",
    "console/records/wire.py::_result": "what is redacted may lack any member",
    "kinds/functions/program.py::_outcome": "the function may raise anything; recorded in full",
    "kinds/functions/returns.py::sized": "raised again unless it was half of a surrogate pair",
    "kinds/http/openapi.py::converted": "carried to the process that has a log",
    "kinds/http/openapi_job.py::run": "carried to the process that has a log",
    "kinds/http/replies.py::is_text": "a service may name any character set",
    "kinds/http/replies.py::text": "a service may name any character set",
    "kinds/python/attempts.py::_result": "a file of tools may raise anything; logged as a problem",
    "kinds/python/function.py::inspect_function": "of the author's function; logged as a problem",
    "kinds/script/functions.py::_progress": "compares numbers that a script gave",
    "kinds/script/functions.py::call": "arguments that a script gave do not fit",
    "kinds/script/program.py::advance": "a worker may send anything; recorded in full",
    "observability/otel.py::export": "the reason is reported in the status",
    "runtime/notification_channel.py::_json": "what JSON cannot hold is sent as text",
    "runtime/questions.py::__post_init__": "a question that the author gave",
    "runtime/steps.py::shape_of": "the author's annotation; chained",
    "runtime/steps.py::take": "arguments that the author gave; chained",
    "runtime/steps.py::written": "a result that the author gave",
    "runtime/threads.py::run": "raised where it is awaited",
    "sandbox/processes.py::__init__": "raises that the worker did not start",
    "serving/execution/links.py::_open_link": "a link of another version",
    "serving/execution/stored_requests.py::read": "a request of another version",
    "serving/legacy/call.py::_answer": "`error_for` logs it",
    "transport/legacy/get.py::get": "`error_for` logs it",
    "transport/legacy/post.py::delete": "`error_for` logs it",
    "transport/legacy/post.py::post": "`error_for` logs it",
    "transport/redis_wakeups.py::_reconnect": "`_report_unreachable` logs it",
    "transport/request_cycle.py::answer_of": "`error_for` logs it",
}
"""The functions that catch such an error of a call of ours without a line in the log themselves, and why."""


def test_a_fault_is_logged_or_raised() -> None:
    assert set(_silent()) == ALLOWED.keys()


def _silent() -> Iterator[str]:
    """Yield each function with a handler that catches an error of `FAULTS` of a call of code of ours,
    and neither logs it nor raises it again."""
    for path in sources("mcphost"):
        tree = parse(path)
        ours = _names_of_ours(tree)
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and any(
                _calls(body, ours) and not any(map(_keeps, handler))
                for body, handler in _handlers(function)
            ):
                yield f"{path.relative_to(ROOT / 'mcphost')}::{function.name}"


def _handlers(function: ast.AST) -> Iterator[tuple[list[ast.stmt], list[ast.stmt]]]:
    """Yield what is tried and what is done then, for each handler of a function that catches a fault."""
    for node in ast.walk(function):
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                if handler.type is None or _faults(handler.type):
                    yield node.body, handler.body
        elif isinstance(node, ast.With | ast.AsyncWith):
            calls = [item.context_expr for item in node.items]
            if any(
                isinstance(call, ast.Call)
                and ast.unparse(call.func) == "suppress"
                and any(map(_faults, call.args))
                for call in calls
            ):
                yield node.body, []


def _faults(expression: ast.expr) -> bool:
    return any(isinstance(n, ast.Name) and n.id in FAULTS for n in ast.walk(expression))


def _names_of_ours(tree: ast.Module) -> frozenset[str]:
    """Return the names in a module that stand for code of ours."""
    names = {"self", "cls"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mcphost":
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return frozenset(names)


def _calls(body: list[ast.stmt], ours: frozenset[str]) -> bool:
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[0].split("(")[0] in ours
        for part in body
        for node in ast.walk(part)
    )


def _keeps(part: ast.stmt) -> bool:
    return any(
        (isinstance(node, ast.Raise) and node.exc is None)
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in LOGGING
        )
        for node in ast.walk(part)
    )
