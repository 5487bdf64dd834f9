"""The addresses of the console, all under `/admin/`.

A page that is about a tenant says so in its address (`t/<slug>/`), and nowhere else.
"""

from collections.abc import Callable
from typing import Any

from django.http import HttpResponseBase
from django.urls import URLPattern, path, register_converter
from django.urls.converters import StringConverter

from mcphost.catalogue.states import Verb
from mcphost.console import (
    calls,
    dashboard,
    functions,
    keys,
    members,
    primitives,
    records,
    tenants,
    tokens,
    updates,
    users,
)
from mcphost.console.site import site
from mcphost.kinds.sorts import Sort


class VerbConverter(StringConverter):
    """What can be done to a tool's state."""

    regex = "|".join(Verb)


class KeyConverter(StringConverter):
    """The id of a key of the ring."""

    regex = "[0-9a-z]{1,16}"


class TokenConverter(StringConverter):
    """A token's id."""

    regex = "[0-9A-Za-z]{1,32}"


register_converter(VerbConverter, "verb")
register_converter(KeyConverter, "key")
register_converter(TokenConverter, "token")


def _page(route: str, view: Any, name: str, **told: Any) -> URLPattern:
    """A page for those who may enter; others are led to the sign-in."""
    guarded: Callable[..., HttpResponseBase] = site.admin_view(view)
    return path(route, guarded, told, name=name)


def _pages_of(sort: Sort) -> tuple[URLPattern, ...]:
    """The pages of one sort of thing that a tenant offers."""
    name = sort.value
    listed, one = f"t/<slug:slug>/{name}s/", f"t/<slug:slug>/{name}s/<uuid:primitive_id>/"
    return (
        _page(listed, primitives.listing, f"{name}s", sort=sort),
        _page(f"{listed}new/", primitives.add, f"{name}_add", sort=sort),
        _page(one, primitives.detail, name, sort=sort),
        _page(f"{one}edit/", primitives.edit, f"{name}_edit", sort=sort),
        _page(f"{one}<verb:verb>/", primitives.move, f"{name}_move", sort=sort),
    )


def _announcing(sort: Sort) -> tuple[URLPattern, ...]:
    """The page that tells subscribers of what a thing of this sort answers."""
    route = f"t/<slug:slug>/{sort.value}s/<uuid:primitive_id>/announce/"
    return (_page(route, updates.announce, f"{sort.value}_announce", sort=sort),)


app_name = "admin"
urlpatterns = [
    path("login/", site.login, name="login"),
    _page("logout/", site.logout, "logout"),
    _page("", dashboard.index, "index"),
    _page("password/", users.own_password, "password_change"),
    _page("tenants/", tenants.listing, "tenants"),
    _page("tenants/new/", tenants.add, "tenant_add"),
    _page("records/", calls.all_calls, "all_records"),
    _page("refusals/", calls.all_refusals, "all_refusals"),
    _page("changes/", records.all_changes, "all_changes"),
    _page("code/", functions.code, "code"),
    _page("keys/", keys.ring, "keys"),
    _page("keys/rotate/", keys.rotate, "key_rotate"),
    _page("keys/compromised/", keys.compromise, "key_compromise"),
    _page("keys/<key:key_id>/retire/", keys.retire, "key_retire"),
    _page("keys/<key:key_id>/destroy/", keys.destroy, "key_destroy"),
    _page("users/", users.listing, "users"),
    _page("users/new/", users.add, "user_add"),
    _page("users/<int:user_id>/", users.edit, "user"),
    _page("users/<int:user_id>/password/", users.set_password, "user_password"),
    _page("t/<slug:slug>/", tenants.overview, "tenant"),
    _page("t/<slug:slug>/settings/", tenants.settings, "settings"),
    _page("t/<slug:slug>/close/", tenants.close, "close"),
    _page("t/<slug:slug>/salt/", keys.salt, "salt"),
    *_pages_of(Sort.TOOL),
    *_pages_of(Sort.PROMPT),
    *_pages_of(Sort.RESOURCE),
    *_pages_of(Sort.TEMPLATE),
    *_announcing(Sort.RESOURCE),
    *_announcing(Sort.TEMPLATE),
    _page("t/<slug:slug>/functions/", functions.listing, "functions"),
    _page("t/<slug:slug>/functions/change/", functions.change, "functions_change"),
    _page("t/<slug:slug>/tokens/", tokens.listing, "tokens"),
    _page("t/<slug:slug>/tokens/new/", tokens.issue, "token_add"),
    _page("t/<slug:slug>/tokens/<token:token_id>/revoke/", tokens.revoke, "token_revoke"),
    _page("t/<slug:slug>/members/", members.listing, "members"),
    _page("t/<slug:slug>/members/<int:user_id>/role/", members.change, "member_role"),
    _page("t/<slug:slug>/members/<int:user_id>/remove/", members.remove, "member_remove"),
    _page("t/<slug:slug>/records/", calls.listing, "records"),
    _page("t/<slug:slug>/records/<uuid:call_id>/", calls.call, "call"),
    _page("t/<slug:slug>/records/<uuid:call_id>/said/", calls.call_said, "call_said"),
    _page("t/<slug:slug>/refusals/", calls.refusals, "refusals"),
    _page("t/<slug:slug>/payloads/<uuid:entry_id>/", records.payload, "payload"),
    _page("t/<slug:slug>/payloads/<uuid:entry_id>/erase/", records.erase, "payload_erase"),
    _page("t/<slug:slug>/changes/", records.changes, "changes"),
]
