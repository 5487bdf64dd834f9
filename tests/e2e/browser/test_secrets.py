"""A secret is stored, rotated and deleted in a real browser, on a phone in the dark too."""

from playwright.sync_api import expect

from tests.e2e.browser.conftest import PHONE, Visit, shoot

SECRETS = "/admin/t/demo/secrets/"
VALUE = "a-value-that-is-typed-once"


def test_an_owner_stores_rotates_and_deletes_a_secret(visit: Visit) -> None:
    page = visit("admin")
    page.goto(SECRETS)
    shoot(page, "secrets-before")
    page.get_by_role("link", name="New secret").click()
    page.get_by_label("Name").fill("weather_key")
    page.get_by_label("Value").fill(VALUE)
    page.get_by_label("Hosts").fill("https://api.example.com")
    page.get_by_label("in a header").check()
    page.get_by_role("button", name="Store secret").click()
    expect(page.locator(".c-error")).to_contain_text("is no host name")
    expect(page.get_by_label("Value")).to_have_value("")
    expect(page.get_by_label("Hosts")).to_be_focused()
    shoot(page, "secret-refused")
    page.get_by_label("Value").fill(VALUE)
    page.get_by_label("Hosts").fill("api.example.com\nother.example.com:8443")
    page.get_by_role("button", name="Store secret").click()
    row = page.get_by_role("row", name="weather_key")
    expect(row).to_contain_text("other.example.com:8443")
    expect(row.get_by_role("cell").nth(4)).to_have_text("never")
    assert VALUE not in page.content()
    shoot(page, "secrets")
    row.get_by_role("link", name="Rotate").click()
    page.get_by_label("New value").fill(f"{VALUE}-2")
    page.get_by_role("button", name="Replace the value").click()
    expect(row.get_by_role("cell").nth(4)).to_contain_text("by admin")

    phone = visit("admin", size=PHONE, theme="dark")
    links = [link.get_attribute("href") or "" for link in row.get_by_role("link").all()]
    assert len(links) == 3
    for path in (SECRETS, f"{SECRETS}new/", *links):
        phone.goto(path)
        shoot(phone, f"phone-dark-secrets-{path.strip('/').rpartition('/')[2]}")
        assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path

    row.get_by_role("link", name="Delete").click()
    page.get_by_label("Type the name").fill("weather_key")
    page.get_by_role("button", name="Delete permanently").click()
    expect(page.locator("#main")).to_contain_text("Secret weather_key is deleted.")
