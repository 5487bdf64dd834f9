"""Changes need the ETag of what they change, also when many come at once."""

from itertools import count
from typing import Any

import pytest

from mcphost.api.etags import required_tags
from mcphost.audit.models import Entry
from mcphost.catalogue.models import Primitive
from tests.api.client import ApiClient
from tests.api.samples import SAMPLES
from tests.console.concurrent_changes import before_the_change
from tests.vault.parallel_threads import at_once

TOOLS = next(sample for sample in SAMPLES if sample.path.endswith("tools"))
EDITS = 50


@pytest.fixture
def tool(owner: ApiClient) -> str:
    return owner.made(TOOLS.path, TOOLS.creation)[0]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "verb"),
    [("PUT", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/publish"), ("POST", "/disable")],
)
def test_a_change_without_a_condition_or_with_an_old_one_is_refused(
    owner: ApiClient, tool: str, method: str, verb: str
) -> None:
    read = owner.get(tool)
    body = TOOLS.creation if method == "PUT" else {}
    response = owner.send(method, tool + verb, body)
    assert (response.status_code, response.json()["type"][-21:]) == (428, "precondition-required")
    for tag in ('"another"', f"W/{read.headers['ETag']}", "another", ""):
        response = owner.send(method, tool + verb, body, **{"If-Match": tag})
        assert response.status_code == 412, tag
        assert response.json()["type"] == "urn:mcphost:problem:precondition-failed"
    assert owner.get(tool).content == read.content


@pytest.mark.django_db
def test_one_of_several_etags_or_a_star_is_enough(owner: ApiClient, tool: str) -> None:
    tags = f'"another", {owner.etag(tool)}'
    assert owner.send("PATCH", tool, {"title": "One"}, etag=tags).status_code == 200
    assert owner.send("PATCH", tool, {"title": "Two"}, etag="*").status_code == 200
    assert owner.send("PATCH", tool + "0", {"title": "Two"}, etag="*").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/v1/tenants/acme", "/api/v1/tenants", TOOLS.path, ""])
def test_a_client_that_takes_gzip_gets_no_compressed_response(
    owner: ApiClient, tool: str, path: str
) -> None:
    plain = owner.get(path or tool)
    response = owner.get(path or tool, Accept_Encoding="gzip")
    assert (response.get("Content-Encoding"), response.content) == (None, plain.content)
    assert response.get("ETag") == plain.get("ETag")


@pytest.mark.django_db
def test_the_etag_that_a_client_with_gzip_read_is_enough_for_its_change(
    owner: ApiClient, tool: str
) -> None:
    etag = owner.get(tool, Accept_Encoding="gzip, deflate, br").headers["ETag"]
    assert owner.send("PATCH", tool, {"title": "One"}, etag=etag).status_code == 200


@pytest.mark.django_db
def test_each_change_of_an_object_changes_its_etag(owner: ApiClient, tool: str) -> None:
    tags = [owner.etag(tool)]
    for verb in ("publish", "disable", "enable", "archive", "restore"):
        response = owner.send("POST", f"{tool}/{verb}", {}, etag=tags[-1])
        assert response.status_code == 200, response.content
        assert response.content == owner.get(tool).content
        tags.append(response.headers["ETag"])
    assert len(set(tags)) == len(tags)


@pytest.mark.django_db
def test_a_patch_of_whatever_there_is_does_not_undo_another_change(
    owner: ApiClient, tool: str
) -> None:
    """The patch was applied to what was read before."""
    rows = Primitive.objects.filter(pk=tool.rpartition("/")[2])
    with before_the_change(lambda: rows.update(title="Theirs")):
        response = owner.send("PATCH", tool, {"description": "Mine."}, etag="*")
    assert response.status_code == 412
    assert owner.get(tool).json()["title"] == "Theirs"


@pytest.mark.django_db
def test_a_change_of_what_was_deleted_meanwhile_is_404(owner: ApiClient, tool: str) -> None:
    etag, rows = owner.etag(tool), Primitive.objects.filter(pk=tool.rpartition("/")[2])
    with before_the_change(rows.delete):
        assert owner.send("POST", f"{tool}/publish", {}, etag=etag).status_code == 404


@pytest.mark.django_db
def test_what_the_client_has_already_is_not_sent_again(owner: ApiClient, tool: str) -> None:
    etag = owner.etag(tool)
    for tags in (etag, f"W/{etag}", f'"another", {etag}', "*"):
        response = owner.get(tool, If_None_Match=tags)
        assert (response.status_code, response.content) == (304, b"")
        assert response.headers["ETag"] == etag
    assert owner.get(tool, If_None_Match='"another"').status_code == 200


@pytest.mark.django_db(transaction=True)
def test_of_many_edits_at_once_with_one_etag_one_succeeds(owner: ApiClient, tool: str) -> None:
    etag, numbers, entries = owner.etag(tool), count(), Entry.objects.count()

    def edit() -> Any:
        return owner.send("PATCH", tool, {"title": f"Edit {next(numbers)}"}, etag=etag)

    responses = at_once(edit, EDITS)
    statuses = [response.status_code for response in responses]
    assert (statuses.count(200), statuses.count(412)) == (1, EDITS - 1)
    (accepted,) = (response for response in responses if response.status_code == 200)
    assert owner.get(tool).content == accepted.content
    assert Entry.objects.count() == entries + 1


@pytest.mark.django_db(transaction=True)
def test_the_same_edit_at_once_with_one_etag_succeeds_once(owner: ApiClient, tool: str) -> None:
    etag = owner.etag(tool)
    responses = at_once(lambda: owner.send("PATCH", tool, {"title": "Same"}, etag=etag), 8)
    assert sorted(response.status_code for response in responses) == [200] + [412] * 7


@pytest.mark.django_db
@pytest.mark.parametrize("sent", ["junk{}", "{} {}", "{}x", '"a', "{};"])
def test_what_is_no_list_of_etags_matches_nothing(owner: ApiClient, tool: str, sent: str) -> None:
    tags = sent.replace("{}", owner.etag(tool))
    assert owner.send("PATCH", tool, {"title": "One"}, etag=tags).status_code == 412
    assert owner.get(tool, **{"If-None-Match": tags}).status_code == 200


def test_a_header_without_etags_is_read_once_however_long_it_is() -> None:
    # Trying each space again takes minutes here, and the process serves nothing meanwhile.
    for header in (f'"a"{" " * 1_000_000}x', f"{',' * 1_000_000}x", '"a",' * 250_000 + "x"):
        assert required_tags(header) == frozenset()
    assert required_tags('"a",' * 250_000) == {'"a"'}


@pytest.mark.django_db
def test_the_etag_of_a_token_that_was_just_issued_is_that_of_the_token(owner: ApiClient) -> None:
    token = {"name": "laptop", "scopes": ["mcp:call"]}
    path, issued = owner.made("/api/v1/tenants/acme/tokens", token, Idempotency_Key="once")
    repeated = owner.send("POST", "/api/v1/tenants/acme/tokens", token, Idempotency_Key="once")
    tags = {response.headers["ETag"] for response in (issued, repeated, owner.get(path))}
    assert len(tags) == 1
    assert owner.send("POST", f"{path}/revoke", {}, etag=tags.pop()).status_code == 200
