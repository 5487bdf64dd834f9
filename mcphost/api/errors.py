"""Convert exceptions to problem responses.

The views raise `ProblemError` themselves; this is the only place where exceptions of other packages get
a status.
"""

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
    InvalidPrimitiveError,
    NotDeletableError,
    NotInspectedError,
    StaleError,
    UnchangedError,
    UnknownError,
    WrongStateError,
)
from mcphost.identity.idempotency import StillRunningError
from mcphost.kinds.http.openapi_documents import OpenApiError
from mcphost.kinds.http.openapi_finding import FindingBusyError
from mcphost.serving.database import DATABASE_ERRORS, report
from mcphost.serving.execution.trials import TrialEndedError
from mcphost.tenant_file.errors import FileNotInspectedError, InvalidFileError, MovedError
from mcphost.tenants.errors import InvalidError, UnknownTenantError
from mcphost.vault.errors import KeyRefusalError

RETRY_SECONDS: Final = 2
_INVALID: Final = "What was sent cannot be stored as it is."
_FORBIDDEN: Final = "Your role does not allow this."


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


def _own_problem(error: Any) -> ProblemError:
    problem: ProblemError = error
    return problem


def _framework_problem(error: Any) -> ProblemError:
    problem_type = ProblemType.of_status(error.status_code)
    headers = {}
    if challenge := getattr(error, "auth_header", ""):
        headers["WWW-Authenticate"] = challenge
    if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        problem_type = ProblemType.UNAUTHENTICATED
    return ProblemError(problem_type, str(error.detail), headers=headers)


def _field_problem(error: Any) -> ProblemError:
    faults = faults_of(error.problems)
    return ProblemError(ProblemType.INVALID, _INVALID, faults)


def _state_problem(error: Any) -> ProblemError:
    code = "unchanged" if isinstance(error, UnchangedError) else "state"
    fault = FieldFault("/state", code, f"{error}.".replace("..", "."))
    return ProblemError(ProblemType.CONFLICT, fault.detail, [fault])


def _file_problem(error: Any) -> ProblemError:
    faults = [
        FieldFault("/content", problem.path or "file", f"Line {problem.line}: {problem.message}")
        for problem in error.problems
    ]
    return ProblemError(ProblemType.INVALID, "The file cannot be applied.", faults)


def _document_problem(error: Any) -> ProblemError:
    fault = FieldFault("/content", "document", str(error))
    return ProblemError(ProblemType.INVALID, "The document cannot be imported.", [fault])


def _trial_problem(error: Any) -> ProblemError:
    return ProblemError(ProblemType.CONFLICT, f"{error} The trial has ended, and nothing was run.")


def _busy_problem(error: Any) -> ProblemError:
    retry = {"Retry-After": str(RETRY_SECONDS)}
    return ProblemError(ProblemType.UNAVAILABLE, str(error), headers=retry)


def _uninspected_problem(error: Any) -> ProblemError:
    sentences = dict.fromkeys(text for texts in error.problems.values() for text in texts)
    return _busy_problem(" ".join(sentences))


def _uninspected_file_problem(error: Any) -> ProblemError:
    return _busy_problem(" ".join(dict.fromkeys(problem.message for problem in error.problems)))


def _key_problem(error: Any) -> ProblemError:
    sentence = str(error)
    return ProblemError(ProblemType.CONFLICT, f"{sentence[:1].upper()}{sentence[1:]}.")


def _stale_problem(error: Any) -> ProblemError:
    return ProblemError(ProblemType.PRECONDITION, f"{error}.")


def _moved_problem(error: Any) -> ProblemError:
    return ProblemError(ProblemType.PRECONDITION, str(error))


def _missing_problem(error: Any) -> ProblemError:
    return not_found()


def _access_problem(error: Any) -> ProblemError:
    return ProblemError(ProblemType.FORBIDDEN, _FORBIDDEN)


def _running_problem(error: Any) -> ProblemError:
    message = (
        "Wait until the first request with this Idempotency-Key has ended, and repeat it then."
    )
    retry = {"Retry-After": str(RETRY_SECONDS)}
    return ProblemError(ProblemType.STILL_RUNNING, message, headers=retry)


def _database_problem(error: Any) -> ProblemError:
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
    (ProblemError, _own_problem),
    (exceptions.APIException, _framework_problem),
    (NotInspectedError, _uninspected_problem),
    ((InvalidPrimitiveError, InvalidError), _field_problem),
    ((WrongStateError, NotDeletableError, UnchangedError), _state_problem),
    (FileNotInspectedError, _uninspected_file_problem),
    (InvalidFileError, _file_problem),
    (OpenApiError, _document_problem),
    (TrialEndedError, _trial_problem),
    (FindingBusyError, _busy_problem),
    (KeyRefusalError, _key_problem),
    (StaleError, _stale_problem),
    (MovedError, _moved_problem),
    ((UnknownError, UnknownTenantError, Http404), _missing_problem),
    (PermissionDenied, _access_problem),
    (StillRunningError, _running_problem),
    (DATABASE_ERRORS, _database_problem),
)
"""The first line that matches an exception converts it."""
