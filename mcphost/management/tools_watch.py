"""`manage.py up` reloads `tools/` when a file changes, and prints what was registered or refused."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Final

from django.db import Error, connections

from mcphost.catalogue import kinds
from mcphost.catalogue.reloading import reload_if_changed
from mcphost.kinds.python.attempts import printable
from mcphost.kinds.python.kind import Reload

POLL_SECONDS: Final = 1.0
MAX_FILES_NAMED: Final = 5

log = logging.getLogger(__name__)


class ToolsWatch:
    """A thread that looks at the times of the files each second, and reloads them."""

    def __init__(self, write: Callable[[str], object], functions_url: str) -> None:
        self._write = write
        self._functions_url = functions_url
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mcphost-tools-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop looking; wait for a reload under way."""
        self._ended.set()
        self._thread.join()

    def reload(self) -> None:
        """Reload the files if one has changed. Raises nothing."""
        try:
            outcome = reload_if_changed()
        except Error:
            log.warning("tools were reloaded, but clients could not be notified", exc_info=True)
        except Exception:
            log.exception("tools could not be reloaded")
        else:
            if outcome is not None:
                self._write("\n".join([*lines_of(outcome, self._functions_url), ""]))
        finally:
            connections.close_all()

    def _run(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            self.reload()


def lines_of(reload: Reload, functions_url: str) -> Iterator[str]:
    """Yield what a reload changed, for the terminal."""
    names = [printable(f"{path.parent.name}/{path.name}") for path in reload.files]
    more = f" and {len(names) - MAX_FILES_NAMED} more" if len(names) > MAX_FILES_NAMED else ""
    yield f"Changed: {', '.join(names[:MAX_FILES_NAMED])}{more}"
    for name in (*reload.added, *reload.updated):
        is_new = ", new" if name in reload.added else ""
        yield f"  registered  {name} ({kinds.primitive_type_of(name).value}{is_new})"
    for name in reload.removed:
        yield f"  removed     {name}"
    for problem in reload.refused:
        yield f"  refused     {problem}"
    for name in reload.kept:
        yield f"  unchanged   {name} runs its previous code until the new code loads"
    for note in reload.notes:
        yield f"  advice      {note}"
    if reload.added:
        yield f"  Grant new functions to a tenant, then create a tool of them: {functions_url}"
