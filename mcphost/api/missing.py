"""Addresses below `/api/` at which there is nothing."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from mcphost.api.errors import response_of
from mcphost.api.problems import ProblemError, ProblemType


@csrf_exempt
def unknown_address(request: HttpRequest) -> HttpResponse:
    """Answer 404. It is the same with and without a credential."""
    message = "There is nothing at this address. The API is below /api/v1/."
    return response_of(ProblemError(ProblemType.NOT_FOUND, message), request.path)
