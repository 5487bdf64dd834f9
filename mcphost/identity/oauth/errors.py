"""Errors of OAuth (RFC 6749 sections 4.1.2.1 and 5.2, RFC 7591 section 3.2.2, RFC 8707 section 2)."""

from enum import StrEnum


class OAuthErrorCode(StrEnum):
    """The codes that clients understand."""

    INVALID_REQUEST = "invalid_request"
    INVALID_CLIENT = "invalid_client"
    INVALID_GRANT = "invalid_grant"
    INVALID_SCOPE = "invalid_scope"
    INVALID_TARGET = "invalid_target"
    INVALID_REDIRECT_URI = "invalid_redirect_uri"
    INVALID_CLIENT_METADATA = "invalid_client_metadata"
    ACCESS_DENIED = "access_denied"
    TOO_MANY = "temporarily_unavailable"


class OAuthError(Exception):
    """A refusal in the words of OAuth: a code for the client, a sentence for its developer."""

    def __init__(self, code: OAuthErrorCode, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
