"""What tenants offer: primitives, their versions, and the kinds that run them."""
