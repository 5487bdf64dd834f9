"""The status of the platform: what is well, and what has a reason not to be; for staff."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from django.http import HttpResponse

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.representations import Representation
from mcphost.serving.process import status
from mcphost.tenants.roles import Permission


class StatusLineRepresentation(Representation):
    """One line of the status. `reason` says what to do; empty if all is well."""

    name: str
    status: Literal["ok", "problem"]
    text: str
    reason: str


class ProcessRepresentation(Representation):
    """A process that runs, or did in the last hour. `state` is serves, works (on tasks only), drains or gone. `facts`
    are what it reported with its last heartbeat; other versions may report others."""

    name: str
    state: str
    started_at: datetime
    heartbeat_seconds: float
    facts: dict[str, Any]


class StatusRepresentation(Representation):
    """The status of the platform at a time; `problem` if any line has one."""

    status: Literal["ok", "problem"]
    at: datetime
    lines: Sequence[StatusLineRepresentation]
    processes: Sequence[ProcessRepresentation]


class StatusObject(Endpoint):
    """`/status`."""

    @operation(
        ApiOperation(
            "Read the status of the platform", Permission.MANAGE_TENANT, StatusRepresentation
        )
    )
    def get(self, call: ApiCall) -> HttpResponse:
        return call.show(StatusRepresentation.model_validate(status.read().as_json()))
