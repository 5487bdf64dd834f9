"""What other rooms may want to hear of tenants."""

from django.dispatch import Signal

# Sent after the commit, with `tenant_id: UUID`. A receiver that fails is logged and undoes nothing.
tenant_created = Signal()
