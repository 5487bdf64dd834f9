"""Waking those who wait in this process."""

import asyncio
import threading

from mcphost.serving.endings import Endings


async def test_who_listens_is_told_and_who_listens_for_another_is_not() -> None:
    endings = Endings()
    with (
        endings.listening("a") as one,
        endings.listening("a") as two,
        endings.listening("b") as not_me,
    ):
        endings.tell("a")
        await asyncio.wait_for(asyncio.gather(one.wait(60), two.wait(60)), 20)
        await not_me.wait(0.001)


async def test_what_is_told_before_the_waiting_begins_counts_and_counts_once() -> None:
    endings = Endings()
    with endings.listening("a") as listener:
        endings.tell("a")
        await asyncio.wait_for(listener.wait(60), 20)
        waiting = asyncio.create_task(listener.wait(60))
        await asyncio.sleep(0)
        assert not waiting.done()
        endings.tell("a")
        await asyncio.wait_for(waiting, 20)


async def test_it_is_told_from_any_thread() -> None:
    endings = Endings()
    with endings.listening("a") as listener:
        thread = threading.Thread(target=endings.tell, args=("a",))
        thread.start()
        await asyncio.wait_for(listener.wait(60), 20)
        thread.join(20)


def test_a_listener_whose_loop_has_ended_disturbs_nobody() -> None:
    endings = Endings()

    async def leaving() -> None:
        endings.listening("a").__enter__()

    asyncio.run(leaving())
    endings.tell("a")


async def test_nothing_is_left_of_those_who_have_gone() -> None:
    endings = Endings()
    with endings.listening("a"), endings.listening("a"):
        assert endings._listeners
    assert not endings._listeners
