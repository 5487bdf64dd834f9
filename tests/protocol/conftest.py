"""A Hypothesis profile without deadlines: the duration of an example depends on the machine only."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "without-clocks", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("without-clocks")
