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


CLASSES: Final = (
    _class(
        "pattern: Python's `re` cannot read it, or the tool leaves it out because it needs more than linear time",
        r"^error: bad|^error: |PatternError|\[pattern\]",
    ),
    _class("style: the library reads deepObject of objects only", r"ValueError: not available"),
    _class("empty: the library takes no empty text in a query", r"EmptyQueryParameterValue"),
    _class(
        "null: `nullable` beside an `enum` without null, or without a `type`: the service decides",
        r"None is not one of|None for not nullable",
    ),
    _class("library: it crashes at a name or a type", r"^(IndexError|KeyError|UnknownType)"),
    _class(
        "library: it has no such style, security scheme, or text of a parameter",
        r"Unsupported (cookie style|scheme type)|no attribute 'decode'",
    ),
    _class("media type: compared with the case, or `*/*` of bytes read as JSON", r"mimetype"),
    _class("anyOf: the library takes the first type of a text", r"\[anyOf\]"),
    _class(
        "style: the library misses an exploded object, and a style of a path",
        r"MissingRequired(Query)?Parameter|Missing required (query|path) parameter",
    ),
    _class("readOnly: the library refuses it in a parameter and in a list", r"\[readOnly\]"),
    _class(
        "required: the document requires what only responses have, or what it does not describe",
        r"\[required\]",
    ),
    _class("format: the document contradicts it, or the library knows another one", r"\[format\]"),
    _class(
        "oneOf: more than one branch holds; the tool has `anyOf`, and the service decides",
        r"\[oneOf\]",
    ),
    _class("enum: the document has no texts for a text (`true` of YAML)", r"\[enum\]"),
    _class(
        "type: the library reads no list of types, or validates a wrong default",
        r"\[type\]|TypeError",
    ),
    _class(
        "form: the library casts the texts of a form by one branch of its schema",
        r"CastError|Failed to cast",
    ),
    _class(
        "server: the library joins two slashes at the beginning of a path",
        r"ServerNotFound",
    ),
    _class(
        "path: the library does not find a path with characters that are encoded", r"PathNotFound"
    ),
    _class(
        "reference: the library does not follow it",
        r"PointerToNowhere|ReferencingError|RecursionError|could not be resolved|Unresolvable",
    ),
)

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
    ("security that is not supported", r"^Security|^Its security cannot|no security scheme"),
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
    ("security that needs two values of one header", r"two values of"),
    ("a name that is empty, or that no header has", r"length must be at least|A header's name"),
    ("a media type that no request can have", r"^The body: It must match"),
)


def refusal_class(problem: str) -> str:
    """Return the class of a reason of refusal."""
    return next((name for name, text in REFUSALS if re.search(text, problem)), problem[:120])


def disagreement_class(errors: str) -> str:
    """Return the class of the errors of a request."""
    return next((each.name for each in CLASSES if each.expression.search(errors)), NEW)
