"""The configuration of a tenant as one file (`mcphost.tenant_file`): read, planned and applied."""

from collections.abc import Sequence
from typing import Final, Self

from django.http import HttpResponse
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.representations import Fields, Representation
from mcphost.serving.execution import trials
from mcphost.tenant_file.exports import export
from mcphost.tenant_file.plans import Plan, apply_plan, make_plan
from mcphost.tenants.access import permissions
from mcphost.tenants.roles import Permission

EXAMPLE: Final = {"content": "format: 1\ntenant:\n  instructions: Ask before you pay.\n"}


class TenantFileRepresentation(Representation):
    """The file of a tenant: YAML, as `manage.py tenant export` writes it."""

    content: str


class TenantFileFields(Fields):
    """A file to compare with the tenant."""

    content: str = Field(description="YAML or JSON.")


class ApplicationFields(TenantFileFields):
    """A file to apply, and the plan that was looked at."""

    digest: str = Field(
        min_length=1, description="`digest` of the plan: with another one, nothing is changed."
    )


class PlannedChangeRepresentation(Representation):
    """A difference. `verbs` are the actions that are recorded; `missing` are secrets without which the
    primitive is not published."""

    section: str
    name: str
    verbs: Sequence[str]
    changed: Sequence[str]
    missing: Sequence[str]


class PlanRepresentation(Representation):
    """What a file changes. `kept` are primitives that the file does not name and that stay."""

    digest: str
    changes: list[PlannedChangeRepresentation]
    missing_secrets: Sequence[str]
    kept: Sequence[str]

    @classmethod
    def of(cls, plan: Plan) -> Self:
        return cls(
            digest=plan.digest,
            changes=[
                PlannedChangeRepresentation.model_validate(change._asdict())
                for change in plan.changes
            ],
            missing_secrets=plan.missing_secrets,
            kept=plan.kept,
        )


class TenantFileObject(Endpoint):
    """`/tenants/{slug}/file`."""

    @operation(
        ApiOperation(
            "Read the configuration of a tenant as a file",
            Permission.VIEW_TOOLS,
            TenantFileRepresentation,
        )
    )
    def get(self, call: ApiCall) -> HttpResponse:
        return call.show(TenantFileRepresentation(content=export(call.tenant.pk)))


class TenantFilePlan(Endpoint):
    """`/tenants/{slug}/file/plan`."""

    @operation(
        ApiOperation(
            "Show what a file would change",
            Permission.EDIT_TOOLS,
            PlanRepresentation,
            body=TenantFileFields,
            example=EXAMPLE,
        )
    )
    def post(self, call: ApiCall, body: TenantFileFields) -> HttpResponse:
        return call.show(PlanRepresentation.of(_plan(call, body)))


class TenantFileApplication(Endpoint):
    """`/tenants/{slug}/file/apply`."""

    @operation(
        ApiOperation(
            "Apply a file: all of its changes or none",
            Permission.EDIT_TOOLS,
            PlanRepresentation,
            body=ApplicationFields,
            example={**EXAMPLE, "digest": "of the plan"},
        )
    )
    def post(self, call: ApiCall, body: ApplicationFields) -> HttpResponse:
        plan = _plan(call, body)

        def apply() -> PlanRepresentation:
            apply_plan(plan, call.actor, body.digest)
            trials.end_all(call.tenant.pk, plan.changed_tools, trials.FILE_APPLIED, call.actor)
            return PlanRepresentation.of(plan)

        return call.perform(apply)


def _plan(call: ApiCall, body: TenantFileFields) -> Plan:
    """Compare a file with the tenant, outside of transactions: it may inspect scripts."""
    granted = permissions(call.credential.user, call.tenant)
    return make_plan(call.tenant.pk, body.content.encode("utf-8", "replace"), granted)
