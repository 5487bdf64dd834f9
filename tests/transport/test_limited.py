"""Who has not signed in can send pages no more than what forms hold."""

import pytest
from django.test import override_settings

from tests.mcp import Exchange, Reply

pytestmark = pytest.mark.django_db(transaction=True)

SIGN_IN = "/admin/login/"
FORM = "application/x-www-form-urlencoded"
SMALL = override_settings(MCPHOST_FORM_LIMIT=1000)


async def posted(*pieces: bytes, length: str = "") -> Reply:
    headers = {"host": "localhost", "content-type": FORM, "content-length": length}
    exchange = Exchange(SIGN_IN, {k: v for k, v in headers.items() if v})
    for piece in pieces:
        exchange.write(piece, more=True)
    exchange.write(b"")
    return await exchange.done()


@SMALL
async def test_a_form_that_says_that_it_is_too_large_is_refused_unread() -> None:
    assert (await posted(length="1001")).status == 413
    assert (await posted(length="9" * 5000)).status == 413


@SMALL
async def test_a_form_that_does_not_say_so_is_read_as_far_as_forms_may_go() -> None:
    reply = await posted(b"a=" + b"x" * 998, b"x", b"x" * 1000)
    assert (reply.status, reply.raw) == (413, b"The request is larger than 1000 bytes.\n")


@SMALL
async def test_a_form_that_is_as_large_as_forms_may_be_is_looked_at() -> None:
    # Not one of ours: what refuses it is the page itself.
    assert (await posted(b"a=" + b"x" * 998, length="1000")).status == 403
    assert (await posted(b"a=" + b"x" * 499, b"x" * 499)).status == 403
