from importlib import import_module

from django.apps import AppConfig


class VaultConfig(AppConfig):
    name = "mcphost.vault"

    def ready(self) -> None:
        # By name: the checks read models, which are not there yet when this module is imported.
        import_module("mcphost.vault.checks")
