"""Thirty days of calls of three tenants, before the server starts: `python -m tests.screenshots.history PATTERNS`.

Over `MCPHOST_HOME`, which has the demo. PATTERNS is the database of another server, on which one
call of each course was made (see client.PATTERNS): its entries, with other names and times, are the
history. They have no payloads, so calls that are shown in full are made on the running server.
"""

import json
import random
import sqlite3
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402 - what follows needs django.setup()
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.utils import timezone  # noqa: E402
from django.utils.module_loading import autodiscover_modules  # noqa: E402

from mcphost import home  # noqa: E402
from mcphost.audit.models import Entry  # noqa: E402
from mcphost.audit.records import Actor  # noqa: E402
from mcphost.catalogue import services as catalogue  # noqa: E402
from mcphost.catalogue.fields import PrimitiveFields  # noqa: E402
from mcphost.identity import services as identity  # noqa: E402
from mcphost.identity.services import TokenRequest  # noqa: E402
from mcphost.tenants import services as tenants  # noqa: E402
from mcphost.tenants.fields import TenantFields  # noqa: E402
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, Role  # noqa: E402
from mcphost.vault.lifecycle import retire  # noqa: E402
from mcphost.vault.models import RingKey  # noqa: E402
from tests.screenshots.client import PATTERNS  # noqa: E402

DAYS = 30
CALLS_A_DAY = 240
SPIKE_DAYS_AGO = 2
ACTOR = Actor.system("manage.py init")
EPOCH_SECONDS = (1.6e9, 2.5e9)
PLAIN = ("plain",)
ASKING = ("one answer", "two answers", "declined", "cancelled", "open")
WEIGHTS = {"one answer": 60, "two answers": 27, "declined": 6, "cancelled": 2, "open": 5}
ROTATED = (timedelta(days=26), timedelta(days=17), timedelta(days=9), timedelta(hours=6))
RETIRED_AFTER = timedelta(days=1)


@dataclass(frozen=True)
class Offered:
    """A tool of a tenant: its function, how much it is used, and how long its work takes."""

    name: str
    title: str
    function: str
    uses: int
    slower: float
    asks: bool = False


@dataclass(frozen=True)
class Crew:
    """A tenant: its tools, and the people who use them, with their clients."""

    slug: str
    title: str
    tools: Sequence[Offered]
    people: Mapping[str, str]


CREWS = (
    Crew(
        "support",
        "Customer support",
        (
            Offered("find_customer", "Find a customer", "office.find_customer", 40, 30),
            Offered("resolve_ticket", "Resolve a ticket", "office.resolve_ticket", 22, 6, True),
            Offered("summarize_thread", "Summarize a thread", "office.summarize_thread", 14, 90),
            Offered("refund_order", "Refund an order", "office.refund_order", 9, 4, True),
        ),
        {"mara": "claude-code", "jonas": "Visual Studio Code", "priya": "cursor"},
    ),
    Crew(
        "platform",
        "Platform team",
        (
            Offered("deploy", "Deploy a service", "office.deploy", 16, 5, True),
            Offered("service_status", "Status of a service", "office.service_status", 34, 12),
            Offered("build_report", "Build a report", "office.build_report", 6, 400),
        ),
        {"tomas": "claude-code", "ines": "Visual Studio Code"},
    ),
)

Row = dict[str, Any]
TARGET_SECONDS = 60.0
BACKDATED = "UPDATE audit_entry SET at = %s WHERE target = %s AND action = %s"
"""The one way to change an entry: the product has none."""


def main(patterns: Path) -> None:
    autodiscover_modules("wiring")
    rng = random.Random(7)  # the same history each time
    now = timezone.now()
    courses = {name: list(rows) for name, rows in _courses(patterns).items()}
    made: list[Entry] = []
    for crew in CREWS:
        tenant = _tenant(crew)
        for at in _moments(rng, now, CALLS_A_DAY // len(CREWS)):
            made += _call(rng, crew, tenant, at, now, courses)
    made.sort(key=lambda entry: entry.id.int)
    Entry.objects.bulk_create(made, batch_size=500)
    _keys(now)
    print(f"{len(made)} entries")


def _tenant(crew: Crew) -> uuid.UUID:
    tenant = tenants.create_tenant(crew.slug, TenantFields(title=crew.title), actor=ACTOR).id
    admin = User.objects.get(username="admin")
    tenants.set_member(tenant, admin, Role.OWNER, actor=ACTOR)
    tenants.set_member(tenant, User.objects.get(username="auditor"), Role.AUDITOR, actor=ACTOR)
    for name, client in crew.people.items():
        user = User.objects.create_user(name)
        tenants.set_member(tenant, user, Role.OPERATOR, actor=ACTOR)
        wanted = TokenRequest(name=client, scopes=(LIST_TOOLS, CALL_TOOLS))
        own = Actor.person(user.pk, name)
        issued = identity.issue(tenant, user, wanted, actor=own, consented=True)
        home.write_secret(_home() / f"token-{crew.slug}-{name}", issued.plaintext)
    for tool in crew.tools:
        catalogue.grant_function(tenant, tool.function, ACTOR)
        fields = PrimitiveFields(name=tool.name, config={"function": tool.function})
        made = catalogue.create(tenant, fields, ACTOR)
        catalogue.publish(made.id, ACTOR, note="The first version")
        if tool.asks:
            described = replace(fields, title=tool.title, target_seconds=TARGET_SECONDS)
            catalogue.update(made.id, described, ACTOR)
            catalogue.publish(made.id, ACTOR, note="A title that users understand")
    return tenant


def _home() -> Path:
    return home.locate().path


def _courses(patterns: Path) -> Mapping[str, Sequence[Row]]:
    with sqlite3.connect(patterns) as link:
        link.row_factory = sqlite3.Row
        rows = [dict(row) for row in link.execute("SELECT * FROM audit_entry ORDER BY id")]
    calls: dict[str, list[Row]] = {}
    for row in rows:
        if row["call"]:
            calls.setdefault(row["call"], []).append(row)
    assert len(calls) == len(PATTERNS), (len(calls), len(PATTERNS))
    return dict(zip(PATTERNS, calls.values(), strict=True))


def _moments(rng: random.Random, now: datetime, a_day: int) -> Iterator[datetime]:
    for ago in range(DAYS):
        day = now - timedelta(days=ago)
        busy = 0.25 if day.weekday() >= 5 else 1.0
        for _ in range(round(a_day * busy * rng.uniform(0.75, 1.2))):
            at = day.replace(hour=0, minute=0, second=0, microsecond=0)
            at += timedelta(hours=min(23.9, max(0.1, rng.gauss(14, 3.5))))
            if ago == 0:  # up to the present
                at = now - timedelta(hours=rng.uniform(0.02, 12))
            yield at


def _call(
    rng: random.Random,
    crew: Crew,
    tenant: uuid.UUID,
    at: datetime,
    now: datetime,
    courses: Mapping[str, Sequence[Row]],
) -> list[Entry]:
    tool = rng.choices(crew.tools, [each.uses for each in crew.tools])[0]
    course = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0] if tool.asks else "plain"
    spike = at.date() == (now - timedelta(days=SPIKE_DAYS_AGO)).date()
    if rng.random() < (0.3 if spike and tool.name == "find_customer" else 0.02):
        course = "failed" if tool.asks else "wrong"
    if course == "open" and now - at < timedelta(hours=1):
        course = "one answer"
    person = rng.choice(list(crew.people))
    names = {
        "target": tool.name,
        "target_version": "1",
        "tenant": tenant,
        "actor_label": f"{person} (“{crew.people[person]}”, issued by {person})",
        "actor_id": str(User.objects.get(username=person).pk),
        "client_name": crew.people[person],
    }
    return list(_shifted(rng, courses[course], at, names, tool.slower))


