"""Publish the tools of `bench.kinds` at the demo: `python -m bench.publish PORT`, over `MCPHOST_HOME`.

PORT is that of the service on loopback that the HTTP tool calls.
"""

import sys
from dataclasses import replace
from typing import Any

import django

django.setup()

from django.utils.module_loading import autodiscover_modules  # noqa: E402 - needs django.setup()

from mcphost.audit.records import Actor  # noqa: E402
from mcphost.catalogue import services  # noqa: E402
from mcphost.catalogue.fields import PrimitiveFields  # noqa: E402
from mcphost.tenants.models import Tenant  # noqa: E402
from mcphost.tenants.selectors import snapshot  # noqa: E402
from mcphost.tenants.services import update_tenant  # noqa: E402

ACTOR = Actor.system("the benchmark")
# As the Python function says of itself: what is read-only is recorded with less.
READ_ONLY = {"readOnlyHint": True, "openWorldHint": False}
ECHO = '''\
def echo_script(text: str) -> str:
    """Return the text it was given."""
    return text
'''
ASK = '''\
def ask_script(text: str) -> str:
    """Asks, and says the same again."""
    answer = elicit("sure", "Are you sure?", {"sure": bool})
    return text if answer["sure"] else ""
'''


def _http(port: int) -> dict[str, Any]:
    return {
        "input_schema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        },
        "request": {
            "url": f"http://127.0.0.1:{port}/echo",
            "query": [{"name": "text", "value": "{arguments.text}"}],
        },
    }


def main(port: int) -> None:
    autodiscover_modules("wiring")
    tenant = Tenant.objects.get(slug="demo")
    fields = replace(snapshot(tenant).fields, outgoing_hosts=(f"http://127.0.0.1:{port}",))
    update_tenant(tenant.id, fields, actor=ACTOR)
    tools = (
        PrimitiveFields("echo_script", {"code": ECHO, "annotations": READ_ONLY}, kind="script"),
        PrimitiveFields("ask_script", {"code": ASK}, kind="script"),
        PrimitiveFields("echo_http", _http(port), kind="http"),
    )
    for tool in tools:
        made = services.create(tenant.id, replace(tool, description="For the benchmark."), ACTOR)
        services.publish(made.id, ACTOR)


if __name__ == "__main__":
    main(int(sys.argv[1]))
