"""A creation that is repeated with its Idempotency-Key happens once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.catalogue.models import Primitive
from mcphost.identity import idempotency
from mcphost.identity.models import IdempotencyKey
from tests.api.client import ApiClient
from tests.api.conftest import ApiClients
from tests.api.samples import SAMPLES
from tests.cast import Cast
from tests.vault.parallel_threads import PATIENCE, at_once

TOOLS = next(sample for sample in SAMPLES if sample.path.endswith("tools"))
KEY = "4c0ff3e1-0b0e-4f7c-9d3e-8a8f0b9f9a31"
TIMES = 20


def create(client: ApiClient, key: str = KEY, **changes: Any) -> Any:
    return client.send(
        "POST", TOOLS.path, {**TOOLS.creation, **changes}, **{"Idempotency-Key": key}
    )


@pytest.mark.django_db
def test_a_repeated_creation_gets_the_same_response_and_creates_nothing(owner: ApiClient) -> None:
    first, again = create(owner), create(owner)
    assert first.status_code == again.status_code == 201
    assert (first.content, first.headers["Location"]) == (again.content, again.headers["Location"])
    assert first.headers["ETag"] == again.headers["ETag"] == owner.etag(first.headers["Location"])
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert Primitive.objects.count() == 1
    assert Entry.objects.filter(action="tool.created").count() == 1


@pytest.mark.django_db
def test_a_key_belongs_to_one_request_of_one_token(clients: ApiClients) -> None:
    assert create(clients.owner).status_code == 201
    refused = create(clients.owner, name="another")
    assert (refused.status_code, refused.json()["type"]) == (
        422,
        "urn:mcphost:problem:idempotency-key-reused",
    )
    assert create(clients.operator, name="another").status_code == 201
    assert create(clients.owner, key="another", name="third").status_code == 201
    assert Primitive.objects.count() == 3


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", "x" * 256, "with space", "ümlaut"])
def test_a_key_that_is_none_is_refused(owner: ApiClient, key: str) -> None:
    response = create(owner, key=key)
    assert (response.status_code, response.json()["type"]) == (
        400,
        "urn:mcphost:problem:malformed-request",
    )
    assert not Primitive.objects.exists()


@pytest.mark.django_db
def test_a_creation_that_was_refused_can_be_repeated_with_its_key(owner: ApiClient) -> None:
    assert create(owner, config={}).status_code == 422
    assert not IdempotencyKey.objects.exists()
    assert create(owner).status_code == 201


@pytest.mark.django_db
def test_a_change_that_is_repeated_with_its_key_is_not_refused_as_outdated(
    owner: ApiClient,
) -> None:
    path, created = owner.made(TOOLS.path, TOOLS.creation)
    publish = {"etag": created.headers["ETag"], "Idempotency-Key": KEY}
    first, again = (owner.send("POST", f"{path}/publish", {}, **publish) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.content == again.content
    assert Entry.objects.filter(action="tool.published").count() == 1


@pytest.mark.django_db
def test_keys_are_kept_for_a_day_and_then_pruned(owner: ApiClient) -> None:
    location = create(owner).headers["Location"]
    assert idempotency.prune() == 0
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=24, seconds=1))
    owner.send("DELETE", location, etag="*")
    assert create(owner).headers["Location"] != location
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=24, seconds=1))
    assert idempotency.prune() == 1
    assert not IdempotencyKey.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_same_creation_many_times_at_once_creates_one_object(owner: ApiClient) -> None:
    responses = at_once(lambda: create(owner), TIMES)
    assert {response.status_code for response in responses} == {201}
    assert len({(response.content, response.headers["Location"]) for response in responses}) == 1
    replays = [response for response in responses if "Idempotent-Replayed" in response.headers]
    assert len(replays) == TIMES - 1
    assert Primitive.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgresql
def test_a_creation_that_is_still_running_is_refused_after_a_while(
    cast: Cast, owner: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "LOCK_MS", 50)
    reserved, over = Event(), Event()

    def run_long() -> None:
        with transaction.atomic():
            assert idempotency.reserve_key(cast.owner.api_token.split("_")[1], KEY, "digest")
            reserved.set()
            over.wait(PATIENCE)
            transaction.set_rollback(True)
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_long)
        assert reserved.wait(PATIENCE)
        refused = create(owner)
        over.set()
        running.result(PATIENCE)
    assert (refused.status_code, refused.headers["Retry-After"]) == (409, "2")
    assert refused.json()["type"] == "urn:mcphost:problem:still-running"
    assert create(owner).status_code == 201
