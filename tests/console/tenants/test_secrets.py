import base64
import json
import re
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.signals import got_request_exception
from django.http import HttpRequest
from django.test import Client
from django.utils import timezone
from django.views.debug import ExceptionReporter

from mcphost.audit import last_use
from mcphost.audit.models import Entry
from mcphost.catalogue import services as catalogue
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.vault import selectors as keys
from mcphost.vault.errors import DamagedSecretError
from mcphost.vault.models import StoredSecret
from mcphost.vault.secrets.selectors import forget_everything, load_secret
from tests.cast import Cast
from tests.console.tenant_data import ACTOR
from tests.plugins.canaries import CANARY
from tests.stored_bytes import stored_bytes

SECRETS = "/admin/t/acme/secrets/"
NEW = f"{SECRETS}new/"
NEW_SECRET = {
    "name": "weather_key",
    "value": "a-secret-value",
    "hosts": "api.example.com\r\nb.example.com:8443",
    "places": ["header", "query"],
}
HOSTILE = "<script>alert(1)</script>\"'&{{ 7 }}"

pytestmark = pytest.mark.django_db


def made(client: Client, **fields: Any) -> StoredSecret:
    assert client.post(NEW, {**NEW_SECRET, **fields}).status_code == 302
    return StoredSecret.objects.get(name=fields.get("name", "weather_key"))


def page(client: Client, path: str = SECRETS) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def uses_secret(name: str) -> PrimitiveFields:
    header = {"name": "X-Key", "value": "{secrets.weather_key}"}
    request = {"method": "GET", "url": "https://api.example.com/", "headers": [header]}
    return PrimitiveFields(name, {"request": request}, kind="http", description="Reads it.")


def value_of(cast: Cast, name: str = "weather_key") -> str:
    found = load_secret(cast.acme.id, name)
    return found.reveal()


def pages_of(secret: StoredSecret) -> list[str]:
    return [f"{SECRETS}{secret.pk}/{verb}/" for verb in ("rotate", "edit", "delete")]


def test_the_value_field_of_a_secret_is_hidden_and_never_refilled(owner: Client) -> None:
    rotate, edit, _ = pages_of(made(owner))
    for path in (NEW, rotate, edit):
        form = page(owner, path)
        field = form[form.index('name="value"') - 60 :][:400]
        assert 'type="password"' in field
        assert 'autocomplete="off"' in field
        assert 'value="' not in field.replace('name="value"', "")
        refused = owner.post(path, {**NEW_SECRET, "name": "No Name", "value": "tooshrt"})
        assert refused.status_code == 200
        assert b"tooshrt" not in refused.content
    refused = owner.post(NEW, {**NEW_SECRET, "hosts": ""})
    assert "weather_key" in refused.content.decode()
    assert "The value was not kept." in refused.content.decode()
    assert NEW_SECRET["value"] not in refused.content.decode()
    assert not any("secret" in key for key in owner.session.keys())  # noqa: SIM118


def test_a_secret_is_stored_rotated_edited_and_deleted(operator: Client, cast: Cast) -> None:
    assert "No secrets yet" in page(operator)
    rotate, edit, delete = pages_of(made(operator))
    listed = page(operator)
    for shown in ("weather_key", "api.example.com", "b.example.com:8443", "header, query"):
        assert shown in listed
    assert NEW_SECRET["value"] not in listed
    assert value_of(cast) == NEW_SECRET["value"]
    saved = operator.post(rotate, {"value": "another-secret-value"}, follow=True).content.decode()
    assert "has a new value" in saved
    assert value_of(cast) == "another-secret-value"
    form = page(operator, edit)
    assert "api.example.com\nb.example.com:8443" in form
    assert re.findall(r'name="places" value="(\w+)"[^>]* checked>', form) == ["header", "query"]
    rules = {"hosts": "c.example.com", "places": ["body"]}
    assert list(operator.post(edit, rules).context["form"].errors) == ["value"]
    assert "c.example.com" not in page(operator)
    third = {"value": "a-third-secret-value"}
    for value, replaced in ((third, True), ({"value": ""}, False)):
        saved = operator.post(edit, {**rules, **value}, follow=True).content.decode()
        assert "Saved." in saved
        assert ("The value was replaced by the one that you typed." in saved) is replaced
        assert third["value"] not in saved
        assert value_of(cast) == third["value"]
    listed = page(operator)
    assert "c.example.com" in listed
    assert "api.example.com" not in listed
    assert "cannot be restored" in page(operator, delete)
    for typed in ("", "weather_ke", "WEATHER_KEY"):
        assert list(operator.post(delete, {"name": typed}).context["form"].errors) == ["name"]
    done = operator.post(delete, {"name": "weather_key"}, follow=True)
    assert "Secret weather_key is deleted." in done.content.decode()
    for path in (rotate, edit, delete):
        assert operator.post(path, {**rules, "name": "x", "value": "y"}).status_code == 404
    entries = Entry.objects.filter(action__startswith="secret.").order_by("id")
    verbs = ["created", "rotated", "changed", "rotated", "deleted"]
    assert [entry.action for entry in entries] == [f"secret.{verb}" for verb in verbs]
    assert {entry.actor_label for entry in entries} == {"operator"}


