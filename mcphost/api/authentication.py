"""Who calls the API: the owner of a bearer token, or the user of the console's session.

Tokens are read from the database at each request. A session may only read.
"""

from typing import Final

from django.contrib.auth.models import User
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from mcphost.audit.records import Actor
from mcphost.identity.api_access import ApiCredential, authenticate_api
from mcphost.tenants.roles import READ_API

CHALLENGE: Final = 'Bearer realm="mcphost"'
INVALID: Final = f'{CHALLENGE}, error="invalid_token"'
_SESSION_SCOPES: Final = frozenset({READ_API})


class BearerAuthentication(BaseAuthentication):
    """`Authorization: Bearer …` with a token of the API (RFC 6750)."""

    def authenticate(self, request: Request) -> tuple[User, ApiCredential] | None:
        header = get_authorization_header(request).decode("latin-1")
        if not header:
            return None
        scheme, _, token = header.partition(" ")
        credential = authenticate_api(token.strip()) if scheme.lower() == "bearer" else None
        if credential is None:
            raise AuthenticationFailed("The token does not work here.")
        return credential.user, credential

    def authenticate_header(self, request: Request) -> str:
        return INVALID if get_authorization_header(request) else CHALLENGE


class ConsoleSessionAuthentication(BaseAuthentication):
    """The session of a user who is signed in to the console. It holds the scope to read, no other."""

    def authenticate(self, request: Request) -> tuple[User, ApiCredential] | None:
        user = getattr(request._request, "user", None)
        if not isinstance(user, User) or not user.is_active:
            return None
        actor = Actor.person(user.pk, user.get_username())
        return user, ApiCredential("", user, None, _SESSION_SCOPES, actor)
