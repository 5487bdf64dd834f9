"""Tests of the picture of a call: its parts, and the scale on which they are drawn."""

from datetime import timedelta

from mcphost.audit.entries import view
from mcphost.audit.open_calls import NONE
from mcphost.audit.timeline import Timeline, timeline
from mcphost.console.records.call_picture import (
    CallPart,
    CallPicture,
    PartType,
    draw,
    parts,
)
from tests.audit.recorded_calls import HALF_HOUR, MINUTE, NOW, Story, row

SECOND = timedelta(seconds=1)
MS = timedelta(milliseconds=1)


def read(story: Story) -> Timeline:
    return timeline([view(row(each)) for each in story.made], story.at, NONE)


def told(story: Story) -> list[tuple[str, str, timedelta]]:
    return [(str(each.type), each.label, each.length) for each in parts(read(story), story.at)]


def drawn(*lengths: tuple[PartType, timedelta]) -> CallPicture:
    """Return the picture of parts that follow one another."""
    at, made = NOW, []
    for type, length in lengths:
        made.append(CallPart(type, "x", at, at + length))
        at += length
    picture = draw(made)
    assert picture is not None
    return picture


def number(text: str) -> float:
    return float(text.removesuffix("%"))


def widths(picture: CallPicture) -> list[float]:
    return [number(each.width) for each in picture.bars]


def test_a_call_of_two_rounds_is_drawn_as_server_time_and_waiting_time() -> None:
    story = Story().play("start; ask reason colour")
    story.back(2 * MINUTE).answer("reason")
    story.play("start; end")
    assert told(story) == [
        ("server", "Round 1", 3 * MS),
        ("response", "Waiting for “Reason”, “Colour”", 2 * MINUTE + 3 * SECOND - 3 * MS),
        ("server", "Round 2", 3 * MS),
    ]


def test_an_open_or_expired_input_request_is_drawn_as_waiting_time() -> None:
    story = Story().play("ask sure")
    story.later(5 * MINUTE)
    (_, waiting) = parts(read(story), story.at)
    assert waiting.goes_on
    assert waiting.end == story.at
    story.later(HALF_HOUR)
    (_, expired) = parts(read(story), story.at)
    assert not expired.goes_on
    assert expired.end - NOW == HALF_HOUR + SECOND


def test_a_task_is_drawn_as_queued_from_the_response_to_its_next_round() -> None:
    story = Story().play("ask sure")
    story.back(MINUTE).answer("sure")
    story.end()
    answered = NOW + 30 * SECOND
    found = parts(read(story), story.at, settled={1: answered})
    assert [(each.type, each.label) for each in found][1:3] == [
        (PartType.RESPONSE, "Waiting for “Sure”"),
        (PartType.REQUEST, "Queued"),
    ]
    assert found[1].end == found[2].start == answered


def test_a_long_wait_is_compressed_with_a_visible_gap() -> None:
    picture = drawn(
        (PartType.SERVER, 3 * MS), (PartType.RESPONSE, timedelta(days=2)), (PartType.SERVER, 9 * MS)
    )
    first, wait, second = widths(picture)
    assert first > 20
    assert abs(second - 3 * first) < 0.01
    assert wait <= 12
    assert [len(each.gaps) for each in picture.bars] == [0, 1, 0]
    (gap,) = picture.compressed
    assert gap.length == timedelta(days=2)
    assert number(gap.x) == number(picture.bars[1].x)