def test_what_still_uses_a_secret_is_named_before_it_is_deleted(operator: Client, cast: Cast):
    *_, delete = pages_of(made(operator))
    assert "<li>Nothing uses it.</li>" in page(operator, delete)
    ids = [catalogue.create(cast.acme.id, uses_secret(name), ACTOR).id for name in ("now", "soon")]
    unpublished = "<code>now</code>, <code>soon</code> still name it, but are not published."
    assert unpublished in page(operator, delete)
    links = [f'<a href="/admin/t/acme/tools/{id}/">the tool {{}}</a>' for id in ids]
    now, soon = (link.format(name) for link, name in zip(links, ("now", "soon"), strict=True))
    catalogue.publish(ids[0], ACTOR)
    blocked = page(operator, delete)
    assert f"First disable {now}, or give it another secret.</p>" in blocked
    assert "c-danger" not in blocked
    catalogue.publish(ids[1], ACTOR)
    blocked = page(operator, delete)
    assert "First disable these, or give them another secret:</p>" in blocked
    assert f"<li>{now}</li><li>{soon}</li>" in blocked
    catalogue.disable(ids[0], ACTOR)
    catalogue.disable(ids[1], ACTOR)
    assert "c-danger" in page(operator, delete)


def test_an_auditor_sees_names_and_last_use_of_secrets_but_no_form(
    owner: Client, auditor: Client, cast: Cast
):
    secret = made(owner)
    assert "never" in page(auditor)
    value_of(cast)
    last_use.flush(timezone.now())
    text = page(auditor)
    assert "weather_key" in text
    assert "just now" in text
    assert str(secret.pk) not in text
    assert "/secrets/new/" not in text


def test_a_secret_value_is_stored_unchanged_or_refused(owner: Client, cast: Cast) -> None:
    for text in ("a-value\0more", "a-value\r\nX: 1", "\u202egnp.exe", "x" * 100_000):
        response = owner.post(NEW, {**NEW_SECRET, "value": text})
        assert list(response.context["form"].errors) == ["value"]
        assert text[:50] not in response.content.decode()
    assert not StoredSecret.objects.exists()
    rotate, *_ = pages_of(made(owner))
    for text in (HOSTILE, "'; DROP TABLE", "${jndi:ldap://x}", "%s%n %(a)s {0}"):
        assert owner.post(rotate, {"value": text}).status_code == 302
        assert value_of(cast) == text
        assert text not in page(owner)


@pytest.fixture
def reports() -> Iterator[list[str]]:
    """What Django would send to administrators for each server error."""
    found: list[str] = []

    def report(request: HttpRequest, **_: Any) -> None:
        reporter = ExceptionReporter(request, *sys.exc_info())
        found.extend((reporter.get_traceback_html(), reporter.get_traceback_text()))

    got_request_exception.connect(report)
    yield found
    got_request_exception.disconnect(report)


@pytest.mark.parametrize("form", ["new", "edit"])
def test_server_error_reports_contain_no_secret_value(owner, reports, settings, form):
    rotate, edit, _ = pages_of(made(owner))
    path = {"new": NEW, "rotate": rotate, "edit": edit}[form]
    owner.raise_request_exception = False
    keys.forget_everything()
    settings.MCPHOST_MASTER_KEY = lambda: b"another master key, 32 bytes lg."
    response = owner.post(path, {**NEW_SECRET, "name": "other", "value": CANARY})
    assert response.status_code == 500
    assert [CANARY in each for each in reports] == [False, False]
    assert "weather_key" in reports[0] or "api.example.com" in reports[0]
    assert CANARY not in response.content.decode()


def encoded(value: str) -> list[bytes]:
    """The value as it is, in hexadecimal, and at each offset in Base64."""
    plain = value.encode()
    shifted = [base64.b64encode(b"x" * offset + plain)[4:-4] for offset in range(3)]
    return [plain, plain[::-1], plain.hex().encode(), *shifted]


@pytest.mark.django_db(transaction=True)
def test_a_secret_value_is_in_no_page_entry_error_session_or_file(acme, cast, browse):
    """The log is searched for it after every test."""
    owner, auditor = browse(cast.owner), browse(cast.auditor)
    owner.raise_request_exception = False
    shown = [owner.post(NEW, {**NEW_SECRET, "value": CANARY}, follow=True)]
    secret = StoredSecret.objects.get(name="weather_key")
    rotate, edit, delete = pages_of(secret)
    shown += [
        owner.post(rotate, {"value": f"{CANARY}-2"}, follow=True),
        owner.post(rotate, {"value": f"{CANARY}\r\nX-More: 1"}),
        owner.post(edit, {"hosts": "no host", "places": ["header"], "value": CANARY}),
        owner.post(edit, {**NEW_SECRET, "value": f"{CANARY}\0"}),
        owner.post(edit, {**NEW_SECRET, "value": f"{CANARY}-2"}, follow=True),
        owner.post(NEW, {**NEW_SECRET, "value": f"{CANARY}-3"}),
        owner.post(NEW, {**NEW_SECRET, "name": "other", "value": f"{CANARY}\0"}),
        owner.post(delete, {"name": "no", "value": CANARY}),
    ]
    assert value_of(cast) == f"{CANARY}-2"
    StoredSecret.objects.filter(pk=secret.pk).update(version=7)
    forget_everything()
    with pytest.raises(DamagedSecretError) as damaged:
        value_of(cast)
    assert CANARY not in "".join(traceback.format_exception(damaged.value))
    shown += [client.get(path) for client in (owner, auditor) for path in (SECRETS, edit, rotate)]
    shown += [owner.get("/admin/t/acme/audit-log/"), owner.get("/admin/t/acme/calls/")]
    for response in shown:
        for form in encoded(CANARY):
            assert form not in response.content
            assert form.decode() not in str(response.headers)
    entries = json.dumps([str(entry) for entry in Entry.objects.values()])
    everything = stored_bytes()
    assert b"weather_key" in everything
    for form in encoded(CANARY):
        assert form.decode() not in entries
        assert form not in everything
