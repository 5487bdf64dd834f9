"""Send links to people by e-mail, where the operator has set a server for it (MCPHOST_SMTP_URL)."""

import logging
from smtplib import SMTPException
from typing import Final

from django.conf import settings
from django.core.mail import send_mail
from django.http import HttpRequest
from django.urls import reverse

from mcphost.identity.account_links import IssuedAccountLink
from mcphost.identity.oauth.addresses import public_url

INVITATION: Final = """{inviter} invites you, {user}, to join {tenant} as {role}.

Open this link to accept or decline:

{url}

It works once, until {expires:%Y-%m-%d %H:%M} UTC. If you did not expect it, do nothing.
"""
ACCOUNT: Final = """Choose the password of the account {user}:

{url}

The link works once, until {expires:%Y-%m-%d %H:%M} UTC. If you did not expect it, do nothing: nothing changes.
"""

log = logging.getLogger(__name__)


def is_available() -> bool:
    """Whether e-mail can be sent."""
    return bool(settings.MCPHOST_SENDS_EMAIL)


def send(address: str, subject: str, text: str) -> bool:
    """Send a text; False if the server did not take it, or no server could. Not in a transaction: it takes seconds."""
    # Python ends a header at more separators than Django refuses.
    one_line = " ".join(subject.split())
    try:
        return send_mail(one_line, text, None, [address]) == 1
    except (OSError, SMTPException, ValueError) as error:  # ValueError: no address of SMTP
        log.warning("an e-mail could not be sent: %s", type(error).__name__)
        return False


def account_link_url(request: HttpRequest, issued: IssuedAccountLink) -> str:
    """Return the URL of a link to an account."""
    return public_url(request, reverse("admin:account_link", args=[issued.link]))


def send_account_link(address: str, issued: IssuedAccountLink, url: str) -> bool:
    """Send a link to an account; False if the server did not take it."""
    text = ACCOUNT.format(user=issued.username, url=url, expires=issued.expires_at)
    return send(address, "Your password at mcphost", text)
