"""The URLs of the console, all under `/admin/`.

The tenant of a page is named in its URL (`t/<slug>/`), and nowhere else.
"""

from collections.abc import Callable
from typing import Any

from django.http import HttpResponseBase
from django.urls import URLPattern, path, register_converter
from django.urls.converters import StringConverter
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect

from mcphost.catalogue.states import PrimitiveVerb
from mcphost.console import connect, dashboard, glossary, keys, search, status
from mcphost.console.base import of_account
from mcphost.console.dashboards import first_steps
from mcphost.console.live import pages as live
from mcphost.console.models import FilteredList
from mcphost.console.primitives import (
    functions,
    http_checks,
    imports,
    primitives,
    saved_calls,
    scripts,
    tenant_files,
    trials,
    updates,
    versions,
)
from mcphost.console.records import (
    audit_log_exports,
    calls,
    cancel_calls,
    entries,
    exports,
    funnel,
    input_request,
    input_request_exports,
    input_request_search,
    input_requests,
    saved_filters,
    tasks,
)
from mcphost.console.site import site
from mcphost.console.tenants import (
    connections,
    invitations,
    members,
    secrets,
    service_accounts,
    tenants,
    tokens,
)
from mcphost.console.users import account, account_links, users
from mcphost.kinds.primitive_types import PrimitiveType


class VerbConverter(StringConverter):
    """A verb that changes a primitive's state."""

    regex = "|".join(PrimitiveVerb)


class KeyConverter(StringConverter):
    """The id of a key of the ring."""

    regex = "[0-9a-z]{1,16}"


class TokenConverter(StringConverter):
    """A token's id."""

    regex = "[0-9A-Za-z]{1,32}"


register_converter(VerbConverter, "verb")
register_converter(KeyConverter, "key")
register_converter(TokenConverter, "token")


def _page(route: str, view: Any, name: str, **view_arguments: Any) -> URLPattern:
    """A page for users who may enter the console; others are redirected to the sign-in."""
    guarded: Callable[..., HttpResponseBase] = site.admin_view(view)
    return path(route, guarded, view_arguments, name=name)


def _frame(route: str, view: Any, name: str) -> URLPattern:
    """A page in a frame of another; without a session it says so in the frame."""
    return path(route, trials.in_frame(site.admin_view(view)), name=name)


def _own(route: str, view: Any, name: str) -> URLPattern:
    """A page for any signed-in account; others are redirected to the sign-in."""
    return path(route, never_cache(csrf_protect(of_account(view))), name=name)


def _exports(route: str, name: str, page: Any, part: Any, whole: Any) -> tuple[URLPattern, ...]:
    """The page that exports a list, its parts, and whole files, in both formats."""
    files = [
        (f"{address}.{form}", view, f"{name}_{of}{form}", form)
        for address, view, of in (("export/part", part, "part_"), ("export", whole, ""))
        for form in ("csv", "jsonl")
    ]
    return (
        _page(f"{route}export/", page, f"{name}_export"),
        *(_page(route + address, view, of, form=form) for address, view, of, form in files),
    )


def _pages_of(primitive_type: PrimitiveType) -> tuple[URLPattern, ...]:
    """The pages of one primitive type."""
    name = primitive_type.value
    list_route, detail_route = (
        f"t/<slug:slug>/{name}s/",
        f"t/<slug:slug>/{name}s/<uuid:primitive_id>/",
    )
    return (
        _page(list_route, primitives.listing, f"{name}s", primitive_type=primitive_type),
        _page(f"{list_route}new/", primitives.add, f"{name}_add", primitive_type=primitive_type),
        _page(detail_route, primitives.detail, name, primitive_type=primitive_type),
        _page(
            f"{detail_route}edit/", primitives.edit, f"{name}_edit", primitive_type=primitive_type
        ),
        _page(
            f"{detail_route}<verb:verb>/",
            versions.move,
            f"{name}_move",
            primitive_type=primitive_type,
        ),
        _page(
            f"{detail_route}delete/",
            versions.delete,
            f"{name}_delete",
            primitive_type=primitive_type,
        ),
        _page(f"{list_route}bulk/", versions.bulk, f"{name}s_bulk", primitive_type=primitive_type),
        _page(
            f"{detail_route}versions/<uuid:version_id>/",
            versions.version,
            f"{name}_version",
            primitive_type=primitive_type,
        ),
        _page(
            f"{detail_route}versions/<uuid:version_id>/serve/",
            versions.roll_back,
            f"{name}_roll_back",
            primitive_type=primitive_type,
        ),
    )


