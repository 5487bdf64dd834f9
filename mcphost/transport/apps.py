from importlib import import_module

from django.apps import AppConfig


class TransportConfig(AppConfig):
    name = "mcphost.transport"

    def ready(self) -> None:
        import_module("mcphost.transport.checks")
