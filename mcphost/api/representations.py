"""How objects look in the API: pydantic models, which validate what is written and describe it.

`Fields` are what a client may write; a `Representation` has them and what only the server writes.
Both have the same names, so what was read can be written back. Unknown members are refused.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, Generic, TypeVar

import orjson
from django.http import QueryDict
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mcphost.api.etags import etag_of
from mcphost.api.problems import FieldFault, ProblemError, ProblemType, pointer_of
from mcphost.kinds.config_problems import problem_sentence

DEFAULT_LIMIT = 50
MAX_LIMIT = 100
YEARS: Final = range(1970, 9999)
_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_DIGITS: Final = re.compile(r"[0-9]{1,18}")
_HOW: Final = "Write a time with its zone, such as 2026-11-28T18:30:00Z"

F = TypeVar("F", bound="Fields")
Q = TypeVar("Q", bound="ListQuery")
R = TypeVar("R", bound="Representation")


def _as_text(value: Any) -> Any:
    """Refuse numbers and dates, which pydantic would convert."""
    if isinstance(value, str) and _TIME.fullmatch(value) is None:
        raise ValueError(_HOW)
    if isinstance(value, int | float):
        raise ValueError(_HOW)
    return value


def _in_utc(value: datetime) -> datetime:
    # Lists look a little before and after a time, which must be a time, too.
    if value.year not in YEARS:
        raise ValueError(f"The year is not between {YEARS.start} and {YEARS.stop - 1}")
    return value.astimezone(UTC)


Time = Annotated[datetime, BeforeValidator(_as_text), AfterValidator(_in_utc), Field(strict=False)]
"""A time that a client sends (RFC 3339), in UTC."""


def _as_digits(value: Any) -> Any:
    """Refuse what pydantic would convert: 1.0, +1, 1_0."""
    if isinstance(value, str) and _DIGITS.fullmatch(value) is None:
        raise ValueError("Write a whole number in digits")
    return value


WholeNumber = Annotated[int, BeforeValidator(_as_digits)]
"""A number in a parameter of an address, in digits."""


class Fields(BaseModel):
    """What a client may write. Values are not converted: "5" is no number."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False
    )


class NoFields(Fields):
    """A body without members, which may be left out."""


class Representation(BaseModel):
    """An object, or a page of a list, as the API shows it. Times are UTC."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    def dump(self) -> dict[str, Any]:
        """Return the members as JSON has them."""
        return self.model_dump(mode="json", by_alias=True)

    def has(self, name: str, value: Any) -> bool:
        """Whether a member has a value, which may be written in another way: 18:30Z is 18:30+00:00."""
        members = self.dump()
        if members[name] == value:
            return True
        try:
            return type(self).model_validate({**members, name: value}) == self
        except ValidationError:
            return False

    def encoded(self) -> bytes:
        return orjson.dumps(self.dump())

    def etag(self) -> str:
        """Return the ETag of the object, which it also has when it is read."""
        return etag_of(self.encoded())


class ListPage(Representation, Generic[R]):
    """A page of a list. `next` is the cursor of the page that follows; null on the last one."""

    items: list[R]
    next: str | None


class ListQuery(BaseModel):
    """The parameters of an address. Each may be given once; all others are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PagedQuery(ListQuery):
    """The parameters of a list: its pages, and, in subclasses, its filters."""

    POSITION: ClassVar = frozenset({"limit", "cursor"})

    limit: WholeNumber = Field(
        DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="Maximum number of items per page."
    )
    cursor: str = Field("", max_length=2000, description="The `next` value of the previous page.")

    def filters(self) -> dict[str, Any]:
        """Return the parameters that narrow the list, by name."""
        return self.model_dump(mode="json", exclude=set(self.POSITION), exclude_defaults=True)


def read_fields(fields: type[F], body: Any) -> F:
    """Validate the body of a request. Raises ProblemError with a fault for each wrong field."""
    if not isinstance(body, dict):
        raise ProblemError(ProblemType.INVALID, "The body must be an object.")
    try:
        return fields.model_validate(body)
    except ValidationError as error:
        faults = [
            FieldFault(pointer_of(fault["loc"]), fault["type"], problem_sentence(fault))
            for fault in error.errors()
        ]
        raise ProblemError(
            ProblemType.INVALID, "The body has fields that are not valid.", faults
        ) from None


def read_query(query: type[Q], parameters: QueryDict) -> Q:
    """Validate the parameters of an address. Raises ProblemError with a fault for each wrong one."""
    repeated = [name for name, values in parameters.lists() if len(values) > 1]
    faults = [FieldFault(name, "repeated", "Give it once.") for name in repeated]
    faults += [
        FieldFault(name, "character", "It has a character that is not allowed here.")
        for name, value in parameters.items()
        if "\0" in str(value)
    ]
    try:
        read = query.model_validate(parameters.dict())
    except ValidationError as error:
        faults += [
            FieldFault(str(fault["loc"][0]), fault["type"], _parameter_sentence(fault))
            for fault in error.errors()
        ]
        read = None
    if faults or read is None:
        message = "The address has parameters that are not valid."
        raise ProblemError(ProblemType.PARAMETERS, message, faults)
    return read


def _parameter_sentence(fault: Mapping[str, Any]) -> str:
    if fault["type"] == "extra_forbidden":
        return "There is no such parameter."
    return problem_sentence(fault)


def writable(fields: type[Fields], members: Mapping[str, Any]) -> dict[str, Any]:
    """Return those members of a representation that a client may write."""
    return {name: members[name] for name in wire_names(fields) if name in members}


def wire_names(model: type[BaseModel]) -> Sequence[str]:
    """Return the names of a model's fields in JSON."""
    return [field.alias or name for name, field in model.model_fields.items()]
