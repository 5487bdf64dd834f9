"""Questions that an HTTP service asks: a small JSON document of the media type ASKS.

It is read more strictly than a result: what readers understand differently is refused, such as a
member that is there twice. A document that is refused is the service's error, so the message says where
it is wrong, and quotes no value.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcphost.kinds.config_problems import problem_sentence
from mcphost.kinds.http.replies import ANSWERS, BadReplyError, Response, has_more_values
from mcphost.protocol.json_values import repaired_json

MAX_BYTES: Final = 512 * 1024
MAX_VALUES: Final = 20_000
MAX_STATE: Final = 16 * 1024
MAX_REQUESTS: Final = 16
MAX_DEPTH: Final = 32
_FORM: Final = "elicitation/create"
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SHOWN_NAME: Final = re.compile(r"[A-Za-z0-9_.$/-]{1,64}")
_REFUSED: Final = "The service asked for input in a form that cannot be read"
_FORMS_ONLY: Final = "a service may ask with forms only"


class AskedForm(BaseModel):
    """A question of a service: a form."""

    model_config = ConfigDict(extra="forbid", strict=True)

    message: Annotated[str, Field(min_length=1, max_length=4_000)]
    requestedSchema: dict[str, Any]  # noqa: N815 - as MCP names it


Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,48}$")]


class AskingReply(BaseModel):
    """What a service that wants input replies with. It gets `state` back with the answers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    requests: Annotated[dict[Key, AskedForm], Field(min_length=1, max_length=MAX_REQUESTS)]
    state: Annotated[str, Field(max_length=MAX_STATE)] = ""


class _Members(dict[str, Any]):
    """An object, and the first name that it has twice."""

    twice: str | None = None


def read_asking(response: Response) -> AskingReply:
    """Read a response of the media type ASKS. Raises BadReplyError."""
    document = _parsed(response)
    _check(_problems(document, ()))
    _check(_other_requests(document))
    try:
        return AskingReply.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _refused(first["loc"], problem_sentence(first)) from None


def refuse_answers(response: Response) -> None:
    """Raise BadReplyError for a response of the media type of answers, which only requests have."""
    if response.media_type == ANSWERS:
        raise _refused((), f"its media type is {ANSWERS}, which is that of answers")


def _parsed(response: Response) -> Any:
    if len(response.body) > MAX_BYTES:
        raise _refused((), f"it has more than {MAX_BYTES} bytes")
    if has_more_values(response.body, MAX_VALUES):
        raise _refused((), f"it has more than {MAX_VALUES} values")
    try:
        text = repaired_json(response.body).decode("utf-8")
    except UnicodeDecodeError:
        raise _refused((), "it is not UTF-8") from None
    try:
        return json.loads(text, object_pairs_hook=_members)
    except RecursionError:
        raise _refused((), "it is nested too deep") from None
    except ValueError:  # also for an integer of thousands of digits
        raise _refused((), "it is not JSON") from None


def _members(pairs: list[tuple[str, Any]]) -> _Members:
    members = _Members()
    for name, value in pairs:
        if name in members and members.twice is None:
            members.twice = name
        members[name] = value
    return members


Problem = tuple[Sequence[int | str], str]


def _problems(node: Any, path: tuple[int | str, ...]) -> Iterator[Problem]:
    """Yield what no reader of JSON has to understand, with its place."""
    if len(path) > MAX_DEPTH:
        yield path, "it is nested too deep"
        return
    match node:
        case _Members():
            if node.twice is not None:
                yield (*path, node.twice), "it is there twice"
            for name, value in node.items():
                yield from _text_problems(name, path)
                yield from _problems(value, (*path, name))
        case list():
            for number, value in enumerate(node):
                yield from _problems(value, (*path, number))
        case _:
            yield from _value_problems(node, path)


def _value_problems(value: Any, path: Sequence[int | str]) -> Iterator[Problem]:
    if isinstance(value, str):
        yield from _text_problems(value, path)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield path, "it is a number of more than 64 bits"
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, "it is NaN or an infinite number"


def _text_problems(text: str, path: Sequence[int | str]) -> Iterator[Problem]:
    if _CONTROL.search(text):
        yield path, "it has control characters"


def _other_requests(document: Any) -> Iterator[Problem]:
    """Yield requests that MCP has, and services may not send: all but forms."""
    requests = document.get("requests") if isinstance(document, Mapping) else None
    for key, request in requests.items() if isinstance(requests, Mapping) else ():
        if not isinstance(request, Mapping):
            continue
        if "method" in request or "params" in request:
            is_form = request.get("method") == _FORM
            reason = "give message and requestedSchema themselves" if is_form else _FORMS_ONLY
            yield ("requests", key, "method" if "method" in request else "params"), reason
        for name in ("mode", "url", "elicitationId"):
            if name in request:
                yield ("requests", key, name), _FORMS_ONLY


def _check(problems: Iterator[Problem]) -> None:
    first = next(problems, None)
    if first is not None:
        raise _refused(*first)


def _refused(path: Sequence[int | str], reason: str) -> BadReplyError:
    shown = [
        step if _SHOWN_NAME.fullmatch(step) else "…" for step in map(str, path) if step != "[key]"
    ]
    where = ".".join(shown)[:200] or "the document"
    return BadReplyError(f"{_REFUSED}: {where}: {reason}")
