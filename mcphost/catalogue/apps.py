from importlib import import_module

from django.apps import AppConfig


class CatalogueConfig(AppConfig):
    name = "mcphost.catalogue"

    def ready(self) -> None:
        # By name: the checks import models, which are not loaded yet when this module is imported.
        import_module("mcphost.catalogue.checks")
