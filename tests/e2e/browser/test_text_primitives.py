"""Prompts, resources and templates: written in a browser, used by the official client."""

import asyncio
import re
from base64 import b64decode
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mcp import Client
from playwright.sync_api import Locator, Page, expect

from tests.e2e.browser.conftest import Visit
from tests.e2e.processes import Server
from tests.e2e.test_python_client import connected

DEMO = "/admin/t/demo/"
Answer = TypeVar("Answer")


def by_client(server: Server, ask: Callable[[Client], Awaitable[Answer]]) -> Answer:
    """What the official client gets. It has a thread of its own: this one's loop is the browser's."""

    async def asked() -> Answer:
        async with connected(server.url, server.token) as client:
            return await ask(client)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(asked())).result(timeout=60)


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "picture.png"
    path.write_bytes(b64decode(PNG))
    return path


TENANT = "/admin/t/demo/"


def menu(page: Page, name: str) -> None:
    if "/t/" not in page.url:  # several tenants: the pages of one are in its own menu
        page.goto(TENANT)
    page.locator("#nav-sidebar").get_by_text(name, exact=True).click()


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name=name, exact=True)


def field(page: Page, name: str) -> Locator:
    return page.locator(f"#id_{name}")


def publish(page: Page) -> None:
    page.get_by_role("button", name="Save and publish").click()


def write_prompt(page: Page, picture: Path) -> None:
    page.get_by_role("link", name="New prompt").click()
    page.get_by_role("button", name="Add an argument").click()
    first = row(page, "Argument 1")
    expect(first.get_by_label("Name")).to_be_focused()
    first.get_by_label("Name").fill("city")
    first.get_by_label("Suggestions").fill("Bonn\nOslo")
    first.get_by_text("Required", exact=True).click()
    row(page, "Message 1").get_by_label("Text").fill("How is the weather in ")
    page.get_by_role("button", name="{city}").click()
    page.get_by_role("button", name="Add a message").click()
    second = row(page, "Message 2")
    expect(second.get_by_label("File")).to_be_hidden()
    second.get_by_label("Content").select_option("image")
    expect(second.get_by_label("Text")).to_be_hidden()
    second.get_by_label("File").set_input_files(picture)
    expect(second.get_by_role("img")).to_be_visible()
    page.get_by_role("button", name="Add an icon").click()
    row(page, "Icon 1").get_by_label("Image").set_input_files(picture)


def test_a_prompt_is_written_in_the_console_and_read_by_a_client(
    visit: Visit, server: Server, picture: Path
) -> None:
    page = visit("admin")
    menu(page, "Prompts")
    write_prompt(page, picture)
    publish(page)

    expect(page.locator("[data-field=name] .c-error").first).to_be_visible()
    expect(row(page, "Message 2").get_by_role("img")).to_be_visible()
    field(page, "name").fill("weather_talk")
    field(page, "description").fill("Begins a talk about the weather.")
    row(page, "Message 2").get_by_role("button", name="Move up").click()
    expect(row(page, "Message 1").get_by_label("Content")).to_have_value("image")
    publish(page)
    expect(page.get_by_role("heading", name="weather_talk")).to_be_visible()
    expect(page.locator(".c-pieces")).to_contain_text("How is the weather in Bonn")

    async def use(client: Client) -> tuple[Any, Any]:
        listed = await client.list_prompts()
        got = await client.get_prompt("weather_talk", {"city": "Oslo"})
        return listed.prompts, got.messages

    prompts, messages = by_client(server, use)
    listed = next(each for each in prompts if each.name == "weather_talk")
    assert listed.arguments[0].required
    assert listed.icons[0].src.startswith("data:image/png;base64,")
    assert b64decode(messages[0].content.data) == picture.read_bytes()
    assert messages[1].content.text == "How is the weather in Oslo"


def test_form_rows_are_added_moved_and_removed_by_keyboard(visit: Visit) -> None:
    page = visit("admin")
    page.goto(f"{DEMO}prompts/new/")
    add = page.get_by_role("button", name="Add an argument")
    for name in ("first", "second", "third"):
        add.focus()
        page.keyboard.press("Enter")
        page.keyboard.type(name)
    expect(page.get_by_role("button", name="{third}")).to_be_visible()
    row(page, "Argument 3").get_by_role("button", name="Move up").focus()
    page.keyboard.press("Enter")
    expect(row(page, "Argument 2").get_by_label("Name")).to_have_value("third")
    expect(row(page, "Argument 2").get_by_role("button", name="Move up")).to_be_focused()
    row(page, "Argument 1").get_by_role("button", name="Remove").focus()
    page.keyboard.press("Enter")
    expect(row(page, "Argument 1").get_by_label("Name")).to_have_value("third")
    expect(row(page, "Argument 1").get_by_role("button", name="Remove")).to_be_focused()
    expect(page.get_by_role("button", name="{first}")).to_have_count(0)


def test_resources_are_written_or_uploaded_read_and_announced_to_subscribers(
    visit: Visit, server: Server, picture: Path
) -> None:
    page = visit("admin")
    menu(page, "Resources")
    page.get_by_role("link", name="New resource").click()
    field(page, "uri").fill("docs://journey handbook")
    field(page, "name").fill("handbook")
    field(page, "text").fill("# Be kind\n<b>always</b>")
    field(page, "mime_type").fill("text/markdown")
    publish(page)
    expect(page.locator("[data-field=uri] .c-error")).to_be_visible()
    expect(field(page, "text")).to_have_value("# Be kind\n<b>always</b>")
    field(page, "uri").fill("docs://journey/handbook")
    publish(page)
    expect(page.locator(".c-pieces")).to_contain_text("<b>always</b>")
    page.get_by_role("link", name=re.compile("Notify subscribers")).click()
    page.get_by_role("button", name="Notify subscribers").click()
    expect(page.locator("#main")).to_contain_text("are notified that it changed")

    page.goto(f"{DEMO}resources/new/")
    field(page, "uri").fill("docs://journey/picture")
    field(page, "name").fill("picture")
    expect(field(page, "file")).to_be_hidden()
    field(page, "holds").select_option("file")
    field(page, "file").set_input_files(picture)
    publish(page)
    expect(page.locator(".c-pieces").get_by_role("img")).to_be_visible()

    async def use(client: Client) -> tuple[Any, Any]:
        text = await client.read_resource("docs://journey/handbook")
        image = await client.read_resource("docs://journey/picture")
        return text.contents[0], image.contents[0]

    text, image = by_client(server, use)
    assert (text.text, text.mime_type) == ("# Be kind\n<b>always</b>", "text/markdown")
    assert (b64decode(image.blob), image.mime_type) == (picture.read_bytes(), "image/png")
    menu(page, "Audit log")
    expect(page.locator("tbody")).to_contain_text("Resource announced")


def test_a_prompt_is_written_without_javascript(visit: Visit, server: Server) -> None:
    signed_in = visit("admin").context
    browser = signed_in.browser
    assert browser is not None
    context = browser.new_context(
        base_url=server.base, java_script_enabled=False, storage_state=signed_in.storage_state()
    )
    page = context.new_page()
    page.goto(f"{DEMO}prompts/new/")
    field(page, "name").fill("plain_words")
    field(page, "description").fill("Without scripts.")
    page.locator("[name=messages-1-text]").fill("Second row, first message")
    publish(page)
    expect(page.locator(".c-pieces")).to_contain_text("Second row, first message")
    context.close()
