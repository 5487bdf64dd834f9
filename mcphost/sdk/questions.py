"""The questions that a client can be asked: forms, pages, sampling, roots.

These functions only build a question; `Context` asks it. Each raises QuestionRefusedError, with a text
for the author, if it must not be asked in this form. The `read` of a question converts the client's
result, or raises InvalidAnswerError.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Literal, TypeVar, get_args, overload

from mcp_types import Root
from pydantic import BaseModel

from mcphost.protocol.forms import form_message_problem, message_problem
from mcphost.protocol.secret_names import looks_secret
from mcphost.protocol.web_addresses import url_problem
from mcphost.runtime.questions import InvalidAnswerError, Question, QuestionRefusedError
from mcphost.sdk.forms import form_of
from mcphost.sdk.sampling import SamplingOptions, sampling
from mcphost.sdk.wire import read_roots

__all__ = ["FormAnswer", "SamplingOptions", "UrlAnswer", "form", "roots", "sampling", "url"]

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

Action = Literal["accept", "decline", "cancel"]

_ELICIT: Final = "elicitation/create"


@dataclass(frozen=True, slots=True)
class FormAnswer(Generic[T]):
    """The user's response to a form. `content` has the values, None unless it was accepted."""

    action: Action
    content: T | None = None

    @property
    def accepted(self) -> bool:
        return self.action == "accept"


@dataclass(frozen=True, slots=True)
class UrlAnswer:
    """Whether the user agreed to open a page: consent only, not that anything was done there."""

    action: Action

    @property
    def accepted(self) -> bool:
        return self.action == "accept"


@overload
def form(key: str, message: str, model: type[M]) -> Question[FormAnswer[M]]: ...
@overload
def form(
    key: str, message: str, model: Mapping[str, Any]
) -> Question[FormAnswer[dict[str, Any]]]: ...
def form(key: str, message: str, model: Any) -> Question[FormAnswer[Any]]:
    """Build a form, from a pydantic model or a JSON Schema (spec: client/elicitation, "Form Mode")."""
    requested_form = form_of(model)
    if requested_form.typed and looks_secret(key):
        raise QuestionRefusedError(
            f"the key {key!r} asks for a secret, which no form may: use ask_url"
        )
    problem = form_message_problem(message, typed=requested_form.typed)
    if problem is not None:
        raise QuestionRefusedError(f"the question {key!r} cannot be asked: {problem}")
    params = {"mode": "form", "message": message, "requestedSchema": requested_form.schema}
    return Question(
        key, _ELICIT, params, "elicitation.form", partial(_read_form, requested_form.read)
    )


def url(key: str, message: str, url: str) -> Question[UrlAnswer]:
    """Build a question to open a page (spec: client/elicitation, "URL Mode")."""
    problem = url_problem(url) or message_problem(message)
    if problem is not None:
        raise QuestionRefusedError(f"the question {key!r} cannot be asked: {problem}")
    params = {"mode": "url", "message": message, "url": url}
    return Question(key, _ELICIT, params, "elicitation.url", _read_url)


def roots(key: str = "roots") -> Question[list[Root]]:
    """Build a question for the folders that the client works in (spec: client/roots; deprecated
    there)."""
    return Question(key, "roots/list", {}, "roots", read_roots)


def _read_form(read: Callable[[Mapping[str, Any]], T], result: Mapping[str, Any]) -> FormAnswer[T]:
    action = _action(result)
    if action != "accept":
        return FormAnswer(action)
    content = result.get("content")
    if content is not None and not isinstance(content, dict):
        raise InvalidAnswerError("its content must be an object")
    return FormAnswer(action, read(content or {}))


def _read_url(result: Mapping[str, Any]) -> UrlAnswer:
    return UrlAnswer(_action(result))


def _action(result: Mapping[str, Any]) -> Action:
    submitted = result.get("action")
    for action in get_args(Action):
        if submitted == action:
            return action  # type: ignore[no-any-return]
    raise InvalidAnswerError("its action must be accept, decline or cancel")
