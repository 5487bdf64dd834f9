"""A script with a loop that asks in every turn, and the service that it sends requests to."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.e2e import raw
from tests.e2e.handmade_calls import Asker, accept, at, wait_until
from tests.e2e.nodes import Node, Service
from tests.e2e.processes import Server

TURNS = 3
PATIENCE = 60
TOOL, TASK = "book_seats", "book_seats_later"
"""The same script: as a tool, and as one that becomes a task."""
SOURCE = '''
import json


async def book_seats(trip: str, seats: int) -> str:
    """{title}"""
    booked = []
    total = 0
    for number in range(seats):
        sent = await http.post("{url}/prices", json={{"trip": trip, "seat": number}})
        price = sent.json()["price"]
        total += price
        answer = await elicit(
            f"seat-{{number}}", f"Seat {{number}} costs {{price}}. Bags?", {{"bags": int}}
        )
        booked.append([number, price, answer["bags"]])
        total += answer["bags"]
    return json.dumps({{"trip": trip, "booked": booked, "total": total}})
'''
PUBLISH = """
import json, os
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.models import Primitive
from mcphost.tenants import services as tenants
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.models import Tenant
kinds.discover()
given = json.loads({given!r})
actor = Actor.system("a test")
tenant = Tenant.objects.get(slug="demo").id
texts = TenantFields("Demo", outgoing_hosts=tuple(given["hosts"]))
tenants.update_tenant(tenant, texts, actor=actor)
for name, config in given["tools"].items():
    fields = PrimitiveFields(name=name, kind=given["kind"], config=config)
    found = Primitive.objects.filter(tenant=tenant, name=name).first()
    row = services.update(found.id, fields, actor) if found else services.create(tenant, fields, actor)
    services.publish(row.id, actor)
"""


class Prices:
    """An HTTP service."""

    def __init__(self) -> None:
        self.port = 0
        self.sent: dict[tuple[str, int], list[str]] = {}
        self.holds = threading.Event()
        self.holds.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def price(self, trip: str, seat: int, key: str) -> int:
        keys = self.sent.setdefault((trip, seat), [])
        keys.append(key)
        return 10 * (seat + 1) + 1000 * (len(set(keys)) - 1)

    def requests(self, trip: str) -> Counter[int]:
        return Counter({seat: len(keys) for (of, seat), keys in self.sent.items() if of == trip})

    def handler(self) -> type[BaseHTTPRequestHandler]:
        prices = self

        class Pricing(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = PATIENCE

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                price = prices.price(asked["trip"], asked["seat"], self.headers["Idempotency-Key"])
                prices.holds.wait(PATIENCE)
                body = json.dumps({"price": price}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Pricing


@contextmanager
def pricing() -> Iterator[Prices]:
    prices = Prices()
    server = ThreadingHTTPServer(("127.0.0.1", 0), prices.handler())
    prices.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield prices
    finally:
        prices.holds.set()
        server.shutdown()
        thread.join()
        server.server_close()


def publish(service: Service, prices: Prices, title: str) -> None:
    """Publish the script, or another version of it: other code, which does the same."""
    code = SOURCE.format(title=title, url=prices.url)
    later = {"code": code.replace(TOOL, TASK), "tasks": "always"}
    publish_tools(service, "script", prices, {TOOL: {"code": code}, TASK: later})


def publish_tools(
    service: Service, kind: str, prices: Prices, tools: dict[str, dict[str, Any]]
) -> None:
    given = json.dumps({"kind": kind, "hosts": [prices.url], "tools": tools})
    service.manage("shell", "-c", PUBLISH.format(given=given))


def serves(server: Server, title: str) -> bool:
    listed = raw.post(server, raw.request("tools/list", {}), server.token).message["result"]
    return sum(title in tool.get("description", "") for tool in listed["tools"]) == 2


def wait_for(service: Service, node: Node, title: str) -> None:
    wait_until(lambda: serves(at(service, node), title))


def asker(trip: str) -> Asker:
    return Asker(TOOL, {"trip": trip, "seats": TURNS})


def bags(message: str) -> dict[str, Any]:
    return accept(bags=seat(message) + 1)


def seat(message: str) -> int:
    return int(message.split()[1])


def expected(trip: str) -> dict[str, Any]:
    booked = [[number, 10 * (number + 1), number + 1] for number in range(TURNS)]
    return {"trip": trip, "booked": booked, "total": sum(price + had for _, price, had in booked)}
