"""An unpaired surrogate in a request becomes U+FFFD in each revision."""

import orjson
import pytest

from tests.cast import Cast
from tests.legacy import begin, calling
from tests.mcp import request, send
from tests.wire import SESSION_BASED

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("half", [b"\\ud83d", b"\xed\xa0\xbd"])
async def test_unpaired_surrogates_in_a_request_are_replaced(served: Cast, half: bytes) -> None:
    token = served.owner.mcp_token
    body = request("tools/call", {"name": "echo", "arguments": {"text": "a?"}})
    headers = {"mcp-method": "tools/call", "mcp-name": "echo"}
    reply = await send("acme", orjson.dumps(body).replace(b"a?", b"a" + half), token, headers)
    assert reply.text == "a\ufffd"
    for revision in SESSION_BASED:
        session = await begin("acme", token, revision)
        sent = orjson.dumps(calling("echo", {"text": "a?"})).replace(b"a?", b"a" + half)
        reply = await session.send(sent)
        assert reply.text == "a\ufffd"
