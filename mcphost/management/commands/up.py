"""`manage.py up`: set everything up, print the URLs and accounts, and serve; reload `tools/` when a file
changes."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from mcphost import home
from mcphost.management.commands.init import ADMIN
from mcphost.management.demo import AUDITOR, DEMO, demo_is_closed, fits
from mcphost.management.tools_watch import ToolsWatch
from mcphost.management.welcome import Account, Welcome
from mcphost.serving.process import startup_checks
from mcphost.transport.server.port_check import cannot_listen, is_free


class Command(BaseCommand):
    """The command that `make up` runs."""

    help = "Set up the data folder and the demo tenant, print its URLs and accounts, and serve."
    requires_system_checks = ["mcphost"]  # Django's own load all pages of the console

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = settings.MCPHOST_HOST, settings.MCPHOST_PORT
        _refuse_exposure(host)
        if not is_free(host, port):
            raise CommandError(cannot_listen(host, port))
        startup_checks.claim()
        call_command(
            "init", demo=True, conformance=settings.MCPHOST_CONFORMANCE, stdout=self.stdout
        )
        data = home.Home(settings.MCPHOST_HOME)
        shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
        welcome = Welcome(
            base=f"http://{shown}:{port}",
            admin=_account(data, ADMIN, data.admin_password),
            auditor=_account(data, AUDITOR, data.auditor_password),
            token="" if demo_is_closed() else home.read(data.demo_token),
            token_file=data.demo_token,
        )
        self.stdout.write(welcome.text())
        self.stdout.flush()
        watch = ToolsWatch(self._print, f"{welcome.base}{reverse('admin:functions', args=[DEMO])}")
        watch.start()
        try:
            call_command("serve", stdout=self.stdout)
        finally:
            watch.stop()

    def _print(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _refuse_exposure(host: str) -> None:
    if settings.MCPHOST_LOOPBACK or settings.MCPHOST_EXPOSE_DEMO:
        return
    raise CommandError(
        f"HOST={host} can be reached from other machines, and `up` creates a demo token and "
        "generated passwords. For a real server, run `manage.py init` and `manage.py serve`. To "
        "expose the demo anyway, set MCPHOST_EXPOSE_DEMO=1."
    )


def _account(data: home.Home, name: str, file: Path) -> Account:
    """Return an account, with its generated password if that is still valid."""
    password = home.read(file)
    user = get_user_model().objects.filter(username=name).first()
    is_valid = user is not None and fits(data, user.password, password)
    return Account(name, password if is_valid else "", file)
