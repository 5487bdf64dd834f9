"""Each exception of a request as a problem; no other module chooses a status for one."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from rest_framework import exceptions

from mcphost.api.problems import (
    MEDIA_TYPE,
    FieldFault,
    ProblemError,
    ProblemType,
    faults_of,
    not_found,
)
from mcphost.catalogue.errors import (
    ConflictError,
    InvalidPrimitiveError,
    NotDeletableError,
    UnchangedError,
    UnknownError,
    WrongStateError,
)
from mcphost.identity.idempotency import StillRunningError
from mcphost.kinds.http.openapi_documents import OpenApiError
from mcphost.kinds.http.openapi_finding import FindingBusyError
from mcphost.serving.database import DATABASE_ERRORS, report
from mcphost.serving.execution.trials import TrialEndedError
from mcphost.tenant_file.errors import InvalidFileError, MovedError
from mcphost.tenants.errors import InvalidError, UnknownTenantError
from mcphost.vault.errors import KeyRefusalError

RETRY_SECONDS: Final = 2
_INVALID: Final = "What was sent cannot be stored as it is."
_FORBIDDEN: Final = "Your role in this tenant does not allow it."


def problem_response(error: Exception, context: Mapping[str, Any]) -> HttpResponse | None:
    """Return the response to an exception of a view; None for one that is a fault of the server."""
    problem = problem_of(error)
    if problem is None:
        return None
    return response_of(problem, context["request"].path)


def response_of(error: ProblemError, path: str) -> HttpResponse:
    """Return the response that says why a request is refused."""
    problem = error.problem(path)
    headers = {"Cache-Control": "no-store", **error.headers}
    return HttpResponse(
        problem.encoded(), status=problem.type.status, content_type=MEDIA_TYPE, headers=headers
    )


def problem_of(error: Exception) -> ProblemError | None:
    """Return the problem that an exception stands for; None if it stands for none."""
    for classes, convert in _CONVERSIONS:
        if isinstance(error, classes):
            return convert(error)
    return None


def _itself(error: Any) -> ProblemError:
    problem: ProblemError = error
    return problem


def _of_framework(error: Any) -> ProblemError:
    problem_type = ProblemType.of_status(error.status_code)
    headers = {}
    if challenge := getattr(error, "auth_header", ""):
        headers["WWW-Authenticate"] = challenge
    if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        problem_type = ProblemType.UNAUTHENTICATED
    return ProblemError(problem_type, str(error.detail), headers=headers)


def _of_fields(error: Any) -> ProblemError:
    faults = faults_of(error.problems)
    return ProblemError(ProblemType.INVALID, _INVALID, faults)


def _of_state(error: Any) -> ProblemError:
    code = "unchanged" if isinstance(error, UnchangedError) else "state"
    fault = FieldFault("/state", code, f"{error}.".replace("..", "."))
    return ProblemError(ProblemType.CONFLICT, fault.detail, [fault])


def _of_file(error: Any) -> ProblemError:
    faults = [
        FieldFault("/content", problem.path or "file", f"Line {problem.line}: {problem.message}")
        for problem in error.problems
    ]
    return ProblemError(ProblemType.INVALID, "The file cannot be applied.", faults)


def _of_document(error: Any) -> ProblemError:
    fault = FieldFault("/content", "document", str(error))
    return ProblemError(ProblemType.INVALID, "The document cannot be imported.", [fault])


def _of_trial(error: Any) -> ProblemError:
    return ProblemError(ProblemType.CONFLICT, f"{error} The trial has ended, and nothing was run.")


def _of_busy(error: Any) -> ProblemError:
    retry = {"Retry-After": str(RETRY_SECONDS)}
    return ProblemError(ProblemType.UNAVAILABLE, str(error), headers=retry)


def _of_key(error: Any) -> ProblemError:
    sentence = str(error)
    return ProblemError(ProblemType.CONFLICT, f"{sentence[:1].upper()}{sentence[1:]}.")


def _of_conflict(error: Any) -> ProblemError:
    return ProblemError(ProblemType.PRECONDITION, f"{error}.")


def _of_moved(error: Any) -> ProblemError:
    return ProblemError(ProblemType.PRECONDITION, str(error))


def _of_missing(error: Any) -> ProblemError:
    return not_found()


def _of_access(error: Any) -> ProblemError:
    return ProblemError(ProblemType.FORBIDDEN, _FORBIDDEN)


def _of_running(error: Any) -> ProblemError:
    message = (
        "Wait until the first request with this Idempotency-Key has ended, and repeat it then."
    )
    retry = {"Retry-After": str(RETRY_SECONDS)}
    return ProblemError(ProblemType.STILL_RUNNING, message, headers=retry)


def _of_database(error: Any) -> ProblemError:
    report(error)
    message = "The database cannot be reached. Try again in a moment."
    retry = {"Retry-After": str(RETRY_SECONDS)}
    return ProblemError(ProblemType.UNAVAILABLE, message, headers=retry)


_CONVERSIONS: Final[
    tuple[
        tuple[type[Exception] | tuple[type[Exception], ...], Callable[[Any], ProblemError | None]],
        ...,
    ]
] = (
    (ProblemError, _itself),
    (exceptions.APIException, _of_framework),
    ((InvalidPrimitiveError, InvalidError), _of_fields),
    ((WrongStateError, NotDeletableError, UnchangedError), _of_state),
    (InvalidFileError, _of_file),
    (OpenApiError, _of_document),
    (TrialEndedError, _of_trial),
    (FindingBusyError, _of_busy),
    (KeyRefusalError, _of_key),
    (ConflictError, _of_conflict),
    (MovedError, _of_moved),
    ((UnknownError, UnknownTenantError, Http404), _of_missing),
    (PermissionDenied, _of_access),
    (StillRunningError, _of_running),
    (DATABASE_ERRORS, _of_database),
)
"""The first line that matches an exception converts it."""
