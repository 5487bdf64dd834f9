"""A program with a token of the administration API, over real connections."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from tests.e2e import raw
from tests.e2e.processes import Server

ROOT = "/api/v1"


@dataclass(frozen=True)
class ApiProgram:
    """Reads and changes through the API. Each answer must have the status that is expected."""

    server: Server
    token: str

    def get(self, path: str, status: int = 200) -> Any:
        return self._send("GET", path, None, status)

    def create(self, path: str, status: int = 201, **fields: Any) -> Any:
        return self._send("POST", path, fields, status, idempotency_key=uuid4().hex)

    def act(self, path: str, status: int = 200, **fields: Any) -> Any:
        """Do something with an object, whatever it is now."""
        return self._send("POST", path, fields, status, if_match="*")

    def _send(self, method: str, path: str, fields: Any, status: int, **headers: str) -> Any:
        body = b"" if fields is None else json.dumps(fields).encode()
        reply = raw.send(
            self.server,
            method,
            f"{ROOT}{path}",
            body,
            Authorization=f"Bearer {self.token}",
            Content_Type="application/json",
            **headers,
        )
        assert reply.status == status, f"{method} {path}: {reply.status} {reply.body!r}"
        return reply.json
