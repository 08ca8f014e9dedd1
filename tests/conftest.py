"""How all tests use Hypothesis: no deadline, since a busy machine is not a fault."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
