"""The addresses of the API, all below `/api/v1/`. The rest of them is 404, as a problem.

A resource has its routes in `V1`. Names are those of operations in the document.
"""

from collections.abc import Mapping
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, include, path, re_path
from django.views.decorators.csrf import csrf_exempt

from mcphost.api.document import view_of
from mcphost.api.endpoint import Endpoint
from mcphost.api.errors import response_of
from mcphost.api.problems import ProblemError, ProblemType
from mcphost.api.reference import reference_view
from mcphost.api.resources import (
    audit_log,
    calls,
    exports,
    functions,
    input_requests,
    invitations,
    keys,
    members,
    openapi_imports,
    primitives,
    secrets,
    service_accounts,
    status,
    summaries,
    tasks,
    tenant_files,
    tenants,
    tokens,
    trials,
    versions,
)
from mcphost.kinds.primitive_types import PrimitiveType


@csrf_exempt
def unknown_address(request: HttpRequest) -> HttpResponse:
    """Answer 404. It is the same with and without a credential."""
    message = "There is nothing at this address. The API is below /api/v1/."
    return response_of(ProblemError(ProblemType.NOT_FOUND, message), request.path)


def _of_type(primitive_type: PrimitiveType) -> list[URLPattern]:
    """The routes of one type of primitives."""
    types = f"{primitive_type.value}s"
    single = f"tenants/<slug:slug>/{types}/<uuid:primitive_id>"
    options = {"primitive_type": primitive_type}
    return [
        path(
            f"tenants/<slug:slug>/{types}",
            primitives.PrimitiveCollection.as_view(),
            options,
            name=types,
        ),
        path(single, primitives.PrimitiveObject.as_view(), options, name=primitive_type.value),
        path(
            f"{single}/publish",
            primitives.PrimitivePublication.as_view(),
            options,
            name=f"{primitive_type.value}_publish",
        ),
        *(
            path(
                f"{single}/{verb.value}",
                primitives.PrimitiveTransition.as_view(),
                {**options, "verb": verb},
                name=f"{primitive_type.value}_{verb.value}",
            )
            for verb in primitives.SERVICES
        ),
        path(
            f"{single}/roll-back",
            versions.RollBack.as_view(),
            options,
            name=f"{primitive_type.value}_roll_back",
        ),
        path(
            f"{single}/versions",
            versions.VersionCollection.as_view(),
            options,
            name=f"{primitive_type.value}_versions",
        ),
        path(
            f"{single}/versions/<uuid:version_id>",
            versions.VersionObject.as_view(),
            options,
            name=f"{primitive_type.value}_version",
        ),
    ]


def _of(
    names: str, part: str, collection: type[Endpoint], single: type[Endpoint]
) -> list[URLPattern]:
    """The routes of a tenant's objects of one resource: the list, and one of them."""
    address = f"tenants/<slug:slug>/{names}"
    return [
        path(address, collection.as_view(), name=names),
        path(f"{address}/<{part}>", single.as_view(), name=_single(names)),
    ]


def _single(names: str) -> str:
    return f"{names.removesuffix('ies')}y" if names.endswith("ies") else names.removesuffix("s")


def _acts(names: str, part: str, views: Mapping[str, type[Endpoint]]) -> list[URLPattern]:
    """The routes below one object of a resource, by the last part of their address."""
    address = f"tenants/<slug:slug>/{names}/<{part}>"
    return [
        path(f"{address}/{act}", view.as_view(), name=f"{_single(names)}_{act}")
        for act, view in views.items()
    ]


