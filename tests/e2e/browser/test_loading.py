"""Pages with all their files load in a browser, though few requests of one address run at once."""

from playwright.sync_api import Response

from mcphost.transport.django_requests import PER_ADDRESS
from tests.e2e.browser.conftest import Visit

WINDOWS = 3


def test_every_file_of_several_pages_arrives(visit: Visit) -> None:
    windows = [visit("admin") for _ in range(WINDOWS)]
    seen: list[tuple[int, str]] = []

    def note(response: Response) -> None:
        seen.append((response.status, response.url))

    for page in windows:
        page.on("response", note)
        page.context.route("**/*", lambda route: route.continue_())  # nothing comes from a cache
    for path in ("/admin/", "/admin/t/demo/tools/", "/admin/t/demo/calls/"):
        for page in windows:
            page.goto(path, wait_until="commit")
        for page in windows:
            page.wait_for_load_state("networkidle")
    files = [url for _, url in seen if "/static/" in url]
    assert len(files) > 3 * WINDOWS * PER_ADDRESS
    assert {status for status, _ in seen} == {200}
