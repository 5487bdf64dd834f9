"""What is read over a large record: pages of the console, and lists and objects of the API."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

TENANT = "crowd-3"


@dataclass(frozen=True, slots=True)
class Samples:
    """Ids of what is in the record of TENANT: a call that asked, one of its questions, an entry, a trace."""

    call: str
    question: str
    entry: str
    trace: str


def pages(samples: Samples) -> Mapping[str, str]:
    """The addresses of pages of the console, by what the report calls them."""
    return {
        **_overviews(),
        **_call_pages(samples),
        **_question_pages(samples),
        **_audit_pages(),
        "tools": f"/admin/t/{TENANT}/tools/",
        "keys": "/admin/keys/",
        "status": "/admin/status/",
    }


def reads(samples: Samples) -> Mapping[str, str]:
    """The addresses of the API's lists and objects that are made of the record."""
    tenant = f"/api/v1/tenants/{TENANT}"
    week = datetime.now(UTC) - timedelta(days=7)
    since = f"since={week:%Y-%m-%dT%H:%M:%SZ}"
    until = f"until={week:%Y-%m-%dT%H:%M:%SZ}"
    of_calls = {
        "a tool": "target=tool-7",
        "a client": "client=cursor",
        "a caller": "principal=caller-17",
        "a state": "state=tool_error",
        "open": "state=open",
        "a trace": f"trace={samples.trace}",
        "7 days": since,
        "older than 7 days": until,
        "a tool and a caller": "target=tool-1&principal=caller-5&state=tool_error",
        "no match": "target=tool-1&client=unheard",
    }
    of_entries = {
        "an action": "action=tool.published",
        "a rare action": "action=salt.destroyed",
        "a target": "target=tool-7",
        "an actor": "actor=caller-17",
        "7 days": since,
        "older than 7 days": until,
        "no match": "action=salt.destroyed&actor=unheard",
    }
    of_questions = {
        "a tool": "target=tool-7",
        "a person": "principal=caller-17",
        "a client": "client=cursor",
        "open": "state=open",
        "declined": "state=declined",
        "7 days": since,
        "a tool and a state": "target=tool-7&state=answered",
        "no match": "target=tool-7&client=unheard",
    }
    asked = f"{tenant}/input_requests"
    return {
        "input requests": asked,
        "100 input requests": f"{asked}?limit=100",
        **{f"input requests by {name}": f"{asked}?{query}" for name, query in of_questions.items()},
        "an input request": f"{asked}/{samples.question}",
        "all input requests by a tool": "/api/v1/input_requests?target=tool-7",
        "summary": f"{tenant}/summary?period=30d",
        "summary of all tenants": "/api/v1/summary?period=30d",
        "calls": f"{tenant}/calls",
        "100 calls": f"{tenant}/calls?limit=100",
        **{f"calls by {name}": f"{tenant}/calls?{query}" for name, query in of_calls.items()},
        "a call": f"{tenant}/calls/{samples.call}",
        "entries": f"{tenant}/entries",
        "100 entries": f"{tenant}/entries?limit=100",
        **{f"entries by {name}": f"{tenant}/entries?{query}" for name, query in of_entries.items()},
        "an entry": f"{tenant}/entries/{samples.entry}",
        "refusals": f"{tenant}/refusals",
        "refusals by an actor": f"{tenant}/refusals?actor=caller-17",
        "tenants": "/api/v1/tenants",
        "tools": f"{tenant}/tools",
        "tokens": f"{tenant}/tokens",
        "keys": "/api/v1/keys",
    }


def _overviews() -> Mapping[str, str]:
    periods, of_tenant = ("1h", "24h", "7d", "30d"), ("1h", "30d")
    return {
        **{f"dashboard, {period}": f"/admin/?period={period}" for period in periods},
        **{f"a tenant, {period}": f"/admin/t/{TENANT}/?period={period}" for period in of_tenant},
    }


def _call_pages(samples: Samples) -> Mapping[str, str]:
    calls, day = f"/admin/t/{TENANT}/calls/", _day()
    filters = {
        "a tool": "tool=tool-7",
        "a client": "client=cursor",
        "a caller": "principal=caller-17",
        "an outcome": "outcome=tool_error",
        "open": "outcome=open",
        "input requests": "questions=asked",
        "declined": "questions=decline",
        "words of errors": "words=quota&period=30d",
        "a day": f"since={day}&until={day}",
        "a trace": f"trace={samples.trace}",
        "a call's id": f"call={samples.call[:8]}",
        "a tool and a caller": "tool=tool-1&principal=caller-5&outcome=tool_error",
        "no match": "tool=tool-1&client=curl&words=unheard",
    }
    return {
        "all calls": "/admin/calls/",
        "calls": calls,
        "calls, 7 days": f"{calls}?period=7d",
        **{f"calls by {name}": f"{calls}?{query}" for name, query in filters.items()},
        "all calls by a client": "/admin/calls/?client=cursor",
        "all calls by words of errors": "/admin/calls/?words=quota",
        "a call": f"{calls}{samples.call}/",
    }


def _question_pages(samples: Samples) -> Mapping[str, str]:
    questions, everywhere, day = (
        f"/admin/t/{TENANT}/input-requests/",
        "/admin/input-requests/",
        _day(),
    )
    states = ("open", "overdue", "answered", "declined", "cancelled", "expired", "never")
    filters = {
        "a tool": "tool=tool-7",
        "a person": "principal=caller-17",
        "a client": "client=cursor",
        "a day": f"since={day}&until={day}",
        "a period": "period=7d",
        **{state: f"state={state}" for state in states},
        "a tool and a state": "tool=tool-7&state=answered",
        "a person and a client": "principal=caller-17&client=cursor&state=declined",
        "no match": "tool=tool-7&client=unheard",
    }
    of_all = {
        "a tool": "tool=tool-7",
        "a person": "principal=caller-17",
        "a client": "client=cursor",
        "a tenant": f"tenant={TENANT}",
        "overdue": "state=overdue",
        "declined": "state=declined",
    }
    return {
        "all questions": everywhere,
        **{f"all questions by {name}": f"{everywhere}?{query}" for name, query in of_all.items()},
        "questions": questions,
        **{f"questions by {name}": f"{questions}?{query}" for name, query in filters.items()},
        "a question": f"{questions}{samples.question}/",
        "what became of them": f"{everywhere}funnel/?period=30d",
        "what became of a tenant's": f"{questions}funnel/?period=30d",
    }


def _audit_pages() -> Mapping[str, str]:
    log, everywhere = f"/admin/t/{TENANT}/audit-log/", "/admin/audit-log/"
    return {
        "refusals": "/admin/refusals/",
        "refusals of a tenant": f"/admin/t/{TENANT}/refusals/",
        "audit log": everywhere,
        "audit log by a person": f"{everywhere}?principal=caller-17",
        "audit log by a rare action": f"{everywhere}?area=key",
        "audit log of a tenant": log,
        "audit log of a tenant by a tool": f"{log}?tool=tool-7",
        "audit log of a tenant by a person": f"{log}?principal=caller-17",
        "audit log of a tenant by a rare action": f"{log}?area=key",
    }


def _day() -> str:
    return str((datetime.now(UTC) - timedelta(days=11)).date())
