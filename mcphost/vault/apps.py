from django.apps import AppConfig


class VaultConfig(AppConfig):
    name = "mcphost.vault"
