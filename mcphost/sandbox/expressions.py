"""JMESPath in a worker. An expression of a few characters can make millions of values."""

from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError


def search(expression: str, data: Any) -> dict[str, Any]:
    """Evaluate an expression. Returns the message with its value, or why there is none."""
    try:
        return {"is": "done", "value": jmespath.search(expression, data)}
    except (JMESPathError, ValueError, TypeError, ArithmeticError, AttributeError) as error:
        return {"is": "failed", "why": "error", "message": str(error)[:1000]}
    except RecursionError:
        return {"is": "failed", "why": "recursion", "message": "the expression is nested too deep"}
