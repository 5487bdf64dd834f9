"""The pages of the console that have pictures, by section, and docs/pages.md, which lists them.

A page per template of `templates/` is the measure: tests/console/test_pictures.py compares.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from playwright.sync_api import Page

from tests.e2e.processes import ROOT
from tests.screenshots.pictures import FOLDER, compare_file, stay, write_tool

DOCUMENT: Final = ROOT / "docs" / "pages.md"
PAGES_FOLDER: Final = FOLDER / "pages"
MODES: Final = ("light", "dark", "phone")
OPENAPI: Final = json.dumps(
    {
        "openapi": "3.1.0",
        "info": {"title": "Orders"},
        "servers": [{"url": "https://orders.example.com"}],
        "paths": {
            "/orders": {"get": {"operationId": "list_orders", "summary": "Lists orders"}},
            "/orders/{id}": {
                "delete": {
                    "operationId": "delete_order",
                    "summary": "Deletes an order",
                    "parameters": [
                        {
                            "name": "id",
                            "in": "path",
                            "required": True,
                            "schema": {"type": "string"},
                        }
                    ],
                }
            },
        },
    }
)

Way = Callable[[Page], None]


@dataclass(frozen=True)
class ConsolePage:
    """A page in the state that its picture shows.

    `address` is the name of a URL of the console, or another name in `addresses.json` or of
    `page_calls.make_calls`, or a path. `way` leads on from there. `user` is empty without a sign-in.
    `part` is the selector of an element far below: it is at the top of the picture, which is a window high.
    """

    name: str
    title: str
    address: str
    template: str
    way: Way = stay
    query: str = ""
    user: str = "admin"
    status: int = 200
    part: str = ""


def press(name: str) -> Way:
    """Return a way that presses a button."""

    def follow(page: Page) -> None:
        page.get_by_role("button", name=name, exact=True).first.click()
        page.wait_for_load_state("networkidle")

    return follow


def _run_doctor(page: Page) -> None:
    page.get_by_role("button", name="Run Doctor").click()
    page.get_by_role("list", name="What Doctor found").wait_for()


def _try_tool(page: Page) -> None:
    frame = page.frame_locator("iframe[name=trial]")
    frame.get_by_label("customer", exact=True).fill("Ada Lovelace")
    frame.get_by_role("button", name="Run", exact=True).click()
    frame.get_by_role("button", name="Accept").wait_for()


def _run_saved_calls(page: Page) -> None:
    page.locator("form[data-run-all]").evaluate("form => form.submit()")
    page.wait_for_url("**/saved-calls/")


def _list_operations(page: Page) -> None:
    page.get_by_label("Or a file").set_input_files(
        {"name": "orders.json", "mimeType": "application/json", "buffer": OPENAPI.encode()}
    )
    press("List operations")(page)


def _preview_import(page: Page) -> None:
    _list_operations(page)
    page.get_by_role("checkbox", name="GET /orders").check()
    press("Preview")(page)


def _issue_token(page: Page) -> None:
    page.get_by_label("Name", exact=True).fill("workstation")
    press("Issue token")(page)


def _invite(page: Page) -> None:
    page.get_by_role("link", name="Invite a user").click()
    page.get_by_label("User name").fill("kofi")
    press("Invite")(page)


def _search_words(page: Page) -> None:
    page.get_by_label("Words in the question or in the answer").fill("refund")
    page.locator("[data-text-search-start]").click()
    page.get_by_text(re.compile("in all .* question")).wait_for()


def _choose_calls(page: Page) -> None:
    boxes = page.locator("main tbody input[type=checkbox]")
    for number in range(2):
        boxes.nth(number).check()
    press("Cancel selected…")(page)


def _sign_out(page: Page) -> None:
    page.locator("[popovertarget=account-menu]").click()
    press("Sign out")(page)


def _post_without_cookie(page: Page) -> None:
    page.context.clear_cookies()
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", "a-password")
    page.click("button[type=submit]")
    page.wait_for_load_state("networkidle")


P = ConsolePage
NOTHING, CONFIRM, FORM = "", "confirm.html", "forms/form.html"
SECTIONS: Final[Mapping[str, Sequence[ConsolePage]]] = {
    "The platform": (
        P("dashboard", "Dashboard", "index", "dashboard.html"),
        P("search", "Search", "search", "search.html", query="?q=order"),
        P("tenants", "Tenants", "tenants", "tenants/tenants.html"),
        P("tenant-new", "New tenant", "tenant_add", "tenants/tenant_form.html"),
        P("all-calls", "Calls of all tenants", "all_calls", "records/call_list.html"),
        P(
            "all-questions",
            "Questions of all tenants",
            "all_input_requests",
            "records/input_requests.html",
        ),
        P(
            "all-questions-funnel",
            "Question statistics",
            "all_input_request_funnel",
            "records/funnel.html",
        ),
        P("all-refusals", "Refusals of all tenants", "all_refusals", "records/refusals.html"),
        P("all-audit-log", "Audit log of the platform", "all_audit_log", "records/audit_log.html"),
        P("all-functions", "Functions", "all_functions", "primitives/all_functions.html"),
        P("status", "Status", "status", "status.html"),
        P("keys", "Keys", "keys", "keys.html"),
        P("key-rotate", "Rotate the key", "key_rotate", CONFIRM),
        P("key-compromised", "Replace a compromised key", "key_compromise", FORM),
        P("key-retire", "Retire a key", "key_retire", CONFIRM),
        P("key-destroy", "Destroy a key", "key_destroy", CONFIRM),
        P("users", "Users", "users", "users/users.html"),
        P("user-new", "New user", "user_add", "users/user_new.html"),
        P("user", "User", "user", "users/user.html"),
        P("user-password", "Password link", "user_password", "users/link_form.html"),
        P(
            "user-password-issued",
            "The issued password link",
            "user_password",
            "users/link_issued.html",
            press("Issue the link"),
        ),
    ),
    "A tenant": (
        P("tenant", "Overview", "tenant", "tenants/tenant.html"),
        P("tenant-first-steps", "Overview of a new tenant", "tenant:new", "tenants/tenant.html"),
        P("connect", "Connect a client", "connect", "connect.html"),
        P(
            "connect-doctor",
            "Doctor and the log of connections",
            "connect:demo",
            "connect.html",
            _run_doctor,
            part="#doctor",
        ),
        P("settings", "Settings", "settings", "tenants/tenant_form.html"),
        P("close", "Close a tenant", "close", CONFIRM),
        P("tenant-file", "Tenant file", "tenant_file", "primitives/tenant_file.html"),
        P(
            "tenant-file-plan",
            "Changes of a tenant file",
            "tenant_file",
            "primitives/tenant_file.html",
            compare_file,
        ),
        P("salt", "Destroy the salt", "salt", CONFIRM),
        P("functions", "Granted functions", "functions", "primitives/functions.html"),
        P("secrets", "Secrets", "secrets", "tenants/secrets.html"),
        P("secret-new", "New secret", "secret_add", "tenants/secret_form.html"),
        P("secret-rotate", "Replace a secret's value", "secret_rotate", "tenants/secret_form.html"),
        P("secret-edit", "Edit a secret", "secret_edit", "tenants/secret_form.html"),
        P("secret-delete", "Delete a secret", "secret_delete", CONFIRM),
    ),
    "Members and credentials": (
        P("members", "Members", "members", "tenants/members.html"),
        P(
            "member-scopes",
            "Scopes of a member",
            "member_scopes:auditor",
            "tenants/member_scopes.html",
        ),
        P("member-remove", "Remove a member", "member_remove", CONFIRM),
        P(
            "invitation-issued",
            "The issued invitation",
            "members",
            "tenants/invitation_issued.html",
            _invite,
        ),
        P(
            "service-accounts",
            "Service accounts",
            "service_accounts",
            "tenants/service_accounts.html",
        ),
        P(
            "service-account-new",
            "New service account",
            "service_account_add",
            FORM,
        ),
        P("service-account-remove", "Remove a service account", "service_account_remove", CONFIRM),
        P("tokens", "Tokens", "tokens", "tenants/tokens.html"),
        P("token-new", "New token", "token_add", "tenants/token_form.html"),
        P(
            "token-issued",
            "The issued token",
            "token_add",
            "tenants/token_issued.html",
            _issue_token,
        ),
        P("token-renew", "Renew a token", "token_renew", "tenants/token_form.html"),
        P("token-revoke", "Revoke a token", "token_revoke", CONFIRM),
        P("connected-apps", "Connected apps", "connections", "tenants/connections.html"),
        P("connected-app-disconnect", "Disconnect an app", "connection_end", CONFIRM),
    ),
    "Tools": (
        P("tools", "Tools", "tools", "primitives/primitives.html"),
        P("tools-none", "Tools of a new tenant", "tools:none", "primitives/primitives.html"),
        P("tool", "Tool", "tool", "primitives/primitive.html"),
        P(
            "tool-trial",
            "Try it",
            "tool:script",
            "primitives/primitive.html",
            _try_tool,
            part="#try",
        ),
        P(
            "tool-saved-calls",
            "Saved calls",
            "tool:script",
            "primitives/saved_calls.html",
            _run_saved_calls,
        ),
        P("tool-saved-call-delete", "Delete a saved call", "saved_call_delete", CONFIRM),
        P("tool-new", "New tool", "tool_add", "primitives/primitive_form.html"),
        P(
            "tool-new-http",
            "New HTTP tool",
            "tool_add",
            "primitives/primitive_form.html",
            write_tool,
            query="?kind=http",
        ),
        P("tool-edit", "Edit a Python tool", "tool_edit", "primitives/primitive_form.html"),
        P(
            "tool-edit-script",
            "Edit a script",
            "tool_edit:script",
            "primitives/primitive_form.html",
        ),
        P(
            "tool-edit-http",
            "Edit an HTTP tool",
            "tool_edit:http",
            "primitives/primitive_form.html",
        ),
        P("tool-version", "Version", "tool_version", "primitives/version.html"),
        P("tool-roll-back", "Roll back a version", "tool_roll_back", CONFIRM),
        P("tool-disable", "Disable a tool", "tool_move", CONFIRM),
        P("tool-delete", "Delete a tool", "tool_delete", CONFIRM),
        P("tool-import", "Import an OpenAPI document", "tool_import", "primitives/import.html"),
        P(
            "tool-import-operations",
            "Choose operations",
            "tool_import",
            "primitives/import.html",
            _list_operations,
        ),
        P(
            "tool-import-preview",
            "Preview of imported tools",
            "tool_import",
            "primitives/import.html",
            _preview_import,
        ),
    ),
    "Prompts and resources": (
        P("prompts", "Prompts", "prompts", "primitives/primitives.html"),
        P("prompt", "Prompt", "prompt", "primitives/primitive.html"),
        P("prompt-edit", "Edit a prompt", "prompt_edit", "primitives/primitive_form.html"),
        P("resources", "Resources", "resources", "primitives/primitives.html"),
        P("resource", "Resource", "resource", "primitives/primitive.html"),
        P("resource-edit", "Edit a resource", "resource_edit", "primitives/primitive_form.html"),
        P("resource-announce", "Notify subscribers", "resource_announce", CONFIRM),
        P("templates", "Resource templates", "templates", "primitives/primitives.html"),
        P("template", "Resource template", "template", "primitives/primitive.html"),
        P("template-edit", "Edit a template", "template_edit", "primitives/primitive_form.html"),
    ),
    "Records": (
        P("calls", "Calls", "calls", "records/call_list.html"),
        P(
            "calls-filter",
            "Save a filter",
            "calls_filter_add",
            "records/saved_filter.html",
            query="?tool=deploy",
        ),
        P("calls-export", "Export calls", "calls_export", "records/export.html"),
        P("call", "Call", "call", "records/call.html"),
        P(
            "call-payloads",
            "Call with payloads",
            "call_payloads",
            "records/call.html",
            user="auditor",
        ),
        P("payload", "Payload", "payload", "records/payload.html", user="auditor"),
        P("payload-erase", "Erase a payload", "payload_erase", FORM),
        P("questions", "Questions", "input_requests", "records/input_requests.html"),
        P("question", "Question", "input_request", "records/input_request.html"),
        P(
            "question-payloads",
            "Question with its texts",
            "input_request_payloads",
            "records/input_request.html",
            user="auditor",
        ),
        P(
            "questions-search",
            "Search in the texts of questions",
            "input_request_search",
            "records/input_request_search.html",
            _search_words,
            user="auditor",
        ),
        P(
            "questions-cancel",
            "Cancel calls with open questions",
            "input_requests",
            "records/cancel_chosen.html",
            _choose_calls,
            query="?state=open",
        ),
        P("questions-export", "Export questions", "input_requests_export", "records/export.html"),
        P(
            "questions-funnel",
            "Question statistics",
            "input_request_funnel",
            "records/funnel.html",
        ),
        P("call-cancel", "Cancel a call", "call_cancel", CONFIRM),
        P("tasks", "Tasks", "tasks", "records/tasks.html"),
        P("task", "Task", "task", "records/task.html"),
        P("task-cancel", "Cancel a task", "task_cancel", CONFIRM),
        P("refusals", "Refusals", "refusals", "records/refusals.html"),
        P("audit-log", "Audit log", "audit_log", "records/audit_log.html"),
    ),
    "Your own account": (
        P("you", "Your access", "you", "users/you.html"),
        P("password", "Change the password", "password_change", FORM),
        P("own-token-new", "New token of your own", "own_token_add", "tenants/token_form.html"),
        P("own-token-revoke", "Revoke your token", "own_token_revoke", CONFIRM),
        P("leave", "Leave a tenant", "leave", CONFIRM),
        P("glossary", "Glossary", "glossary", "glossary.html"),
        P(
            "invitation",
            "Invitation",
            "invitation",
            "tenants/invitation.html",
            user="auditor",
        ),
    ),
    "Without the console": (
        P("sign-in", "Sign in", "login", "login.html", user=NOTHING),
        P(
            "invitation-set-up",
            "Invitation of a person without an account",
            "invitation:set-up",
            "tenants/set_up.html",
            user=NOTHING,
        ),
        P(
            "invitation-unknown",
            "Invitation that does not work",
            "/admin/invitations/unknown/",
            "tenants/invitation_unknown.html",
            status=404,
        ),
        P(
            "choose-password",
            "Choose a password",
            "account_link",
            "users/choose_password.html",
            user=NOTHING,
        ),
        P(
            "account-link-unknown",
            "Account link that does not work",
            "/admin/account-links/unknown/",
            "users/link_unknown.html",
            user=NOTHING,
            status=404,
        ),
        P("consent", "Consent to a client", "authorize", "consent.html"),
        P(
            "consent-refused",
            "Client that cannot connect",
            "authorize:refused",
            "consent_refused.html",
            status=400,
        ),
        P("confirm-request", "Confirm a tool's request", "done", "transport/link.html"),
        P("api-reference", "API reference", "/api/docs/", "api/reference.html"),
        P("not-found", "Not found", "/admin/unknown/", "refused.html", status=404),
        P(
            "no-access",
            "Page not available",
            "settings",
            "refused.html",
            user="auditor",
            status=403,
        ),
        P(
            "not-found-signed-out",
            "Not found, without a sign-in",
            "/unknown/",
            "404.html",
            user=NOTHING,
            status=404,
        ),
        P(
            "form-refused",
            "Form of an ended session",
            "login",
            "403_csrf.html",
            _post_without_cookie,
            user=NOTHING,
        ),
        P("signed-out", "Signed out", "you", "signed_out.html", _sign_out, user="auditor"),
    ),
}
PAGES: Final = tuple(page for pages in SECTIONS.values() for page in pages)


def page_list() -> str:
    """Return docs/pages.md."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "# Pages of the console"
    yield ""
    yield "Pictures of the pages in light and dark mode, and on a phone. `make screenshots PICTURES=pages` takes them"
    yield "again and writes this list. Long pages are cut."
    for section, pages in SECTIONS.items():
        yield from ("", f"## {section}", "", "| page | pictures |", "| --- | --- |")
        for page in pages:
            links = " · ".join(f"[{mode}](images/pages/{mode}/{page.name}.webp)" for mode in MODES)
            yield f"| {page.title} | {links} |"
    yield ""
