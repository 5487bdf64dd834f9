"""What a tool sends is compared with the tenant's secrets and hosts before it is published."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from mcphost.catalogue import selectors, services
from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import update_tenant
from mcphost.vault.secrets.services import change_secret, delete_secret
from tests.catalogue.memory_kind import ACTOR
from tests.vault.secrets.tenant_secret import NAME, VALUE, stored

pytestmark = pytest.mark.django_db

URL = "https://api.example.com/orders"


def fields(url: str = URL, **request: Any) -> PrimitiveFields:
    keyed = {"headers": [{"name": "X-Key", "value": f"{{secrets.{NAME}}}"}]}
    config = {"request": {"url": url, **(request or keyed)}}
    return PrimitiveFields(name="order", kind="http", description="Reads.", config=config)


def draft(tenant: UUID, given: PrimitiveFields) -> UUID:
    return services.create(tenant, given, ACTOR).id


def refused(primitive: UUID) -> Mapping[str, Any]:
    with pytest.raises(InvalidPrimitiveError) as caught:
        services.publish(primitive, ACTOR)
    return caught.value.problems


def allow(tenant: UUID, *hosts: str) -> None:
    update_tenant(tenant, TenantFields(title="Acme", outgoing_hosts=hosts), actor=ACTOR)


def test_publishing_requires_that_the_named_secret_exists(acme: UUID, globex: UUID) -> None:
    made = draft(acme, fields())
    stored(globex)  # a secret of another tenant is none
    assert refused(made) == {
        "config.request.headers.0.value": [
            f"There is no secret {NAME!r}. Store it under Secrets, or name another one."
        ]
    }
    changed = replace(fields(), description="Reads one.")
    assert services.update(made, changed, ACTOR).state == "draft", "saving is not refused"
    secret = stored(acme)
    assert services.publish(made, ACTOR).state == "published"
    rules = {"hosts": ["other.example"], "places": ["header"]}
    change_secret(acme, secret, **rules, actor=ACTOR, value=VALUE)
    services.update(made, fields(), ACTOR)
    assert "may not be sent" in str(refused(made)), "the secret was narrowed"


@pytest.mark.parametrize(
    ("url", "rules", "words"),
    [
        (URL, {"hosts": ["other.example"]}, "may not be sent to api.example.com. Add this host"),
        (URL, {"hosts": ["api.example.com:8443"]}, "may not be sent to api.example.com"),
        (URL, {"places": ["query", "body"]}, "may not be in a header. Add this place"),
        ("http://api.example.com/", {}, "is sent over https only"),
    ],
)
def test_publishing_requires_that_the_secret_may_be_sent_to_that_host_and_place(
    acme, url, rules, words
):
    stored(acme, **rules)
    allow(acme, "*", "http://api.example.com")
    (sentence,) = refused(draft(acme, fields(url)))["config.request.headers.0.value"]
    assert words in sentence


@pytest.mark.parametrize(
    ("url", "hosts", "words"),
    [
        (URL, ["other.example"], "among the hosts that tools of this tenant may call. Add api.example.com "),
        ("https://api.example.com:8443/", [], "port 443 only. Add api.example.com:8443 to Hosts"),
        ("http://api.example.com/", [], "Add http://api.example.com to Hosts that tools may call"),
    ],
)  # fmt: skip
def test_publishing_requires_that_the_host_is_allowed(
    acme: UUID, url: str, hosts: list[str], words: str
) -> None:
    allow(acme, *hosts)
    made = draft(acme, fields(url, method="GET"))
    (sentence,) = refused(made)["config.request.url"]
    assert words in sentence
    allow(acme, "*", "https://*:8443", "http://*")
    services.publish(made, ACTOR)


def test_enabling_a_tool_requires_its_secret(acme: UUID) -> None:
    secret = stored(acme)
    made = draft(acme, fields())
    services.publish(made, ACTOR)
    with pytest.raises(InvalidError, match="order"):
        delete_secret(acme, secret, actor=ACTOR)
    services.disable(made, ACTOR)
    assert delete_secret(acme, secret, actor=ACTOR)
    with pytest.raises(InvalidPrimitiveError, match="There is no secret"):
        services.enable(made, ACTOR)


def script(headers: str = "{}") -> PrimitiveFields:
    code = f"def order() -> str:\n    return http.get({URL!r}, headers={headers}).text\n"
    return PrimitiveFields(name="order", kind="script", description="Reads.", config={"code": code})


def test_a_script_is_published_only_if_its_hosts_and_secrets_are_allowed(acme: UUID) -> None:
    made = draft(acme, script(f"{{'X-Key': secret({NAME!r}), 'X-Again': secret({NAME!r})}}"))
    allow(acme, "other.example")
    host, missing = refused(made)["config.code"]
    assert "Add api.example.com to Hosts that tools may call" in host
    assert missing == f"There is no secret {NAME!r}. Store it under Secrets, or name another one."
    allow(acme, "api.example.com")
    secret = stored(acme, hosts=["other.example"])
    (sentence,) = refused(made)["config.code"]
    assert "may not be sent to api.example.com. Add this host" in sentence
    change_secret(
        acme, secret, hosts=["api.example.com"], places=["header"], actor=ACTOR, value=VALUE
    )
    for published in (False, True):
        (use,) = selectors.secret_uses(acme)[NAME]
        assert (use.id, use.published) == (made, published)
        if not published:
            services.publish(made, ACTOR)
