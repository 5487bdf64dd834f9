"""What a tenant offers: tools, their versions, and the kinds that run them."""
