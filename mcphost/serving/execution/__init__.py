"""The execution of calls, from request to reply: rounds, claims, audit records, ports."""
