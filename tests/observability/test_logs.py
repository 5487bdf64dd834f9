import io
import json
import logging
from uuid import UUID

import pytest
import structlog

from mcphost.observability import context, logs

HTTP_REQUEST = UUID("2f1c7f8e-4a53-4a39-9d0e-0a1f3c1c9c11")
TOKEN = "mcph_" + "a1B2c3D4e5F6" + "_" + "s" * 43 + "_" + "c0ffee"


@pytest.fixture(autouse=True)
def _logging_as_it_was():
    root, ours = logging.getLogger(), logging.getLogger("mcphost")
    levels, handlers = (root.level, ours.level), list(root.handlers)
    ours.setLevel(logging.NOTSET)
    yield
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
    for handler in [other for other in root.handlers if other not in handlers]:
        root.removeHandler(handler)
    structlog.reset_defaults()


@pytest.fixture
def lines():
    stream = io.StringIO()
    logs.configure("json", "INFO", stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_log_line_contains_time_logger_level_and_all_extra_fields(lines):
    extra = {"tool": "echo", "seconds": 1.5, "where": object, "numbers": {1: 2}}
    log = logging.getLogger("mcphost.feed")
    log.warning("a gap of %d", 3, extra=extra, stack_info=True)
    (line,) = lines()
    assert line.pop("timestamp").endswith("Z")
    assert "test_a_log_line_contains" in line.pop("stack")
    said = {
        "event": "a gap of 3",
        "level": "warning",
        "logger": "mcphost.feed",
        "tool": "echo",
        "seconds": 1.5,
        "where": "<class 'object'>",
        "numbers": {"1": 2},
    }
    assert {**line, **said} == line


def test_a_log_line_of_a_request_carries_request_id_tenant_and_trace_id(lines):
    with context.bound(HTTP_REQUEST, "acme", "ab" * 16):
        logging.getLogger("mcphost.serving").info("inside")
        structlog.get_logger("mcphost.serving").info("inside too", tool="echo")
    logging.getLogger("mcphost.serving").info("outside")
    inside, too, outside = lines()
    for line in (inside, too):
        assert line["request_id"] == str(HTTP_REQUEST)
        assert line["tenant"] == "acme"
        assert line["trace_id"] == "ab" * 16
    assert too["tool"] == "echo"
    assert "request_id" not in outside


def test_secrets_are_redacted_from_messages_arguments_facts_and_tracebacks(lines):
    log = logging.getLogger("mcphost.identity")
    log.info("token %s", TOKEN)
    log.info(
        "facts", extra={"password": "hunter2", "headers": [(b"authorization", b"Bearer x1y2z3w4")]}
    )
    structlog.get_logger("mcphost.identity").info("state", requestState="mcps1.k1.AAAA")
    try:
        raise ValueError(f"no such token: {TOKEN}")
    except ValueError:
        log.exception("it failed")
    text = json.dumps(lines())
    for secret in (TOKEN, "hunter2", "x1y2z3w4", "mcps1.k1.AAAA"):
        assert secret not in text
    assert "Traceback" in lines()[-1]["exception"]


def test_configuring_twice_writes_every_line_once_in_the_human_readable_format():
    first, second = io.StringIO(), io.StringIO()
    logs.configure("json", "INFO", first)
    logs.configure("console", "INFO", second)
    with context.bound(HTTP_REQUEST, "acme", "ab" * 16):
        logging.getLogger("mcphost.feed").info("hello %s", "there")
    assert first.getvalue() == ""
    (line,) = second.getvalue().splitlines()
    assert "hello there" in line
    assert "tenant=acme" in line
