"""The service that the templates of the gallery call: it answers as their authors expect."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from mcphost.kinds.http.replies import ANSWERS, ASKS
from tests.egress.conftest import Arrived, write

ORDERS = [
    {"number": 17, "customer": {"name": "Ada", "city": "Oslo"}, "total": 12.5, "state": "open"},
    {"number": 18, "customer": {"name": "Bob", "city": "Bonn"}, "total": 7.5, "state": "open"},
]
PAGES: Mapping[str, Any] = {
    "": {"customers": [{"id": 1, "name": "Ada", "phone": "1"}], "next_cursor": "second"},
    "second": {"customers": [{"id": 2, "name": "Bob", "phone": "2"}], "next_cursor": None},
}
SLOT = {"type": "string", "enum": ["morning", "evening"]}
SLOTS = {"type": "object", "properties": {"slot": SLOT}, "required": ["slot"]}
ASKING = {
    "requests": {"slot": {"message": "Which slot?", "requestedSchema": SLOTS}},
    "state": "order 17",
}


class Shop:
    """Handles requests; `seen` are their methods and paths, `deleted` the keys of deletions."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.seen: list[str] = []
        self.deleted: list[str] = []
        self.checks = 0

    async def handle(self, request: Arrived, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        sent: Any = orjson.loads(request.body) if request.body else None
        self.seen.append(f"{request.method} {parts.path}")
        if request.headers.get("content-type") == ANSWERS:
            said = {"booked": sent["responses"]["slot"]["content"]["slot"], **sent["request"]}
        elif self.seen[-1] == "POST /deliveries":
            write(writer, 200, orjson.dumps(ASKING), Content_Type=ASKS)
            return
        else:
            said = self._said(request, query, sent)
        status = 404 if said is None else 200
        write(writer, status, orjson.dumps(said), Content_Type="application/json")

    def _said(self, request: Arrived, query: Mapping[str, str], sent: Any) -> Any:
        match self.seen[-1]:
            case "GET /orders/17":
                return {"number": 17, "customer": "Ada"}
            case "DELETE /orders/17":
                self.deleted.append(request.headers["idempotency-key"])
                return {}
            case "GET /customers":
                return PAGES[query.get("cursor", "")]
            case "GET /sales":
                assert query["month"] == "2026-10"
                return {"orders": len(query["region"]), "revenue": 10.5}
            case "GET /orders":
                return {"orders": [each for each in ORDERS if each["state"] == query["state"]]}
            case "POST /tickets/4/close":
                return {"state": f"{sent['result']}: {sent.get('reason', 'no reason')}"}
            case "POST /exports":
                return {"id": sent["year"]}
            case "GET /exports/2026":
                return self._export()
        return None

    def _export(self) -> dict[str, Any]:
        self.checks += 1
        if self.checks < 3:
            return {"status": "running", "done": 100 * self.checks, "total": 300}
        return {"status": "finished", "done": 300, "total": 300, "file": "orders-2026.csv"}
