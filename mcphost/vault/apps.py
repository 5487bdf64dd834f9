from importlib import import_module

from django.apps import AppConfig


class VaultConfig(AppConfig):
    name = "mcphost.vault"

    def ready(self) -> None:
        # Imported late: the checks import models, which are not ready when this module is imported.
        import_module("mcphost.vault.checks")
