"""Drop cached tokens when the change log reports a change of a token, a member or a tenant."""

from mcphost.feed.loop import ChangeNews, loop
from mcphost.identity import selectors


def token_changed(news: ChangeNews) -> None:
    selectors.forget_token(news.object_id)


def member_changed(news: ChangeNews) -> None:
    if news.object_id.isdecimal():
        selectors.forget_person(int(news.object_id))
    else:
        selectors.forget_all()


def tenant_changed(news: ChangeNews) -> None:
    if news.tenant is None:
        selectors.forget_all()
    else:
        selectors.forget_tenant(news.tenant)


loop.subscribe("token", token_changed)
loop.subscribe("member", member_changed)
loop.subscribe("tenant", tenant_changed)
loop.on_gap(selectors.forget_all)
