"""Who is shown a stream without being where its call is: clients that came back for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from mcphost.serving.streams import Reader

RETRY_MS: Final = 1000
"""When a reader is to come back that was sent away."""
MOST: Final = 4
"""How many may follow one stream here: a client needs one, and more while old connections break."""


class Readers:
    """Who follows in this process. For the event loop's thread."""

    def __init__(self) -> None:
        self._present: dict[UUID, list[Reader]] = {}

    def __contains__(self, stream: UUID) -> bool:
        return stream in self._present

    @contextmanager
    def present(self, stream: UUID, reader: Reader) -> Iterator[None]:
        """While in here, the reader is sent away with the others. Of too many the first has to go."""
        present = self._present.setdefault(stream, [])
        present.append(reader)
        if len(present) > MOST:
            present.pop(0).end()
        try:
            yield
        finally:
            if reader in present:
                present.remove(reader)
            if not self._present.get(stream):
                self._present.pop(stream, None)

    def send_away(self, stream: UUID) -> None:
        """End the responses that show the stream: their clients come back for the rest."""
        for reader in tuple(self._present.get(stream, ())):
            reader.end(RETRY_MS)

    def send_all_away(self) -> None:
        """The process leaves."""
        for stream in tuple(self._present):
            self.send_away(stream)


following: Final = Readers()
