"""The base of all views: what is checked before an operation, and how its result is sent.

In order: the credential (401), its scope (403), the tenant of the address (404, 403), the parameters
(400), the conditions of the request (428), the body (400, 415, 422). The service decides the rest.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from mcphost.api import etags
from mcphost.api.authentication import (
    CHALLENGE,
    BearerAuthentication,
    ConsoleSessionAuthentication,
)
from mcphost.api.bodies import MergePatchParser, StrictJsonParser, StrictNegotiation, merged
from mcphost.api.call import ApiCall, read_only_names
from mcphost.api.errors import problem_response
from mcphost.api.operations import SAFE_METHODS, ApiOperation, scope_for
from mcphost.api.problems import ProblemError, ProblemType, not_found
from mcphost.api.replays import repeatable
from mcphost.api.representations import (
    Fields,
    ListQuery,
    NoFields,
    read_fields,
    read_query,
    writable,
)
from mcphost.identity.api_access import ApiCredential
from mcphost.tenants.access import require, visible_tenants
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

METHODS: Final = ("get", "post", "put", "patch", "delete")
_WHOLE_OBJECTS: Final = ("PUT", "PATCH")


class Endpoint(APIView):
    """One address. Its methods are declared with `operations.operation`.

    Keyword arguments of the route are passed to the methods, but for `slug`, which is the tenant.
    """

    authentication_classes = (BearerAuthentication, ConsoleSessionAuthentication)
    permission_classes: Sequence[type[BasePermission]] = (IsAuthenticated,)
    parser_classes: Sequence[type[BaseParser]] = (StrictJsonParser, MergePatchParser)
    renderer_classes = (JSONRenderer,)  # negotiates JSON; bodies are encoded by representations
    content_negotiation_class = StrictNegotiation
    metadata_class = None
    http_method_names = [*METHODS, "head"]

    def get_exception_handler(self) -> Callable[..., HttpResponse | None]:
        return problem_response

    def finalize_response(  # type: ignore[override]  # the framework takes responses of Django, too
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        final = super().finalize_response(request, response, *args, **kwargs)
        final.headers.setdefault("Cache-Control", "no-store")
        if final.status_code == 405:
            final.headers["Allow"] = ", ".join(self.allowed_methods)
        return final

    def perform(
        self,
        operation: ApiOperation,
        handler: Callable[..., HttpResponse],
        request: Request,
        ids: Mapping[str, Any],
    ) -> HttpResponse:
        """Check a request, and run its handler."""
        credential = request.auth
        assert isinstance(credential, ApiCredential)
        _check_scope(credential, scope_for(str(request.method)))
        rest = dict(ids)
        if any("\0" in str(value) for value in rest.values()):
            raise not_found()  # PostgreSQL has no text with it
        tenant = None
        if "slug" in rest:
            tenant = _tenant(credential, rest.pop("slug"), operation.permission)
        elif operation.permission is not None:
            require(credential.user, None, operation.permission)
        query = read_query(operation.query, request.query_params)
        call = ApiCall(request, operation, credential, tenant, query)
        if operation.conditional:
            call.if_match = etags.required_tags(request.headers.get("If-Match"))
        values: dict[str, Any] = {}
        if operation.query is not ListQuery:
            values["query"] = query
        if request.method not in SAFE_METHODS:
            call.repeatable = repeatable(request, call.caller, request.data)
            if call.repeatable is not None and (replay := call.repeatable.replay()) is not None:
                return replay
            call.body = _body(call, rest)
            if operation.body is not NoFields:
                values["body"] = call.body
        return _replayed_if_refused(call, lambda: handler(self, call, **values, **rest))


def _body(call: ApiCall, ids: Mapping[str, Any]) -> Fields:
    """Read the body. Members that only the server writes may be sent back as they were read; a merge
    patch becomes the whole object."""
    operation, sent = call.operation, call.request.data
    if call.request.method in _WHOLE_OBJECTS and isinstance(sent, dict):
        names = read_only_names(operation)
        call.read_only = {name: value for name, value in sent.items() if name in names}
        sent = {name: value for name, value in sent.items() if name not in names}
    if operation.merges is not None and isinstance(sent, dict):
        call.base = operation.merges(call, **ids)
        sent = merged(writable(operation.body, call.base.dump()), sent)
    return read_fields(operation.body, sent)


def _replayed_if_refused(call: ApiCall, handle: Callable[[], HttpResponse]) -> HttpResponse:
    """Handle a request. The same one may have ended meanwhile, so that its name is taken, or its
    preview old: then its response is returned instead of the refusal."""
    try:
        return handle()
    except Exception:
        replay = None if call.repeatable is None else call.repeatable.replay()
        if replay is None:
            raise
        return replay


def _check_scope(credential: ApiCredential, scope: str) -> None:
    if scope in credential.scopes:
        return
    if not credential.token_id:
        message = "The console's session may only read. Send a token to change something."
        raise ProblemError(ProblemType.SCOPE, message)
    challenge = f'{CHALLENGE}, error="insufficient_scope", scope="{scope}"'
    message = f"The token does not hold {scope}, or its owner's role may not hold it any more."
    raise ProblemError(ProblemType.SCOPE, message, headers={"WWW-Authenticate": challenge})


def _tenant(credential: ApiCredential, slug: str, permission: Permission | None) -> Tenant:
    """Return the tenant of an address. One that the token does not reach, or the user may not see, is
    unknown. Raises ProblemError, and PermissionDenied."""
    tenant = visible_tenants(credential.user).filter(slug=slug).first()
    if tenant is None or credential.tenant not in (None, tenant.pk):
        raise not_found()
    if permission is not None:
        require(credential.user, tenant, permission)
    return tenant
