"""OAuth 2.1: which clients there are, what members let them do, codes and refresh tokens.

The protocol itself (parameters, order of checks, error codes) is oauthlib's (`grants`); what is
stored, who may consent to what, and what happens when two processes redeem at once is here.
Specification: basic/authorization, RFC 6749, 7009, 7591, 7636, 8414, 8707, 9207, 9728.
"""
