"""How hypothesis runs here: without a deadline, because machines differ, and without shrinking.

States are large: to shrink one takes minutes, and the first failing one tells as much.
"""

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "orchestra",
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("orchestra")
