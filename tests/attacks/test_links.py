"""Links of calls: a page is confirmed by its own person only, and by nothing less than a POST.

What a link preview, another person and a machine get, over real servers.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e import raw
from tests.e2e.admin import Admin
from tests.e2e.processes import Server

CAPABLE = {f"{raw.PREFIX}clientCapabilities": {"elicitation": {"url": {}, "form": {}}}}
INVENTED = "/t/demo/done/AAAAAAAAAAAAAAAAAAAAAA.mcps1-made-up"


def asked(server: Server) -> dict[str, Any]:
    """The result of a first round of `sign_off`."""
    message = raw.call("sign_off", {"release": "v7"}, **CAPABLE)
    result: dict[str, Any] = raw.post(server, message, server.token).message["result"]
    assert result["resultType"] == "input_required"
    return result


def path_of(result: Mapping[str, Any]) -> str:
    return urlsplit(result["inputRequests"]["page"]["params"]["url"]).path


def is_confirmed(server: Server, path: str) -> bool:
    """Whether its own person is told that it was confirmed."""
    password = (server.home / "admin-password").read_text().strip()
    page = Admin(server.port, password).get(path)
    assert "Confirm this request?" in page or "You have confirmed this" in page
    return "You have confirmed this" in page


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_link_preview_confirms_nothing_and_learns_nothing(attacked: Server, method: str) -> None:
    good = path_of(asked(attacked))
    replies = [raw.send(attacked, method, path) for path in (good, INVENTED, good[:-1])]
    assert {reply.status for reply in replies} == {302}
    for path, reply in zip((good, INVENTED, good[:-1]), replies, strict=True):
        assert reply.headers["location"].startswith("/admin/sign-in/?next=")
        assert reply.headers["location"].replace(path, "") == replies[0].headers[
            "location"
        ].replace(good, "")
        assert "set-cookie" not in reply.headers
    assert not is_confirmed(attacked, good)


def test_a_page_takes_no_callback(attacked: Server) -> None:
    good = path_of(asked(attacked))
    callback = good.replace("/done/", "/callback/")
    invented = INVENTED.replace("/done/", "/callback/")
    replies = [raw.send(attacked, "POST", path) for path in (callback, invented)]
    assert {(reply.status, reply.body) for reply in replies} == {(404, b"")}
    assert not is_confirmed(attacked, good)


def test_its_own_person_confirms_it_once_and_the_record_names_them(attacked: Server) -> None:
    good = path_of(asked(attacked))
    password = (attacked.home / "admin-password").read_text().strip()
    person = Admin(attacked.port, password)
    person.confirm(good)
    assert is_confirmed(attacked, good)
    changes = person.get("/admin/t/demo/audit-log/")
    assert "link.confirmed" in changes
