"""The kit, on Azurite."""

from __future__ import annotations

from functools import partial

from statestore.conformance import conformance
from tests.buckets.places import harness

test_conformance = conformance(partial(harness, "azure"), sample=0.02)
