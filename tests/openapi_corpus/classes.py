"""What the disagreements with `openapi-core`, and the reasons of refusal, are about.

A disagreement is never worked around in the product. Each class has the reason why the library or the
document is wrong, or why the comparison cannot say; what has none is `NEW` and must be read.
"""

import re
from typing import Final, NamedTuple

NEW: Final = "not classified: read it"


class DisagreementClass(NamedTuple):
    """A class of disagreements: its name, and the expression that the text of the errors matches."""

    name: str
    expression: re.Pattern[str]


def _class(name: str, expression: str) -> DisagreementClass:
    return DisagreementClass(name, re.compile(expression, re.DOTALL))


CLASSES: Final = ()

REFUSALS: Final = (
    ("a reference to another document", r"refers to something outside"),
    ("a reference to nothing", r"refers to nothing|refers to itself|too many references"),
    ("a body of XML or another type that nothing says how to write", r"is no text: nothing says"),
    ("a body of a type that is not supported", r"^A body of .* is not supported"),
    ("a GET or HEAD with a required body", r"^A body is not possible"),
    ("a value that its style does not define", r"does not define"),
    (
        "a list or an object in a cookie or as a text",
        r"is a list or an object|^The parameter .* is ",
    ),
    ("a parameter without a name", r"has no name|no name of a header"),
    ("a path whose parameter is not described", r"^The path has no parameter"),
    (
        "no address of the API",
        r"does not say where|neither a whole address|address of its server|ends the host",
    ),
    ("security that is not supported", r"^Security|its security|no security scheme"),
    (
        "a form without fields",
        r"does not say which fields|none of the fields|form is not an object",
    ),
    (
        "an input schema that cannot be used",
        r"input schema cannot be used|more than .* schemas|nested too deep",
    ),
    ("a schema that is none", r"schema is not an object|has not the shape|^It is not an object"),
    ("something twice", r"^It has .* twice"),
    ("too many parameters", r"more than .* parameters"),
)


def refusal_class(problem: str) -> str:
    """Return the class of a reason of refusal."""
    return next((name for name, text in REFUSALS if re.search(text, problem)), problem[:120])


def disagreement_class(errors: str) -> str:
    """Return the class of the errors of a request."""
    return next((each.name for each in CLASSES if each.expression.search(errors)), NEW)
