"""What a configuration sends to other services: whether the tenant's secrets and hosts allow it.

A call would be refused otherwise, when its author is not there to read why.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings

from mcphost.catalogue import kinds
from mcphost.egress.addresses import AllowedHost, Target, secret_hosts
from mcphost.kinds.kind import Sending
from mcphost.tenants.models import Tenant
from mcphost.vault.secrets.fields import SecretRules
from mcphost.vault.secrets.selectors import SecretRow, locked_secrets, tenant_secrets

_EVERYWHERE = ("*",)
_PLACES = {"header": "in a header", "query": "in the query", "body": "in the body"}


def problems(tenant_id: UUID, kind: str, config: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return why calls would be refused, as far as it is known before one, by `config.<field>`."""
    sent = kinds.sendings_of(kind, config)
    return _problems(sent, tenant_secrets(tenant_id), _hosts(tenant_id)) if sent else {}


def locked_problems(tenant_id: UUID, kind: str, config: Mapping[str, Any]) -> dict[str, list[str]]:
    """As `problems`, and keep the secrets as they are until the transaction ends.

    So a secret is not deleted while something that uses it is being published.
    """
    sent = kinds.sendings_of(kind, config)
    names = {sending.secret for sending in sent if sending.secret}
    if not sent:
        return {}
    return _problems(sent, locked_secrets(tenant_id, names), _hosts(tenant_id))


def problems_with(
    kind: str, config: Mapping[str, Any], secrets: Iterable[SecretRow], hosts: Sequence[str]
) -> dict[str, list[str]]:
    """As `problems`, for a tenant that has these secrets and lets its tools call these hosts."""
    return _problems(kinds.sendings_of(kind, config), secrets, hosts)


def _hosts(tenant_id: UUID) -> Sequence[str]:
    hosts: list[str] = Tenant.objects.values_list("outgoing_hosts", flat=True).get(pk=tenant_id)
    return hosts


def _problems(
    sent: Iterable[Sending], secrets: Iterable[SecretRow], hosts: Sequence[str]
) -> dict[str, list[str]]:
    problems: dict[str, list[str]] = {}
    secret_rules = {row.name: row.rules for row in secrets}
    for sending in sent:
        messages = (
            _about_secret(sending, secret_rules) if sending.secret else _about_host(sending, hosts)
        )
        problems.setdefault(f"config.{sending.field}", []).extend(messages)
    # A script may send one secret in several requests.
    return {
        field: list(dict.fromkeys(messages)) for field, messages in problems.items() if messages
    }


def _about_host(sending: Sending, hosts: Sequence[str]) -> Iterator[str]:
    target = Target.parse(sending.url)
    if any(AllowedHost.parse(entry).matches(target) for entry in hosts or _EVERYWHERE):
        return
    allowed = (
        "is not among the hosts that tools of this tenant may call"
        if hosts
        else "cannot be called: without a list of hosts, tools may call https on port 443 only"
    )
    entry = target.origin if target.scheme == "http" else target.authority
    yield (
        f"{target.origin} {allowed}. Add {entry} to Hosts that tools may call, in the tenant's "
        "settings."
    )


def _about_secret(sending: Sending, secret_rules: Mapping[str, SecretRules]) -> Iterator[str]:
    name, rules = sending.secret, secret_rules.get(sending.secret)
    if rules is None:
        yield f"There is no secret {name!r}. Store it under Secrets, or name another one."
        return
    if sending.url:
        target = Target.parse(sending.url)
        ports = settings.MCPHOST_EGRESS_LOOPBACK_PORTS
        allowed = (host for entry in rules.hosts for host in secret_hosts(entry, ports))
        if target.scheme != "https" and target.port not in ports:
            yield f"The secret {name!r} is sent over https only."
        elif not any(host.matches(target) for host in allowed):
            yield (
                f"The secret {name!r} may not be sent to {target.authority}. Add this host to the "
                "secret, under Secrets."
            )
    if sending.secret_place and sending.secret_place not in rules.places:
        yield (
            f"The secret {name!r} may not be {_PLACES[sending.secret_place]}. Add this place to the "
            "secret, under Secrets."
        )
