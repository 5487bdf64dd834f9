"""Starting and stopping what a serving process runs beside its requests."""

import atexit
import threading
from concurrent.futures import ThreadPoolExecutor

from django.utils.module_loading import autodiscover_modules

from mcphost.audit.writer import writer
from mcphost.feed.loop import loop as feed
from mcphost.vault.services import verify_master_key

STOP_SECONDS = 10.0

_lock = threading.Lock()
_started = False


def prepare() -> None:
    """Connect the rooms and check the master key, before the first request.

    In a thread of its own: servers import applications inside their event loop, where Django's ORM
    refuses to work. Raises vault.services.MasterKeyMismatch.
    """
    autodiscover_modules("wiring")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(verify_master_key).result()


def ensure_started() -> None:
    """Start the record writer and the feed's loop, once per process.

    Called at every request, because Daphne has no lifespan to call it earlier.
    """
    if not _started:
        _start()


def _start() -> None:
    global _started  # noqa: PLW0603 - one process, one start
    with _lock:
        if _started:
            return
        writer.start()
        feed.start()
        atexit.register(stop)
        _started = True


def stop() -> None:
    """Commit what is queued and stop. Harmless when nothing was started."""
    global _started  # noqa: PLW0603 - one process, one start
    with _lock:
        if not _started:
            return
        _started = False
        atexit.unregister(stop)
        feed.stop()
        writer.stop(STOP_SECONDS)