def _shifted(
    rng: random.Random, rows: Sequence[Row], at: datetime, names: Mapping[str, Any], slower: float
) -> Iterator[Entry]:
    """The same entries at another time, with longer waits for people, and other ids."""
    call, http_request_id = _id(rng, at), _id(rng, at)
    first = _read(rows[0]["at"])
    waited = timedelta()
    for row in rows:
        facts = json.loads(row["facts"])
        if row["action"] == "answer.received":
            seconds = min(540.0, max(4.0, rng.lognormvariate(3.6, 0.9)))
            waited += timedelta(seconds=seconds)
            facts["seconds"] = round(seconds, 3)
        there = at + (_read(row["at"]) - first) + waited
        if row["duration_us"] is not None:
            row = {**row, "duration_us": round(1500 * slower * rng.lognormvariate(0, 0.45))}
        facts = _moved(facts, (there - _read(row["at"])).total_seconds())
        columns = {
            **row,
            **names,
            "id": _id(rng, there),
            "at": there,
            "call": call,
            "http_request_id": http_request_id,
            "facts": facts,
            "commitment": None,
            "trace_id": f"{rng.getrandbits(128):032x}",
        }
        yield Entry(**columns)


def _moved(facts: Any, seconds: float) -> Any:
    if isinstance(facts, dict):
        return {name: _moved(value, seconds) for name, value in facts.items()}
    if isinstance(facts, list):
        return [_moved(value, seconds) for value in facts]
    if isinstance(facts, int | float) and EPOCH_SECONDS[0] < facts < EPOCH_SECONDS[1]:
        return facts + type(facts)(seconds)
    if isinstance(facts, str) and facts[:2] == "20" and facts[10:11] == "T":
        return (datetime.fromisoformat(facts) + timedelta(seconds=seconds)).isoformat()
    return facts


def _read(at: str) -> datetime:
    return datetime.fromisoformat(at).replace(tzinfo=UTC)


def _id(rng: random.Random, at: datetime) -> uuid.UUID:
    milliseconds = int(at.timestamp() * 1000)
    head = milliseconds << 16 | 0x7000 | rng.getrandbits(12)
    return uuid.UUID(int=head << 64 | 1 << 63 | rng.getrandbits(62))


def _keys(now: datetime) -> None:
    """Rotate the ring as often as in a month, and date the keys back. All but two are retired."""
    for _ in ROTATED:
        call_command("keys", "rotate", verbosity=0)
    rows = list(RingKey.objects.exclude(activated_at=None).order_by("activated_at"))
    began = [now - ago for ago in (timedelta(days=34), *ROTATED)]
    for row in rows[:-2]:
        retire(row.pk, ACTOR)
    for number, (row, at) in enumerate(zip(rows, began, strict=True)):
        since = at if row is rows[-1] else began[number + 1]
        ended = since + (RETIRED_AFTER if row in rows[:-2] else timedelta())
        created = at - timedelta(minutes=5)
        # A key seals until the next one is active, and opens what it sealed for some hours more.
        used = {"last_sealed_at": since, "last_opened_at": min(since + timedelta(hours=7), now)}
        RingKey.objects.filter(pk=row.pk).update(
            created_at=created,
            activated_at=at,
            state_since=ended,
            **({} if row is rows[-1] else used),
        )
        with connection.cursor() as cursor:
            cursor.execute(BACKDATED, [created, row.pk, "key.created"])
            cursor.execute(BACKDATED, [at, row.pk, "key.rotated"])
            cursor.execute(BACKDATED, [ended, row.pk, "key.retired"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
