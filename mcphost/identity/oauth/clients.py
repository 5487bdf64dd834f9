"""Which OAuth clients there are: registered ones, and those with a metadata document."""

from mcphost.identity.models import CLIENT_ID_LENGTH, OAuthClient
from mcphost.identity.oauth.pins import PINS


def find(client_id: str) -> OAuthClient | None:
    """Return a client that is stored or pinned. Nothing is fetched; a pin may have no row yet."""
    if len(client_id) > CLIENT_ID_LENGTH or not (client_id.isascii() and client_id.isprintable()):
        return None
    client = OAuthClient.objects.filter(id=client_id).first()
    if client is None and (pin := PINS.get(client_id)) is not None:
        return OAuthClient(id=pin.id, name=pin.name, redirect_uris=list(pin.redirect_uris))
    return client
