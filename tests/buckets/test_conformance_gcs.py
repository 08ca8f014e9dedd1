"""The kit, on fake-gcs-server."""

from __future__ import annotations

from functools import partial

from statestore.conformance import conformance
from tests.buckets.places import harness

test_conformance = conformance(partial(harness, "gcs"), sample=0.01)
