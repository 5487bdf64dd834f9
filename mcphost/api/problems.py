"""Problems: what the API answers instead of a result (RFC 9457). No Django REST framework here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import orjson

MEDIA_TYPE: Final = "application/problem+json"
MAX_FAULTS: Final = 100
MAX_POINTER: Final = 300
URN: Final = "urn:mcphost:problem:"


class ProblemType(Enum):
    """The types of problems: the end of the type's URN, with its status and title."""

    MALFORMED = ("malformed-request", 400, "The request cannot be read")
    PARAMETERS = ("invalid-parameters", 400, "Some parameters of the address are not valid")
    UNAUTHENTICATED = ("unauthenticated", 401, "Send a token of the administration API")
    SCOPE = ("insufficient-scope", 403, "The token does not hold the scope that this needs")
    FORBIDDEN = ("forbidden", 403, "The role of the caller does not allow this")
    NOT_FOUND = ("not-found", 404, "There is nothing here that the caller may see")
    METHOD = ("method-not-allowed", 405, "This address does not support the method")
    NOT_ACCEPTABLE = ("not-acceptable", 406, "Accept a media type that this address has")
    CONFLICT = ("conflict", 409, "The state of the object does not allow this")
    STILL_RUNNING = ("still-running", 409, "A request with this Idempotency-Key is still running")
    PRECONDITION = ("precondition-failed", 412, "The object has changed")
    TOO_LARGE = ("too-large", 413, "The body is too large")
    MEDIA_TYPE = ("unsupported-media-type", 415, "Send the body as JSON")
    INVALID = ("invalid-fields", 422, "Some fields are not valid")
    KEY_REUSED = ("idempotency-key-reused", 422, "The Idempotency-Key belongs to another request")
    NO_PRECONDITION = ("precondition-required", 428, "Send If-Match with the ETag of the object")
    TOO_MANY = ("too-many-requests", 429, "Too many requests")
    INTERNAL = ("internal-error", 500, "The server failed")
    UNAVAILABLE = ("unavailable", 503, "The server cannot answer now")

    def __init__(self, code: str, status: int, title: str) -> None:
        self.code, self.status, self.title = code, status, title

    @classmethod
    def of_status(cls, status: int) -> "ProblemType":
        """Return the first type with a status; that of the class of the status if there is none."""
        fallback = cls.MALFORMED if status < 500 else cls.INTERNAL
        return next((problem for problem in cls if problem.status == status), fallback)


class FieldFault(NamedTuple):
    """What is wrong with one field, or with one parameter of the address.

    `pointer` is the field's JSON pointer (RFC 6901); of a parameter, its name.
    """

    pointer: str
    code: str
    detail: str

    def shortened(self) -> "FieldFault":
        """Return the fault without the rest of a name that only a wrong client sends."""
        return self._replace(pointer=self.pointer[:MAX_POINTER], code=self.code[:MAX_POINTER])


@dataclass(frozen=True, slots=True)
class ApiProblem:
    """One problem. `instance` is the path that was requested."""

    type: ProblemType
    detail: str
    instance: str = ""
    faults: Sequence[FieldFault] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the members of the response."""
        more = (
            f" The first {MAX_FAULTS} of {len(self.faults)} are listed."
            if len(self.faults) > MAX_FAULTS
            else ""
        )
        members = {
            "type": URN + self.type.code,
            "title": self.type.title,
            "status": self.type.status,
            "detail": self.detail + more,
            "instance": quote(self.instance),
        }
        faults = [fault.shortened()._asdict() for fault in self.faults[:MAX_FAULTS]]
        return {**members, "errors": faults} if faults else members

    def encoded(self) -> bytes:
        return orjson.dumps(self.as_json())


class ProblemError(Exception):
    """A request is refused with a problem. `headers` are added to the response."""

    def __init__(
        self,
        problem_type: ProblemType,
        detail: str,
        faults: Sequence[FieldFault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem_type = problem_type
        self.detail = detail
        self.faults = tuple(faults)
        self.headers = dict(headers or {})

    def problem(self, instance: str) -> ApiProblem:
        return ApiProblem(self.problem_type, self.detail, instance, self.faults)


def not_found() -> ProblemError:
    """Return the refusal of what does not exist, and of what the caller may not see."""
    return ProblemError(ProblemType.NOT_FOUND, "There is no such object, or you may not see it.")


def pointer_of(path: Sequence[str | int]) -> str:
    """Return the JSON pointer of a path (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def faults_of(problems: Mapping[str, Sequence[str]]) -> list[FieldFault]:
    """Return the problems of a service, which are sentences by dotted fields, as faults."""
    return [
        FieldFault(pointer_of(field.split(".")), "invalid", sentence)
        for field, sentences in problems.items()
        for sentence in sentences
    ]
