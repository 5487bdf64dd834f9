"""Change what the demo tenant offers: `python -m bench.change TIMES`, over `MCPHOST_HOME`.

Reads a line before each change, and writes the moment (of the machine's monotonic clock) at which
it began. A tool goes and comes back in turn, in this process, beside the server's.
"""

import sys
import time

import django

django.setup()

from django.utils.module_loading import autodiscover_modules  # noqa: E402 - needs django.setup()

from mcphost.audit.records import Actor  # noqa: E402
from mcphost.catalogue import services  # noqa: E402
from mcphost.catalogue.models import Primitive  # noqa: E402

VERBS = (services.disable, services.enable)


def main(times: int) -> None:
    autodiscover_modules("wiring")
    tool = Primitive.objects.get(tenant__slug="demo", name="picture").id
    for number in range(times):
        sys.stdin.readline()
        began = time.monotonic()
        VERBS[number % len(VERBS)](tool, Actor.system("the benchmark"))
        print(began, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
