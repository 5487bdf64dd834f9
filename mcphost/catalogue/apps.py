from django.apps import AppConfig


class CatalogueConfig(AppConfig):
    name = "mcphost.catalogue"
