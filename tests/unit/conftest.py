"""What unit tests share."""

from hypothesis import HealthCheck, settings

# How long an example takes is nothing that is tested: a pause of the machine would be a failure.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
