"""Indexes on tables with many rows, made while other processes write to them."""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import AddIndex
from django.db.migrations.state import ProjectState
from django.db.models import Model

_VALID = (
    "SELECT indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
    "WHERE relname = %s AND pg_table_is_visible(indexrelid)"
)


class AddIndexWhileWriting(AddIndex):
    """Add an index without a lock that writers wait for, where the database can (PostgreSQL).

    The migration must not be atomic, so it may end between two indexes, or leave one that is invalid.
    When it runs again, an index that is there is kept, and an invalid one is made again.
    """

    atomic = False

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        valid = None if schema_editor.collect_sql else self._is_valid(schema_editor, model)
        if valid is False:
            schema_editor.remove_index(model, self.index, **_manner(schema_editor))
        if not valid:
            schema_editor.add_index(model, self.index, **_manner(schema_editor))

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        model = from_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        if schema_editor.collect_sql or self._is_valid(schema_editor, model) is not None:
            schema_editor.remove_index(model, self.index, **_manner(schema_editor))

    def _is_valid(self, schema_editor: BaseDatabaseSchemaEditor, model: type[Model]) -> bool | None:
        """Return whether the index can be used; None if there is none of its name."""
        connection = schema_editor.connection
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute(_VALID, [self.index.name])
                found = cursor.fetchone()
                return None if found is None else bool(found[0])
            names = connection.introspection.get_constraints(cursor, model._meta.db_table)
            return True if self.index.name in names else None


def _manner(schema_editor: BaseDatabaseSchemaEditor) -> dict[str, Any]:
    return {"concurrently": True} if schema_editor.connection.vendor == "postgresql" else {}
