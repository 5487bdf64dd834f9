"""The limit of responses that show one stream at once."""

from uuid import uuid4

from mcphost.serving.legacy.stream import MOST, Readers
from tests.serving.legacy.callers import Shown


async def test_of_too_many_readers_the_first_has_to_go() -> None:
    readers, stream = Readers(), uuid4()
    shown = [Shown() for _ in range(MOST + 2)]
    present = [readers.present(stream, each) for each in shown]
    for each in present:
        each.__enter__()
    assert [each.ended for each in shown] == [True, True] + [False] * MOST
    readers.send_away(stream)
    assert all(each.ended for each in shown)
    for each in present:
        each.__exit__(None, None, None)
    assert stream not in readers
