"""Keys in a real browser: the picture of the ring, and a rotation from its confirmation on."""

from playwright.sync_api import expect

from tests.e2e.browser.conftest import PHONE, Visit, shoot


def test_the_ring_is_drawn_and_rotated(visit: Visit) -> None:
    page = visit("admin")
    page.locator("#nav-sidebar").get_by_text("Keys", exact=True).click()
    picture = page.get_by_role("img", name="Each key's life")
    expect(picture).to_be_visible()
    before = picture.locator(".c-ring-key").count()
    page.get_by_role("link", name="Rotate…", exact=True).click()
    shoot(page, "key-rotate")
    page.get_by_role("button", name="Rotate").click()
    expect(page.get_by_role("status")).to_contain_text("was created")
    expect(picture.locator(".c-ring-key")).to_have_count(before + 1)
    expect(picture.locator("rect.c-ring-standby").first).to_be_visible()
    shoot(page, "keys")
    page.set_viewport_size(PHONE)
    shoot(page, "phone-keys")
