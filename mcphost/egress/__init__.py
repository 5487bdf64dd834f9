"""Send HTTP requests to addresses that tenants, their users or clients influence.

All outgoing HTTP whose address comes from outside the platform goes through `client.Egress`. The
package decides which addresses may be reached, fills in secrets, and masks them in what comes back.
"""
