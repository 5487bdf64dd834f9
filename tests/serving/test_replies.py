"""The `serverInfo` of a tenant."""

from mcphost.serving.replies import VERSION, server_info


def test_it_is_our_software_under_the_tenants_title() -> None:
    assert server_info("Ada's", "") == {
        "name": "mcphost",
        "title": "Ada's",
        "version": VERSION,
    }


def test_an_icon_comes_with_its_type() -> None:
    icon = "data:image/png;base64,iVBORw0KGgo="
    assert server_info("Ada's", icon)["icons"] == [{"src": icon, "mimeType": "image/png"}]
