"""Calls one after the other, on connections that are kept while they may be; every answer is looked at."""

import http.client
import json
import ssl
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

from tests.e2e import raw
from tests.e2e.processes import Server

PATIENCE = 60
PAUSE = 0.02
CALLS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("echo", {"text": "a"}),
    ("send_note", {"recipient": "Ada", "note": "a"}),
    ("countdown", {"start": 2, "seconds": 0.05}),
)


class Load:
    """Calls through a proxy. The pauses leave the machine to what is tested meanwhile."""

    def __init__(self, server: Server, tls: ssl.SSLContext | None) -> None:
        self._server = server
        self._tls = tls
        self._over = threading.Event()
        self.answers: Counter[str] = Counter()
        self.failures: list[str] = []
        self.went_on = threading.Event()

    def work(self, number: int) -> None:
        while not self._over.is_set():
            with closing(self._line()) as line:
                while not self._over.is_set() and self._call(line, CALLS[number % len(CALLS)]):
                    number += 1

    def _line(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=PATIENCE)
        return http.client.HTTPSConnection(
            "127.0.0.1", self._server.port, timeout=PATIENCE, context=self._tls
        )

    def end(self) -> None:
        self._over.set()

    def _call(self, line: http.client.HTTPConnection, what: tuple[str, Mapping[str, Any]]) -> bool:
        message = raw.call(*what)
        fields = raw.headers(message, self._server.token)
        try:
            line.request("POST", "/t/demo/mcp", json.dumps(message), fields)
            response = line.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.failures.append(f"{what[0]}: {error!r}")
            return False
        if response.status == 200 and b'"result"' in body and b'"isError":true' not in body:
            self.answers[what[0]] += 1
            self.went_on.set()
        else:
            self.failures.append(f"{what[0]}: {response.status} {body!r}")
        self._over.wait(PAUSE)
        return not response.will_close

    def has_gone_on(self) -> None:
        self.went_on.clear()
        assert self.went_on.wait(PATIENCE)


@contextmanager
def loading(server: Server, tls: ssl.SSLContext | None = None, workers: int = 2) -> Iterator[Load]:
    load = Load(server, tls)
    with ThreadPoolExecutor(workers) as pool:
        working = [pool.submit(load.work, number) for number in range(workers)]
        try:
            yield load
        finally:
            load.end()
            for each in working:
                each.result(PATIENCE)
