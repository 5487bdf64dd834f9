"""Compress pages by name, where the size of the response cannot tell an attacker what is on it (BREACH).

An attacker who sees the size of compressed pages, and can put text into them, can guess what else they hold. So a
page is compressed only if its URL is listed here, because it shows no secret and no payload, and only if
the request has no text that the page could repeat. Django masks the CSRF token differently in each response, and
adds random bytes to it.

The API has URLs of the same names. Its responses are not compressed: that would make their strong ETags weak, and
If-Match compares strong ones only.
"""

from typing import Final

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

NAMESPACE: Final = "admin"
"""The namespace of the console's URLs."""
COMPRESSED: Final = frozenset(
    {
        *("index", "glossary", "keys", "status", "tenants", "tenant"),
        *("tools", "prompts", "resources", "templates", "tool", "prompt", "resource", "template"),
        *("tool_add", "prompt_add", "resource_add", "template_add", "all_functions", "functions"),
        *("calls", "all_calls", "tasks", "audit_log", "all_audit_log", "refusals", "all_refusals"),
        *("service_accounts", "tokens", "secrets", "connections"),
    }
)
"""Names of URLs of the console. The pages *Tokens* and *Secrets* show names only."""
FIXED_PARAMETERS: Final = frozenset({"kind"})
"""Parameters that choose among fixed values: their text is not on the page."""


class PageCompressionMiddleware(GZipMiddleware):
    """Compress pages; see the module."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        match = request.resolver_match
        is_listed = (
            match is not None and match.namespace == NAMESPACE and match.url_name in COMPRESSED
        )
        if request.method != "GET" or not is_listed or request.GET.keys() - FIXED_PARAMETERS:
            return response
        return super().process_response(request, response)
