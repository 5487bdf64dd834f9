"""`manage.py up`: set everything up, say where to go, and serve."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from mcphost import home
from mcphost.management.commands.init import ADMIN
from mcphost.management.welcome import Welcome
from mcphost.serving import sole
from mcphost.transport.listening import cannot_listen, is_free


class Command(BaseCommand):
    """What `make up` runs."""

    help = "Set up the data folder and the demo tenant, print where to go, and serve."

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = settings.MCPHOST_HOST, settings.MCPHOST_PORT
        _refuse_exposure(host)
        if not is_free(host, port):
            raise CommandError(cannot_listen(host, port))
        sole.claim()
        call_command(
            "init", demo=True, conformance=settings.MCPHOST_CONFORMANCE, stdout=self.stdout
        )
        self.stdout.write(_welcome(home.Home(settings.MCPHOST_HOME)).text())
        self.stdout.flush()
        call_command("serve", stdout=self.stdout)


def _refuse_exposure(host: str) -> None:
    if settings.MCPHOST_LOOPBACK or settings.MCPHOST_EXPOSE_DEMO:
        return
    raise CommandError(
        f"HOST={host} can be reached from other machines, and `up` makes a demo token and a "
        "generated password. For a real server run `manage.py init` and `manage.py serve`; to "
        "show the demo to others all the same, set MCPHOST_EXPOSE_DEMO=1."
    )


def _welcome(data: home.Home) -> Welcome:
    host, port = settings.MCPHOST_HOST, settings.MCPHOST_PORT
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return Welcome(
        base=f"http://{shown}:{port}",
        user=ADMIN,
        password=_generated_password(data),
        password_file=data.admin_password,
        token=home.read(data.demo_token),
        token_file=data.demo_token,
    )


def _generated_password(data: home.Home) -> str:
    """The generated password, while it is still the administrator's."""
    password = home.read(data.admin_password)
    user = get_user_model().objects.filter(username=ADMIN).first()
    return password if user is not None and user.check_password(password) else ""
