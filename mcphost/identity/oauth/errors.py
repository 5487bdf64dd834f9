"""Errors of OAuth (RFC 6749 sections 4.1.2.1 and 5.2, RFC 7591 section 3.2.2, RFC 8707 section 2)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


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


# Alike for what does not exist and for what belongs to another client.
_MEANINGS: Final = {
    "invalid_client": "No client has this client_id. Register the client again.",
    "invalid_grant": (
        "The code or the refresh token is unknown, expired or used, or was issued for another "
        "client_id, redirect_uri or code_verifier. Ask the person to sign in again."
    ),
    "invalid_request": "A parameter is missing or malformed.",
    "invalid_scope": "A scope is not one of an MCP server: request those of its metadata.",
    "unauthorized_client": "response_type must be code.",
    "unsupported_grant_type": "grant_type must be authorization_code or refresh_token.",
    "unsupported_response_type": "response_type must be code.",
}


def with_description(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of an error with `error_description`: oauthlib leaves it out of many."""
    meaning = _MEANINGS.get(fields["error"], "The request was refused.")
    return {"error": fields["error"], "error_description": meaning, **fields}


class OAuthError(Exception):
    """A refusal in the words of OAuth: a code for the client, a sentence for its developer."""

    def __init__(self, code: OAuthErrorCode, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
