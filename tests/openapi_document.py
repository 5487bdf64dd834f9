"""The committed OpenAPI document of the API: `python -m tests.openapi_document` writes it again."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from mcphost.api.document import document  # noqa: E402 - Django is set up first
from mcphost.api.urls import V1  # noqa: E402
from tests.source_files import ROOT  # noqa: E402

FILE = ROOT / "docs" / "api" / "openapi.json"


def made() -> bytes:
    """Return the document of the routes as they are now."""
    return document(V1) + b"\n"


if __name__ == "__main__":
    FILE.write_bytes(made())
