"""What the database holds, to be searched for secrets."""

from pathlib import Path

from django.db import connection


def stored_bytes() -> bytes:
    """Everything in the database: its file and its log, or every row of every table."""
    if connection.vendor == "sqlite":
        main = Path(connection.settings_dict["NAME"])
        return b"".join(path.read_bytes() for path in main.parent.glob(f"{main.name}*"))
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            for row in cursor.fetchall():
                found += [
                    bytes(value) if isinstance(value, memoryview) else str(value).encode()
                    for value in row
                ]
    return b"\n".join(found)
