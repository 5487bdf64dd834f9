"""The check of a script while it is typed: what saving would refuse, and nothing is saved."""

import logging
from typing import Final

from django.http import HttpResponseBase, JsonResponse
from django.views.decorators.http import require_POST

from mcphost.console.base import SignedInRequest, of_tenant
from mcphost.console.forms.prompts import plain
from mcphost.kinds.script.kind import script_kind
from mcphost.sandbox.check_slots import ChecksBusyError
from mcphost.sandbox.processes import WorkerLostError
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

RETRY_SECONDS: Final = 2

log = logging.getLogger(__name__)


@of_tenant(Permission.EDIT_TOOLS)
@require_POST
def check(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Return the problems of a script, and the schema of its arguments, as JSON.

    429 while another script of the tenant is checked, or too many of others; 503 if no worker can check.
    """
    try:
        inspection = script_kind.inspect_code(plain(request.POST.get("code", "")), str(tenant.pk))
    except ChecksBusyError as busy:
        return _unchecked(429, str(busy))
    except WorkerLostError as lost:
        log.warning("a script could not be checked: %s", lost)
        return _unchecked(503, f"The script could not be checked: {lost}")
    return JsonResponse({"problems": inspection.problems, "input_schema": inspection.input_schema})


def _unchecked(status: int, detail: str) -> JsonResponse:
    return JsonResponse({"detail": detail}, status=status, headers={"Retry-After": RETRY_SECONDS})
