#!/usr/bin/env python
"""Django's command line. `init`, which `up` runs first, is the only command that writes secrets."""

import gc
import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError

from mcphost import home

PREPARING = frozenset({"init", "up"})


def main() -> None:
    # What is loaded at the start is never freed: looking for garbage in it, again and again, takes
    # an eighth of the start of a command. `serve` keeps this threshold.
    gc.set_threshold(50_000, 20, 50)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mcphost.settings")
    try:
        # Before the settings are loaded: they refuse to without secrets.
        if PREPARING.intersection(sys.argv[1:2]):
            home.prepare()
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, home.HomeError) as error:
        sys.exit(f"mcphost: {error}")
    except OperationalError as error:
        reason = str(error).partition("\n")[0]
        sys.exit(f"mcphost: the database cannot be used: {reason}")


if __name__ == "__main__":
    main()
