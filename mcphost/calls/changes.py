"""Conditions on rows of this room, in the SQL of both databases (see `audit.conditions`)."""

from collections.abc import Mapping

from mcphost.audit.conditions import POSTGRESQL, SQLITE, Change


def change(columns: Mapping[str, str], make: str, made: str) -> Change:
    """A change of rows whose values are these columns, each with PostgreSQL's name of its type.

    What the databases say differently has a name in both texts: `{r}` are the rows of the parameter,
    as `r`; `{now}` is the time, `{later}` what `r.seconds` are from then; `{hex}` begins and `{end}`
    ends an expression for an id of 32 hexadecimal digits.
    """
    return Change(
        {vendor: make.format_map(words) for vendor, words in _words(columns).items()},
        {vendor: made.format_map(words) for vendor, words in _words(columns).items()},
    )


def _words(columns: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    extracted = ", ".join(f"json_extract(value, '$.{name}') AS {name}" for name in columns)
    typed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return {
        SQLITE: {
            "r": f"(SELECT {extracted} FROM json_each(?)) AS r",  # noqa: S608 - constants
            "now": "strftime('%Y-%m-%d %H:%M:%f', 'now')",
            "later": "strftime('%Y-%m-%d %H:%M:%f', 'now', r.seconds || ' seconds')",
            "hex": "(",
            "end": ")",
        },
        POSTGRESQL: {
            "r": f"json_to_recordset(%s::json) AS r({typed})",
            "now": "statement_timestamp()",
            "later": "statement_timestamp() + r.seconds * interval '1 second'",
            "hex": "replace(",
            "end": "::text, '-', '')",
        },
    }
