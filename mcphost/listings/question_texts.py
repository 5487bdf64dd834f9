"""Questions and answers in words, on one line each, for auditors: in lists, in exports, and for the search."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from mcphost.audit import selectors
from mcphost.audit.entries import PayloadView
from mcphost.audit.question_list import RecordedQuestion
from mcphost.listings.form_values import fields_of, list_of, mapping_of, value_in_words

NOT_KEPT = "not recorded"
ERASED = "erased"
UNREADABLE = "cannot be read"
TOO_LARGE = "too large to be shown here"


_INSTEAD = frozenset({NOT_KEPT, ERASED, UNREADABLE, TOO_LARGE})
"""What stands for a text that cannot be shown."""


class QuestionTexts(NamedTuple):
    """The texts of one question. Empty ones: nothing was said, as when a person declines."""

    question: str
    answer: str

    def contains(self, words: Iterable[str]) -> bool:
        """Whether each word is in the question or in the answer, in any case."""
        texts = [text for text in self if text not in _INSTEAD]
        whole = "\n".join(texts).casefold()
        return all(term.casefold() in whole for term in words)


def texts_of(questions: Iterable[RecordedQuestion], tenant: UUID) -> Mapping[UUID, QuestionTexts]:
    """Read the payloads of questions of one tenant and of their answers; return the texts by question.

    The caller checks whether the reader may see them, and records it.
    """
    read = tuple(questions)
    entries = [id for question in read for id in (question.id, question.answer) if id is not None]
    payloads = selectors.payloads(entries, tenant)
    return {
        question.id: QuestionTexts(
            _question_text(payloads.get(question.id)),
            ""
            if question.answer is None
            else _answer_text(payloads.get(question.answer), payloads.get(question.id)),
        )
        for question in read
    }


def whole_texts_of(
    questions: Sequence[RecordedQuestion], tenant: UUID
) -> Mapping[UUID, QuestionTexts]:
    """The same, also of those that are too large to be read together."""
    texts = dict(texts_of(questions, tenant))
    for question in questions:
        if TOO_LARGE in texts[question.id]:
            texts.update(texts_of([question], tenant))
    return texts


def _question_text(payload: PayloadView | None) -> str:
    if payload is None or not isinstance(payload.content, Mapping):
        return _missing(payload)
    params = mapping_of(payload.content.get("question"))
    texts = [params.get("message"), params.get("url")]
    texts += [_content_text(message) for message in list_of(params.get("messages"))]
    return _line(text for text in texts if isinstance(text, str))


def _answer_text(payload: PayloadView | None, question: PayloadView | None) -> str:
    if payload is None or not isinstance(payload.content, Mapping):
        return _missing(payload)
    result = mapping_of(payload.content.get("answer"))
    if "role" in result:
        return _line([_content_text(result)])
    if "roots" in result:
        return _line(str(mapping_of(root).get("uri", "")) for root in list_of(result["roots"]))
    params = {} if question is None else mapping_of(mapping_of(question.content).get("question"))
    schema = mapping_of(params.get("requestedSchema"))
    names = fields_of(schema)
    return _line(
        f"{names.get(name, name)}: {value_in_words(value, schema, name)}"
        for name, value in mapping_of(result.get("content")).items()
    )


def _content_text(message: Any) -> str:
    """The text of a message of a model or to one, of all its blocks."""
    content = mapping_of(message).get("content")
    blocks = content if isinstance(content, list) else [content]
    return " ".join(str(mapping_of(block).get("text", "")) for block in blocks)


def _missing(payload: PayloadView | None) -> str:
    if payload is None:
        return NOT_KEPT
    if payload.left_out:
        return TOO_LARGE
    return ERASED if payload.erased_at is not None else UNREADABLE


def _line(texts: Iterable[str]) -> str:
    return "; ".join(" ".join(text.split()) for text in texts if text.strip())
