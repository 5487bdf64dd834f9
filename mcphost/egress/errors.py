"""Why an outgoing request has no response.

EgressError
├── EgressRequestError     the request itself is invalid: URL, method, header, size
├── EgressAddressError     its host is not allowed, or has no public address
├── EgressSecretError      a secret is unknown, or may not go to this host or place
├── EgressConnectionError  no connection, no TLS, or the connection broke
├── EgressTimeoutError     one of the time limits is over
└── EgressResponseError    the response is too large, malformed, or redirects too often

The messages are for authors of tools: they name hosts and limits, and never an IP address that a
name resolved to, which would describe the internal network. A name without an address
and a name with an internal address give the same message.
"""


class EgressError(Exception):
    """An outgoing request failed. The message is safe to show to the author of the request."""


class EgressRequestError(EgressError):
    """The request is invalid. Nothing was sent."""


class EgressAddressError(EgressError):
    """The request, or a redirect of it, leads to a host that may not be reached."""


class EgressSecretError(EgressError):
    """A secret is unknown, or may not go to this host or place. It was not sent."""


class EgressConnectionError(EgressError):
    """No connection could be made, or it broke before the response was complete."""


class EgressTimeoutError(EgressError):
    """The response was not complete in time."""


class EgressResponseError(EgressError):
    """A response came, but breaks a limit or a rule of HTTP."""
