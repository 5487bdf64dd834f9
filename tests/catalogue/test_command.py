"""`manage.py tools`."""

from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from mcphost.audit.models import Entry
from mcphost.catalogue import selectors, services
from mcphost.tenants.services import close_tenant
from tests.catalogue.memory_kind import ACTOR, fields

pytestmark = pytest.mark.django_db


def run(*words: str) -> list[str]:
    out = StringIO()
    call_command("tools", *words, stdout=out)
    return out.getvalue().splitlines()


def test_list_shows_every_tool_with_its_state_and_its_problem(acme, globex, shelf):
    services.grant_function(globex, "demo.echo", ACTOR)
    services.create(globex, fields(), ACTOR)
    echo = services.publish(services.create(acme, fields(), ACTOR).id, ACTOR)
    add = services.publish(services.create(acme, fields("demo.add"), ACTOR).id, ACTOR)
    services.update(echo.id, fields(title="Parrot"), ACTOR)
    del shelf.functions["demo.add"]
    ours = [
        f"acme\ttool\tadd\tpublished\t{add.version}\tNOT SERVED: There is no function demo.add.",
        f"acme\ttool\techo\tpublished\t{echo.version}\t(edited since)",
    ]
    assert run("list", "acme") == ours
    assert run("list") == [*ours, "globex\ttool\techo\tdraft\t-"]


def test_publish_serves_the_working_copy(acme: UUID) -> None:
    services.create(acme, fields(), ACTOR)
    (line,) = run("publish", "acme", "echo")
    (tool,) = selectors.offering(acme).tools
    assert line == f"acme/echo is published as {tool.version}"
    entry = Entry.objects.get(action="tool.published")
    assert (entry.actor_kind, entry.actor_label) == ("system", "manage.py tools")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "nobody"], "there is no open tenant 'nobody'"),
        (["publish", "acme", "nothing"], "acme has no tool 'nothing'"),
        (["grant", "acme", "demo.nothing"], "There is no function 'demo.nothing'"),
    ],
)
def test_an_unknown_tenant_tool_or_function_is_reported_in_one_line(
    acme: UUID, words: list[str], said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        run(*words)
    close_tenant(acme, actor=ACTOR)
    with pytest.raises(CommandError, match="no open tenant 'acme'"):
        run("publish", "acme", "echo")
    assert run("list") == []
    assert "draft --publish--> published" in run("states")
