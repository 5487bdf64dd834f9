"""A tenant as one file in a browser: downloaded, changed, compared, corrected and applied."""

from pathlib import Path

from playwright.sync_api import FilePayload, Page, expect

from tests.e2e.browser.conftest import PHONE, WIDE, Visit

PAGE = "/admin/t/demo/file/"
TOOL = """
  read_order:
    kind: http
    description: Reads an order.
    config:
      input_schema: {type: object, properties: {id: {type: string}}}
      request: {method: FETCH, url: "https://api.example.com/orders/{arguments.id}"}
"""


def upload(content: str) -> FilePayload:
    return {"name": "demo.yaml", "mimeType": "application/yaml", "buffer": content.encode()}


def compare(page: Page, content: str) -> None:
    page.goto(PAGE)
    page.get_by_label("File", exact=True).set_input_files(upload(content))
    page.get_by_role("button", name="Compare").click()


def test_a_file_is_downloaded_corrected_compared_and_applied(visit: Visit, tmp_path: Path) -> None:
    page = visit("admin", size=WIDE)
    page.goto(PAGE)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download demo.yaml").click()
    exported = tmp_path / "demo.yaml"
    download.value.save_as(exported)
    before = exported.read_text()
    changed = before.replace("\ntools:\n", f"\ntools:{TOOL}")
    compare(page, changed)
    problem = page.get_by_role("row").filter(has_text="tools.read_order.config.request.method")
    line = 1 + changed[: changed.index("FETCH")].count("\n")
    expect(problem).to_contain_text(f"line {line}")
    compare(page, changed.replace("FETCH", "GET"))
    expect(page.get_by_role("heading", name="1 added")).to_be_visible()
    expect(page.locator("ins").filter(has_text="Reads an order.")).to_be_visible()
    other = visit("admin", size=PHONE)
    compare(other, changed.replace("FETCH", "GET"))
    expect(other.get_by_role("button", name="Apply")).to_be_visible()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#main")).to_contain_text("The file was applied: 1 added.")
    other.get_by_role("button", name="Apply").click()
    expect(other.locator("#main")).to_contain_text("Nothing was applied: the tenant has changed")
    expect(other.locator("#main")).to_contain_text("The tenant is as the file says.")
    compare(page, before.replace("prune: false", "prune: true"))
    expect(page.get_by_role("heading", name="1 archived")).to_be_visible()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#main")).to_contain_text("The file was applied: 1 archived.")
