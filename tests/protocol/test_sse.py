"""Tests of event stream frames, read back as the standard defines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.sse import event, retry


def read(stream: bytes) -> list[tuple[str | None, bytes]]:
    """Return the events of a stream: each with its id and its data (WHATWG HTML, section 9.2.6)."""
    events = []
    for block in stream.split(b"\n\n")[:-1]:
        lines = block.split(b"\n")
        data = [line[len(b"data: ") :] for line in lines if line.startswith(b"data: ")]
        ids = [line[len(b"id: ") :].decode() for line in lines if line.startswith(b"id: ")]
        if data:
            events.append((ids[0] if ids else None, b"\n".join(data)))
    return events


@pytest.mark.parametrize("data", [b"a\nb", b"a\rb", b"a\r\nb"])
def test_a_line_break_does_not_end_an_event(data):
    assert read(event(data)) == [(None, b"a\nb")]


@given(st.lists(st.binary().map(lambda data: data.replace(b"\r", b""))))
def test_framed_events_are_read_back_unchanged(messages):
    stream = b"".join(event(message) for message in messages)
    assert [data for _, data in read(stream)] == messages


@pytest.mark.parametrize("identifier", ["a\nb", "a\rb", "a\0b"])
def test_an_id_that_would_break_the_stream_is_refused(identifier):
    with pytest.raises(ValueError, match="line breaks"):
        event(b"{}", id=identifier)


@pytest.mark.parametrize("id", [None, "stream-1"])
def test_an_event_may_carry_the_retry_delay(id):
    framed = event(b"{}", id=id, retry_ms=250)
    assert framed.startswith(b"retry: 250\n")
    assert read(framed) == [(id, b"{}")]
    assert retry(3000) == b"retry: 3000\n\n"
