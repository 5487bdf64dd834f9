"""Conditions on rows of this package, in the SQL of both databases (`audit.writer.conditions`)."""

from collections.abc import Mapping

from mcphost.audit.writer.conditions import POSTGRESQL, SQLITE, RowChange


def change(columns: Mapping[str, str], make: str, made: str) -> RowChange:
    """Make a change from two SQL templates. `columns` are its values, with their PostgreSQL types.

    Placeholders stand for what differs between the databases: `{r}` are the rows of the parameter,
    as `r`; `{now}` is the time, `{later}` is `r.seconds` after it; `{hex}` begins and `{end}` ends
    an expression for an id of 32 hexadecimal digits.
    """
    return RowChange(
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
