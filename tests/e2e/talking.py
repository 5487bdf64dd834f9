"""A client in a process of its own, which tells what it sees line by line."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 60

Next = Callable[[str], Any]


@contextmanager
def talking(argv: Sequence[str], folder: Path, **asked: str) -> Iterator[Next]:
    """Start a client with `asked` as its input; it is killed on the way out.

    What is given back takes a word and waits, bounded, for the next line, which must be about it.
    """
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
    assert process.stdin is not None
    assert process.stdout is not None
    output = process.stdout

    def following(word: str) -> Any:
        late = threading.Timer(PATIENCE, process.kill)
        late.start()
        try:
            line = output.readline()
        finally:
            late.cancel()
        assert line, f"no {word!r} came: {words.read_text()}"
        return json.loads(line)[word]

    try:
        process.stdin.write(json.dumps(asked))
        process.stdin.close()
        yield following
    finally:
        process.kill()
        process.wait(PATIENCE)
        output.close()
