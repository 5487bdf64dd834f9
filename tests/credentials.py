"""The credentials of MCP clients that a user can take back: what ends one ends them all."""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from mcphost.identity.oauth.connections import end
from mcphost.identity.services import TokenRequest, issue, revoke
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS
from tests.cast import ACTOR, Cast, Person
from tests.oauth import connect, connection_of, make_client


class Credential(NamedTuple):
    """What a client presents for a member of `acme`, and how the member or an owner takes it back."""

    bearer: str
    revoke: Callable[[], object]


def pasted(cast: Cast, person: Person) -> Credential:
    """Return a token that was pasted into the client."""
    wanted = TokenRequest("pasted", (LIST_TOOLS, CALL_TOOLS))
    token = issue(cast.acme.id, person.user, wanted, actor=ACTOR)
    return Credential(token.plaintext, partial(revoke, cast.acme.id, token.id, actor=ACTOR))


def connected(cast: Cast, person: Person) -> Credential:
    """Return the access token of a client that the person connected by signing in."""
    issued = connect(make_client(), person)
    return Credential(issued.access, partial(end, cast.acme.id, connection_of(person), actor=ACTOR))


CREDENTIALS: Final = (pasted, connected)
MakeCredential = Callable[[Cast, Person], Credential]
