"""The endpoints of the authorization server that programs use: `/token`, `/revoke`, `/register`.

They are served below `programs.ForPrograms`, which has checked the method, the media type and the size.
"""

from collections.abc import Callable
from typing import Final

import orjson
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from mcphost.identity.oauth import grants, registration
from mcphost.identity.oauth.addresses import issuer_of
from mcphost.identity.oauth.errors import OAuthError, OAuthErrorCode
from mcphost.identity.oauth.grants import OAuthAnswer
from mcphost.transport.guard import JSON

_STATUSES: Final = {OAuthErrorCode.INVALID_CLIENT: 401, OAuthErrorCode.TOO_MANY: 429}


@csrf_exempt
def token(request: HttpRequest) -> HttpResponse:
    """Redeem a code or a refresh token (RFC 6749 section 3.2)."""
    return _answer_form(request, grants.answer_token)


@csrf_exempt
def revoke(request: HttpRequest) -> HttpResponse:
    """Revoke a token (RFC 7009)."""
    return _answer_form(request, grants.answer_revocation)


@csrf_exempt
def register(request: HttpRequest) -> HttpResponse:
    """Register a client (RFC 7591 section 3)."""
    try:
        client = registration.register(request.body, str(request.META.get("REMOTE_ADDR", "")))
    except OAuthError as error:
        return _refused(error)
    return HttpResponse(orjson.dumps(client), status=201, content_type=JSON)


def _answer_form(
    request: HttpRequest, answer: Callable[[str, str, str], OAuthAnswer]
) -> HttpResponse:
    issuer = issuer_of(request.get_host())
    try:
        body = request.body.decode("ascii")
    except UnicodeDecodeError:
        message = "The body must be a form, and is not ASCII."
        return _refused(OAuthError(OAuthErrorCode.INVALID_REQUEST, message))
    answered = answer(body, issuer + request.path, issuer)
    return HttpResponse(answered.body, status=answered.status, headers=dict(answered.headers))


def _refused(error: OAuthError) -> HttpResponse:
    body = {"error": error.code, "error_description": error.description}
    return HttpResponse(
        orjson.dumps(body), status=_STATUSES.get(error.code, 400), content_type=JSON
    )
