"""What is wrong with a field of a configuration, in words for the people who wrote it."""

from collections.abc import Mapping
from typing import Any, Final

_SENTENCES: Final = {
    "bool_parsing": "It must be true or false.",
    "bool_type": "It must be true or false.",
    "dict_type": "It must be an object.",
    "extra_forbidden": "There is no such field.",
    "finite_number": "It must be a finite number.",
    "float_parsing": "It must be a number.",
    "float_type": "It must be a number.",
    "greater_than": "It must be greater than {gt}.",
    "greater_than_equal": "It must be at least {ge}.",
    "int_from_float": "It must be an integer.",
    "int_parsing": "It must be an integer.",
    "int_type": "It must be an integer.",
    "less_than": "It must be less than {lt}.",
    "less_than_equal": "It must be at most {le}.",
    "list_type": "It must be a list.",
    "literal_error": "It must be one of {expected}.",
    "enum": "It must be one of {expected}.",
    "missing": "It is required.",
    "model_attributes_type": "It must be an object.",
    "model_type": "It must be an object.",
    "string_pattern_mismatch": "It must match the pattern {pattern}.",
    "string_too_long": "It must have at most {max_length} characters.",
    "string_too_short": "Its length must be at least {min_length}.",
    "string_type": "It must be a string.",
    "too_long": "It must have at most {max_length} elements, and has {actual_length}.",
    "too_short": "It must have at least {min_length} elements.",
    "union_tag_invalid": "Its type must be one of {expected_tags}.",
    "union_tag_not_found": "It must have a type.",
}
"""By pydantic's type of an error, with the values of its context."""


def problem_sentence(error: Mapping[str, Any]) -> str:
    """Return the sentence for an error of pydantic (`ErrorDetails`, with its context)."""
    sentence = _SENTENCES.get(error["type"])
    if sentence is not None:
        # Pydantic has the limits of a float as floats: 120 as 120.0.
        return sentence.format_map(error.get("ctx", {})).replace(".0.", ".")
    return str(error["msg"]).removeprefix("Value error, ")
