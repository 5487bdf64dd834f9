from django.apps import AppConfig


class TransportConfig(AppConfig):
    name = "mcphost.transport"
