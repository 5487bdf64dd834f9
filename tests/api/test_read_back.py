"""What was written is read back: for every resource and each of its writable fields."""

from typing import Any

import pytest

from mcphost.audit.models import Entry
from tests.api.client import ApiClient
from tests.api.samples import CHANGEABLE, SAMPLES, ApiSample
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def resource_name(sample: ApiSample) -> str:
    return sample.path.rpartition("/")[2]


every_resource = pytest.mark.parametrize("sample", SAMPLES, ids=resource_name)
every_changeable = pytest.mark.parametrize("sample", CHANGEABLE, ids=resource_name)


def existing(owner: ApiClient, sample: ApiSample) -> str:
    """Return the address of an object of the sample, created if there is none."""
    if not sample.creation:
        return sample.path
    return owner.made(sample.path, {**sample.creation, **sample.hidden})[0]


def same_bytes(read: Any, response: Any) -> bool:
    return bool(
        read.content == response.content and read.headers["ETag"] == response.headers["ETag"]
    )


@every_resource
def test_a_creation_returns_the_whole_object_which_is_read_back_equal(
    owner: ApiClient, sample: ApiSample
) -> None:
    path = sample.path
    if sample.creation:
        path, response = owner.made(sample.path, {**sample.creation, **sample.hidden})
        written = response.json()
        assert {name: written[name] for name in sample.creation} == sample.creation
        assert same_bytes(owner.get(path), response)
    members = owner.get(path).json()
    assert set(members).issuperset({*sample.creation, *sample.changes})


@every_changeable
def test_each_field_that_is_written_is_read_back_equal(owner: ApiClient, sample: ApiSample) -> None:
    path = existing(owner, sample)
    for name, value in sample.changes.items():
        before = owner.get(path)
        members = before.json()
        response = owner.send("PUT", path, {**members, name: value}, etag=before.headers["ETag"])
        assert response.status_code == 200, response.content
        read = owner.get(path)
        assert same_bytes(read, response)
        assert read.json()[name] == value
        assert list(read.json()[name]) == list(value) if isinstance(value, dict) else True
        unwritten = {*sample.changes, *sample.creation} - {name}
        assert all(read.json()[other] == members[other] for other in unwritten)


@every_changeable
def test_a_merge_patch_changes_the_fields_that_it_names(
    owner: ApiClient, sample: ApiSample
) -> None:
    path = existing(owner, sample)
    for name, value in sample.changes.items():
        if isinstance(value, dict):
            continue  # is merged into what is there
        before = owner.get(path)
        response = owner.send("PATCH", path, {name: value}, etag=before.headers["ETag"])
        assert response.status_code == 200, response.content
        assert response.json()[name] == value
        unwritten = {*sample.changes, *sample.creation} - {name}
        assert all(response.json()[other] == before.json()[other] for other in unwritten)


@every_changeable
def test_writing_back_what_was_read_changes_nothing_and_keeps_the_etag(
    owner: ApiClient, sample: ApiSample
) -> None:
    path = existing(owner, sample)
    read, entries = owner.get(path), Entry.objects.count()
    response = owner.send("PUT", path, read.content, etag=read.headers["ETag"])
    assert response.status_code == 200, response.content
    assert same_bytes(read, response)
    assert same_bytes(owner.get(path), read)
    assert Entry.objects.count() == entries


@every_changeable
def test_unknown_fields_and_changes_of_others_are_refused_by_name(
    owner: ApiClient, sample: ApiSample
) -> None:
    path = existing(owner, sample)
    read = owner.get(path)
    members, etag = read.json(), read.headers["ETag"]
    read_only = set(members) - {*sample.changes, *sample.creation}
    assert "id" in read_only
    wrong = dict.fromkeys(read_only, "another")
    response = owner.send("PUT", path, {**members, **wrong}, etag=etag)
    assert response.status_code == 422
    assert {fault["pointer"] for fault in response.json()["errors"]} == {
        f"/{name}" for name in read_only
    }
    for method in ("PUT", "PATCH"):
        response = owner.send(method, path, {**members, "colour": "red"}, etag=etag)
        assert response.status_code == 422
        (fault,) = response.json()["errors"]
        assert (fault["pointer"], fault["code"]) == ("/colour", "extra_forbidden")
    assert same_bytes(owner.get(path), read)


@every_changeable
def test_values_of_another_type_are_refused_and_not_converted(
    owner: ApiClient, sample: ApiSample
) -> None:
    path = existing(owner, sample)
    read = owner.get(path)
    for name in sample.changes:
        for value in (["5"], {"5": 5}, 5, "5", True):
            if type(value) is type(sample.changes[name]) or type(value) is type(read.json()[name]):
                continue
            if isinstance(value, int) and isinstance(read.json()[name], float | None):
                continue
            response = owner.send(
                "PUT", path, {**read.json(), name: value}, etag=read.headers["ETag"]
            )
            assert response.status_code == 422, (name, value)
            assert response.json()["errors"][0]["pointer"].startswith(f"/{name}")
    assert same_bytes(owner.get(path), read)


@every_changeable
def test_a_field_that_is_fixed_after_the_creation_is_refused(
    owner: ApiClient, sample: ApiSample
) -> None:
    path = existing(owner, sample)
    read = owner.get(path)
    for name in sample.fixed:
        response = owner.send(
            "PUT", path, {**read.json(), name: "script"}, etag=read.headers["ETag"]
        )
        assert response.status_code == 422
    assert same_bytes(owner.get(path), read)


def test_a_value_that_would_be_stored_in_another_form_is_refused(
    owner: ApiClient, cast: Cast
) -> None:
    path = "/api/v1/tenants/acme"
    values = {"title": " Acme ", "allowed_origins": ["HTTPS://App.Example:443"]}
    response = owner.send("PATCH", path, values, etag=owner.etag(path))
    assert response.status_code == 422
    faults = {fault["pointer"]: fault for fault in response.json()["errors"]}
    assert {fault["code"] for fault in faults.values()} == {"not_normal"}
    assert "'Acme'" in faults["/title"]["detail"]
    assert "https://app.example" in faults["/allowed_origins"]["detail"]
    assert owner.get(path).json()["title"] == "Acme"


def test_times_may_be_sent_back_as_libraries_write_them(owner: ApiClient) -> None:
    sample = next(sample for sample in SAMPLES if sample.path.endswith("tools"))
    path, response = owner.made(sample.path, sample.creation)
    members = response.json()
    members["created_at"] = members["created_at"].replace("Z", "+00:00")
    written = owner.send("PUT", path, members, etag=response.headers["ETag"])
    assert (written.status_code, written.content) == (200, response.content)
    members["created_at"] = members["created_at"].replace("+00:00", "+01:00")
    assert owner.send("PUT", path, members, etag="*").status_code == 422


def test_a_deleted_draft_is_gone_and_its_name_can_be_used_again(owner: ApiClient) -> None:
    sample = next(sample for sample in SAMPLES if sample.path.endswith("tools"))
    path, response = owner.made(sample.path, sample.creation)
    deletion = owner.send("DELETE", path, etag=response.headers["ETag"])
    assert (deletion.status_code, deletion.content) == (204, b"")
    assert owner.get(path).status_code == 404
    assert owner.send("DELETE", path, etag="*").status_code == 404
    assert owner.get(sample.path).json()["items"] == []
    owner.made(sample.path, sample.creation)