V1: Final[list[URLPattern]] = [
    path("tenants", tenants.TenantCollection.as_view(), name="tenants"),
    path("tenants/<slug:slug>", tenants.TenantObject.as_view(), name="tenant"),
    path("tenants/<slug:slug>/close", tenants.TenantClosing.as_view(), name="tenant_close"),
    path("tenants/<slug:slug>/file", tenant_files.TenantFileObject.as_view(), name="file"),
    path("tenants/<slug:slug>/file/plan", tenant_files.TenantFilePlan.as_view(), name="file_plan"),
    path(
        "tenants/<slug:slug>/file/apply",
        tenant_files.TenantFileApplication.as_view(),
        name="file_apply",
    ),
    path(
        "tenants/<slug:slug>/imports/preview",
        openapi_imports.ImportPreview.as_view(),
        name="import_preview",
    ),
    path(
        "tenants/<slug:slug>/imports/apply",
        openapi_imports.ImportApplication.as_view(),
        name="import_apply",
    ),
    *_of("secrets", "uuid:secret_id", secrets.SecretCollection, secrets.SecretObject),
    *_acts("secrets", "uuid:secret_id", {"use": secrets.SecretUseObject}),
    *_of("tokens", "str:token_id", tokens.TokenCollection, tokens.TokenObject),
    *_acts(
        "tokens",
        "str:token_id",
        {"use": tokens.TokenUse, "renew": tokens.TokenRenewal, "revoke": tokens.TokenRevocation},
    ),
    *_of(
        "service_accounts",
        "uuid:account_id",
        service_accounts.ServiceAccountCollection,
        service_accounts.ServiceAccountObject,
    ),
    *_acts(
        "service_accounts",
        "uuid:account_id",
        {
            "disable": service_accounts.ServiceAccountDisabling,
            "enable": service_accounts.ServiceAccountEnabling,
        },
    ),
    *_of("members", "int:user_id", members.MemberCollection, members.MemberObject),
    *_of(
        "invitations",
        "uuid:invitation_id",
        invitations.InvitationCollection,
        invitations.InvitationObject,
    ),
    *_acts("invitations", "uuid:invitation_id", {"withdraw": invitations.InvitationWithdrawal}),
    *_of("functions", "str:function", functions.FunctionCollection, functions.FunctionObject),
    path("calls/export", exports.AllCallExport.as_view(), name="all_calls_export"),
    path("tenants/<slug:slug>/calls/export", exports.CallExport.as_view(), name="calls_export"),
    path(
        "input_requests/export",
        exports.AllInputRequestExport.as_view(),
        name="all_input_requests_export",
    ),
    path(
        "tenants/<slug:slug>/input_requests/export",
        exports.InputRequestExport.as_view(),
        name="input_requests_export",
    ),
    path("entries/export", exports.AllEntryExport.as_view(), name="all_entries_export"),
    path(
        "tenants/<slug:slug>/entries/export", exports.EntryExport.as_view(), name="entries_export"
    ),
    *_of("calls", "uuid:call_id", calls.CallCollection, calls.CallObject),
    *_acts(
        "calls",
        "uuid:call_id",
        {"payloads": calls.CallPayloads, "cancel": calls.CallCancellation},
    ),
    path(
        "input_requests",
        input_requests.AllInputRequestCollection.as_view(),
        name="all_input_requests",
    ),
    *_of(
        "input_requests",
        "uuid:input_request_id",
        input_requests.InputRequestCollection,
        input_requests.InputRequestObject,
    ),
    *_acts(
        "input_requests",
        "uuid:input_request_id",
        {
            "responses": input_requests.InputRequestResponses,
            "payloads": input_requests.InputRequestPayloads,
            "cancel": input_requests.InputRequestCancellation,
        },
    ),
    path("summary", summaries.PlatformSummary.as_view(), name="summary"),
    path("tenants/<slug:slug>/summary", summaries.TenantSummary.as_view(), name="tenant_summary"),
    path(
        "input_request_summary",
        summaries.PlatformInputRequestSummary.as_view(),
        name="input_request_summary",
    ),
    path(
        "tenants/<slug:slug>/input_request_summary",
        summaries.TenantInputRequestSummary.as_view(),
        name="tenant_input_request_summary",
    ),
    path("status", status.StatusObject.as_view(), name="status"),
    *_of("tasks", "uuid:task_call", tasks.TaskCollection, tasks.TaskObject),
    *_acts(
        "tasks",
        "uuid:task_call",
        {"cancel": tasks.TaskCancellation, "retry": tasks.TaskRetry},
    ),
    *_of("entries", "uuid:entry_id", audit_log.EntryCollection, audit_log.EntryObject),
    path("tenants/<slug:slug>/refusals", audit_log.RefusalCollection.as_view(), name="refusals"),
    path("keys", keys.KeyCollection.as_view(), name="keys"),
    path("keys/<str:key_id>", keys.KeyObject.as_view(), name="key"),
    path("keys/<str:key_id>/use", keys.KeyUse.as_view(), name="key_use"),
    path("keys/<str:key_id>/retire", keys.KeyRetirement.as_view(), name="key_retire"),
    path("keys/<str:key_id>/destroy", keys.KeyDestruction.as_view(), name="key_destroy"),
    path(
        "tenants/<slug:slug>/tools/<uuid:primitive_id>/try",
        trials.ToolTrial.as_view(),
        {"primitive_type": PrimitiveType.TOOL},
        name="tool_try",
    ),
    path(
        "tenants/<slug:slug>/tools/<uuid:primitive_id>/try/continue",
        trials.ToolTrialContinuation.as_view(),
        {"primitive_type": PrimitiveType.TOOL},
        name="tool_try_continue",
    ),
    *(pattern for primitive_type in PrimitiveType for pattern in _of_type(primitive_type)),
]

app_name = "api"
urlpatterns = [
    path("docs/", reference_view(V1), name="reference"),
    path("v1/openapi.json", view_of(V1), name="document"),
    path("v1/", include(V1)),
    re_path("", unknown_address, name="unknown"),
]