def _announcing(primitive_type: PrimitiveType) -> tuple[URLPattern, ...]:
    """The page that notifies subscribers of a primitive of this type."""
    route = f"t/<slug:slug>/{primitive_type.value}s/<uuid:primitive_id>/announce/"
    return (
        _page(
            route,
            updates.announce,
            f"{primitive_type.value}_announce",
            primitive_type=primitive_type,
        ),
    )


app_name = "admin"
urlpatterns = [
    path("login/", site.login, name="login"),
    _own("you/", account.overview, "you"),
    _own("you/tokens/<token:token_id>/revoke/", account.revoke, "own_token_revoke"),
    _own("you/tokens/<token:token_id>/renew/", account.renew, "own_token_renew"),
    _own(
        "you/connected-apps/<uuid:connection_id>/disconnect/",
        account.disconnect,
        "own_connection_end",
    ),
    _own("you/t/<slug:slug>/tokens/new/", account.issue, "own_token_add"),
    _own("you/t/<slug:slug>/leave/", account.leave_tenant, "leave"),
    path(
        "invitations/<str:link>/",
        never_cache(csrf_protect(invitations.page)),
        name="invitation",
    ),
    path(
        "account-links/<str:link>/",
        never_cache(csrf_protect(account_links.choose)),
        name="account_link",
    ),
    _own("glossary/", glossary.page, "glossary"),
    path("logout/", never_cache(csrf_protect(site.logout)), name="logout"),
    _page("", dashboard.index, "index"),
    _page("search/", search.page, "search"),
    _own("password/", users.own_password, "password_change"),
    _page("tenants/", tenants.listing, "tenants"),
    _page("tenants/new/", tenants.add, "tenant_add"),
    _page("calls/", calls.all_calls, "all_calls"),
    _page(
        "calls/filters/new/",
        saved_filters.add_of_all,
        "all_calls_filter_add",
        listing=FilteredList.CALLS,
    ),
    _page(
        "calls/filters/<uuid:filter_id>/",
        saved_filters.edit_of_all,
        "all_calls_filter",
        listing=FilteredList.CALLS,
    ),
    _page("calls/changes/", live.all_changes, "all_calls_changes", listing=FilteredList.CALLS),
    *_exports("calls/", "all_calls", exports.page_of_all, exports.part_of_all, exports.export_all),
    _page("input-requests/", input_requests.all_questions, "all_input_requests"),
    _page("input-requests/funnel/", funnel.of_all, "all_input_request_funnel"),
    *_exports(
        "input-requests/",
        "all_input_requests",
        input_request_exports.page_of_all,
        input_request_exports.part_of_all,
        input_request_exports.export_all,
    ),
    _page(
        "input-requests/changes/",
        live.all_changes,
        "all_input_requests_changes",
        listing=FilteredList.QUESTIONS,
    ),
    _page("input-requests/cancel/", cancel_calls.cancel_chosen_of_all, "all_input_requests_cancel"),
    _page(
        "input-requests/filters/new/",
        saved_filters.add_of_all,
        "all_input_requests_filter_add",
        listing=FilteredList.QUESTIONS,
    ),
    _page(
        "input-requests/filters/<uuid:filter_id>/",
        saved_filters.edit_of_all,
        "all_input_requests_filter",
        listing=FilteredList.QUESTIONS,
    ),
    _page("refusals/", calls.all_refusals, "all_refusals"),
    _page("audit-log/", entries.all_audit_log, "all_audit_log"),
    *_exports(
        "audit-log/",
        "all_audit_log",
        audit_log_exports.page_of_all,
        audit_log_exports.part_of_all,
        audit_log_exports.export_all,
    ),
    _page("functions/", functions.all_functions, "all_functions"),
    _page("status/", status.page, "status"),
    _page("status.json", status.as_json, "status_json"),
    _page("keys/", keys.ring, "keys"),
    _page("keys/rotate/", keys.rotate, "key_rotate"),
    _page("keys/compromised/", keys.compromise, "key_compromise"),
    _page("keys/<key:key_id>/retire/", keys.retire, "key_retire"),
    _page("keys/<key:key_id>/destroy/", keys.destroy, "key_destroy"),
    _page("users/", users.listing, "users"),
    _page("users/new/", users.add, "user_add"),
    _page("users/<int:user_id>/", users.edit, "user"),
    _page("users/<int:user_id>/password/", account_links.issue, "user_password"),
    _page("t/<slug:slug>/", tenants.overview, "tenant"),
    _page("t/<slug:slug>/first-steps/", first_steps.fragment, "first_steps"),
    _page("t/<slug:slug>/connect/", connect.page, "connect"),
    _page("t/<slug:slug>/connect/doctor/", connect.doctor, "connect_doctor"),
    _page("t/<slug:slug>/settings/", tenants.settings, "settings"),
    _page("t/<slug:slug>/close/", tenants.close, "close"),
    _page("t/<slug:slug>/file/", tenant_files.page, "tenant_file"),
    _page("t/<slug:slug>/file/download/", tenant_files.download, "tenant_file_download"),
    _page("t/<slug:slug>/file/plan/", tenant_files.plan, "tenant_file_plan"),
    _page("t/<slug:slug>/salt/", keys.salt, "salt"),
    *_pages_of(PrimitiveType.TOOL),
    _page("t/<slug:slug>/tools/import/", imports.page, "tool_import"),
    _frame("t/<slug:slug>/tools/try/", trials.unsaved, "tool_try"),
    _frame("t/<slug:slug>/tools/<uuid:primitive_id>/try/", trials.saved, "tool_try_saved"),
    _frame("t/<slug:slug>/tools/try/end/", trials.end_trial, "tool_try_end"),
    _page(
        "t/<slug:slug>/tools/<uuid:primitive_id>/saved-calls/", saved_calls.run, "saved_calls_run"
    ),
    _page(
        "t/<slug:slug>/tools/<uuid:primitive_id>/saved-calls/<uuid:saved_id>/delete/",
        saved_calls.delete,
        "saved_call_delete",
    ),
    _page("t/<slug:slug>/tools/check/", scripts.check, "script_check"),
    _page("t/<slug:slug>/tools/check-request/", http_checks.unsaved, "http_check"),
    _page(
        "t/<slug:slug>/tools/<uuid:primitive_id>/check-request/",
        http_checks.saved,
        "http_check_saved",
    ),
    *_pages_of(PrimitiveType.PROMPT),
    *_pages_of(PrimitiveType.RESOURCE),
    *_pages_of(PrimitiveType.TEMPLATE),
    *_announcing(PrimitiveType.RESOURCE),
    *_announcing(PrimitiveType.TEMPLATE),
    _page("t/<slug:slug>/functions/", functions.listing, "functions"),
    _page("t/<slug:slug>/functions/change/", functions.change, "functions_change"),
    _page("t/<slug:slug>/tokens/", tokens.listing, "tokens"),
    _page("t/<slug:slug>/tokens/new/", tokens.issue, "token_add"),
    _page("t/<slug:slug>/tokens/<token:token_id>/revoke/", tokens.revoke, "token_revoke"),
    _page("t/<slug:slug>/tokens/<token:token_id>/renew/", tokens.renew, "token_renew"),
    _page("t/<slug:slug>/connected-apps/", connections.listing, "connections"),
    _page(
        "t/<slug:slug>/connected-apps/<uuid:connection_id>/disconnect/",
        connections.disconnect,
        "connection_end",
    ),
    _page("t/<slug:slug>/secrets/", secrets.listing, "secrets"),
    _page("t/<slug:slug>/secrets/new/", secrets.add, "secret_add"),
    _page("t/<slug:slug>/secrets/<uuid:secret_id>/rotate/", secrets.rotate, "secret_rotate"),
    _page("t/<slug:slug>/secrets/<uuid:secret_id>/edit/", secrets.edit, "secret_edit"),
    _page("t/<slug:slug>/secrets/<uuid:secret_id>/delete/", secrets.delete, "secret_delete"),
    _page("t/<slug:slug>/members/", members.listing, "members"),
    _page("t/<slug:slug>/members/<int:user_id>/role/", members.change, "member_role"),
    _page("t/<slug:slug>/members/<int:user_id>/scopes/", members.scopes, "member_scopes"),
    _page("t/<slug:slug>/members/<int:user_id>/remove/", members.remove, "member_remove"),
    _page("t/<slug:slug>/members/<int:user_id>/password/", members.send_link, "member_password"),
    _page(
        "t/<slug:slug>/members/invitations/<uuid:invitation_id>/withdraw/",
        members.withdraw,
        "invitation_withdraw",
    ),
    _page("t/<slug:slug>/service-accounts/", service_accounts.listing, "service_accounts"),
    _page("t/<slug:slug>/service-accounts/new/", service_accounts.add, "service_account_add"),
    _page(
        "t/<slug:slug>/service-accounts/<uuid:account_id>/disable/",
        service_accounts.disable,
        "service_account_disable",
    ),
    _page(
        "t/<slug:slug>/service-accounts/<uuid:account_id>/enable/",
        service_accounts.enable,
        "service_account_enable",
    ),
    _page(
        "t/<slug:slug>/service-accounts/<uuid:account_id>/remove/",
        service_accounts.remove,
        "service_account_remove",
    ),
    _page("t/<slug:slug>/input-requests/", input_requests.listing, "input_requests"),
    _page("t/<slug:slug>/input-requests/funnel/", funnel.listing, "input_request_funnel"),
    *_exports(
        "t/<slug:slug>/input-requests/",
        "input_requests",
        input_request_exports.page,
        input_request_exports.part,
        input_request_exports.export,
    ),
    _page(
        "t/<slug:slug>/input-requests/changes/",
        live.changes,
        "input_requests_changes",
        listing=FilteredList.QUESTIONS,
    ),
    _page(
        "t/<slug:slug>/input-requests/cancel/",
        cancel_calls.cancel_chosen,
        "input_requests_cancel",
    ),
    _page(
        "t/<slug:slug>/input-requests/filters/new/",
        saved_filters.add,
        "input_requests_filter_add",
        listing=FilteredList.QUESTIONS,
    ),
    _page(
        "t/<slug:slug>/input-requests/filters/<uuid:filter_id>/",
        saved_filters.edit,
        "input_requests_filter",
        listing=FilteredList.QUESTIONS,
    ),
    _page(
        "t/<slug:slug>/input-requests/search/", input_request_search.page, "input_request_search"
    ),
    _page(
        "t/<slug:slug>/input-requests/search/part/",
        input_request_search.part,
        "input_request_search_part",
    ),
    _page(
        "t/<slug:slug>/input-requests/payloads/", input_requests.payloads, "input_requests_payloads"
    ),
    _page(
        "t/<slug:slug>/input-requests/<uuid:question_id>/", input_request.detail, "input_request"
    ),
    _page(
        "t/<slug:slug>/input-requests/<uuid:question_id>/payloads/",
        input_request.payloads,
        "input_request_payloads",
    ),
    _page(
        "t/<slug:slug>/input-requests/<uuid:call_id>/cancel/", cancel_calls.cancel, "call_cancel"
    ),
    _page("t/<slug:slug>/calls/", calls.listing, "calls"),
    _page(
        "t/<slug:slug>/calls/filters/new/",
        saved_filters.add,
        "calls_filter_add",
        listing=FilteredList.CALLS,
    ),
    _page(
        "t/<slug:slug>/calls/filters/<uuid:filter_id>/",
        saved_filters.edit,
        "calls_filter",
        listing=FilteredList.CALLS,
    ),
    _page(
        "t/<slug:slug>/calls/changes/", live.changes, "calls_changes", listing=FilteredList.CALLS
    ),
    *_exports("t/<slug:slug>/calls/", "calls", exports.page, exports.part, exports.export),
    _page("t/<slug:slug>/calls/<uuid:call_id>/", calls.call, "call"),
    _page("t/<slug:slug>/calls/<uuid:call_id>/payloads/", calls.call_payloads, "call_payloads"),
    _page("t/<slug:slug>/tasks/", tasks.listing, "tasks"),
    _page("t/<slug:slug>/tasks/<uuid:call_id>/", tasks.task, "task"),
    _page("t/<slug:slug>/tasks/<uuid:call_id>/cancel/", tasks.cancel, "task_cancel"),
    _page("t/<slug:slug>/tasks/<uuid:call_id>/retry/", tasks.retry, "task_retry"),
    _page("t/<slug:slug>/refusals/", calls.refusals, "refusals"),
    _page("t/<slug:slug>/payloads/<uuid:entry_id>/", entries.payload, "payload"),
    _page("t/<slug:slug>/payloads/<uuid:entry_id>/erase/", entries.erase, "payload_erase"),
    _page("t/<slug:slug>/audit-log/", entries.audit_log, "audit_log"),
    *_exports(
        "t/<slug:slug>/audit-log/",
        "audit_log",
        audit_log_exports.page,
        audit_log_exports.part,
        audit_log_exports.export,
    ),
]
