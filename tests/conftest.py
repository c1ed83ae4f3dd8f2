"""Settings that hold for all tests."""

from hypothesis import settings

# The same examples in every run and no clock: a test fails for what the code does, not for the draw or a busy machine.
settings.register_profile("tirlite", deadline=None, derandomize=True)
settings.load_profile("tirlite")
