"""Signals about tenants for other packages."""

from django.dispatch import Signal

# Sent after the commit, with `tenant_id: UUID`. A failing receiver is logged and undoes nothing.
tenant_created = Signal()
