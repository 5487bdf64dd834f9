"""`manage.py init`: create what a new server needs and does not have yet."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import autodiscover_modules

from mcphost import home
from mcphost.management import demo
from mcphost.management.setup_lock import one_at_a_time
from mcphost.vault.services import ensure_ring, verify_master_key

ADMIN = "admin"


class Command(BaseCommand):
    """Create what is missing. Running it again changes nothing."""

    help = "Create secrets, tables and the first administrator; with --demo also the demo tenant."
    requires_system_checks = ["mcphost"]  # Django's own load all pages of the console

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--demo", action="store_true", help="seed the demo tenant")
        parser.add_argument(
            "--conformance", action="store_true", help="seed the public tenant `conformance`"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        data = home.Home(settings.MCPHOST_HOME)
        with home.one_at_a_time(data), one_at_a_time():
            call_command("migrate", verbosity=0, interactive=False)
            autodiscover_modules("wiring")
            verify_master_key()
            ensure_ring()
            users = get_user_model()
            if not users.objects.filter(is_superuser=True).exists():
                users.objects.create_superuser(
                    ADMIN, password=demo.new_password(data.admin_password)
                )
            if demo.separate_auditor_password(data):
                self.stdout.write(
                    f"The user {demo.AUDITOR} had the same password as {ADMIN}. It now has its own, "
                    f"in {data.auditor_password}"
                )
            if options["demo"]:
                demo.seed_demo(data)
                if demo.demo_is_closed():
                    self.stdout.write(
                        "The tenant demo was closed, and its slug is not used again: there is no demo. "
                        "Staff create other tenants in the console."
                    )
            if options["conformance"] and not demo.seed_conformance():
                raise CommandError(
                    "The functions of the conformance suite are not loaded. Set MCPHOST_CONFORMANCE=1 "
                    "for this command and for the server; they are in tests/conformance/tools of a "
                    "checkout."
                )
        self.stdout.write(f"Ready in {data.path}")
