"""Settings that are kept are read anew when one is changed."""

from typing import Any

from django.core.signals import setting_changed

from mcphost.serving.options import options


def forget_options(**_: Any) -> None:
    options.cache_clear()


setting_changed.connect(forget_options)
