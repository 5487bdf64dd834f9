"""A client in a process of its own, which tells what it sees line by line, and may be told things."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 60

Next = Callable[[str], Any]


class Talk:
    """Lines of JSON, both ways."""

    def __init__(self, process: "subprocess.Popen[str]", words: Path) -> None:
        self._process, self._words = process, words

    def hear(self, word: str) -> Any:
        told = self.receive(word)
        assert word in told, f"not {word!r}, but {told}"
        return told[word]

    def receive(self, word: str = "line") -> dict[str, Any]:
        """The next line, whatever it tells; `word` names it in the error if none comes."""
        assert self._process.stdout is not None
        late = threading.Timer(PATIENCE, self._process.kill)
        late.start()
        try:
            line = self._process.stdout.readline()
        finally:
            late.cancel()
        assert line, f"no {word!r} came: {self._words.read_text()}"
        told: dict[str, Any] = json.loads(line)
        return told

    def say(self, what: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(what)}\n")
        self._process.stdin.flush()

    def fall_silent(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def end(self) -> int:
        """Close its input and return its status. Raises TimeoutExpired if it does not end."""
        self.fall_silent()
        return self._process.wait(PATIENCE)


@contextmanager
def conversing(argv: Sequence[str], folder: Path, **asked: Any) -> Iterator[Talk]:
    """Start a client, tell it `asked`, and leave its input open; it is killed on the way out."""
    words = folder / "client.err"
    with words.open("wb") as stderr:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=folder,
            text=True,
        )
    with process:
        try:
            talk = Talk(process, words)
            talk.say(asked)
            yield talk
        finally:
            process.kill()
            process.wait(PATIENCE)


@contextmanager
def talking(argv: Sequence[str], folder: Path, **asked: str) -> Iterator[Next]:
    """The same with a client that has `asked` as all of its input, and is only listened to."""
    with conversing(argv, folder, **asked) as talk:
        talk.fall_silent()
        yield talk.hear
