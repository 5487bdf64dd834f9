"""Every page of the console has a picture: one for each template, and one for each URL unless a reason is stated."""

import re
from pathlib import Path
from typing import Final

from tests.console.url_walk import BY_NAME
from tests.screenshots.pages import PAGES

ROOT: Final = Path(__file__).resolve().parents[2]
TEMPLATES: Final = ROOT / "templates"
FRAGMENTS: Final = {
    "console/dashboards/first_steps.html": "a part of the overview, loaded again",
    "console/primitives/trial.html": "the frame on the page of a tool",
    "console/records/call_row.html": "a row of the list of calls",
    "console/records/input_request_row.html": "a row of the list of questions",
    "console/search_hits.html": "the results in the palette",
    "503.html": "needs a database that is away",
    **{
        f"console/forms/part_{part}.html": "a part of the form of a tool, prompt or resource"
        for part in ["function", "http", "prompt", "resource", "schema", "script", "template"]
    },
}
"""Templates that code renders without a picture of their own, with the reasons."""
WITHOUT_PICTURE: Final = {
    "POST only": (
        "functions_change tools_bulk prompts_bulk resources_bulk templates_bulk member_role member_password "
        "service_account_enable saved_calls_run script_check "
        "http_check http_check_saved tool_try tool_try_saved tool_try_end logout tenant_file_plan "
        "input_requests_cancel all_input_requests_cancel connect_doctor "
    ),
    "no page: JSON, a file, or a part of a page": (
        "status_json first_steps tenant_file_download calls_changes all_calls_changes input_requests_changes "
        "all_input_requests_changes calls_csv calls_jsonl calls_part_csv calls_part_jsonl all_calls_csv "
        "all_calls_jsonl all_calls_part_csv all_calls_part_jsonl input_requests_csv input_requests_jsonl "
        "input_requests_part_csv input_requests_part_jsonl all_input_requests_csv all_input_requests_jsonl "
        "all_input_requests_part_csv all_input_requests_part_jsonl input_request_search_part "
        "audit_log_csv audit_log_jsonl audit_log_part_csv audit_log_part_jsonl all_audit_log_csv "
        "all_audit_log_jsonl all_audit_log_part_csv all_audit_log_part_jsonl "
    ),
    "as the page of a tenant": (
        "all_calls_filter_add all_calls_filter all_calls_export all_input_requests_export "
        "all_input_requests_filter_add all_input_requests_filter calls_filter input_requests_filter "
        "input_requests_filter_add "
    ),
    "as the page of a tool": (
        "prompt_add prompt_version prompt_move prompt_delete prompt_roll_back resource_add resource_version "
        "resource_move resource_delete resource_roll_back template_add template_version template_move "
        "template_delete template_roll_back template_announce "
    ),
    "as another page of the same form": (
        "own_token_renew own_connection_end task_retry invitation_withdraw service_account_disable "
        "audit_log_export all_audit_log_export "
    ),
    "as the page of a question with its texts": "input_requests_payloads",
}
"""Names of URLs by the reason why they have no picture."""


def _rendered_templates() -> set[str]:
    """Return the templates that code names: pages, and parts that are loaded on their own."""
    names = {
        name
        for path in (ROOT / "mcphost").rglob("*.py")
        for name in re.findall(r'"([\w/]+\.html)"', path.read_text())
    }
    return {_full_name(name) for name in names}


def _full_name(name: str) -> str:
    """Return a template's name: views of the console name theirs without the folder."""
    return name if (TEMPLATES / name).exists() else f"console/{name}"


def test_each_template_of_a_page_has_a_picture_or_a_reason() -> None:
    pictured = {_full_name(page.template) for page in PAGES}
    assert all((TEMPLATES / name).exists() for name in pictured)
    assert _rendered_templates() - pictured == set(FRAGMENTS)


def test_each_url_has_a_picture_or_a_reason() -> None:
    named = {page.address.partition(":")[0] for page in PAGES}
    without = [name for names in WITHOUT_PICTURE.values() for name in names.split()]
    assert len(without) == len(set(without))
    assert set(BY_NAME) - named == set(without)


def test_each_picture_has_a_name_of_its_own() -> None:
    names = [page.name for page in PAGES]
    assert len(names) == len(set(names))
