from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "mcphost.tenants"
