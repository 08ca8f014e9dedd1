"""The kit, on OpenSSH's server."""

from __future__ import annotations

from functools import partial

from statestore.conformance import conformance
from tests.buckets.places import harness

test_conformance = conformance(partial(harness, "sftp"), sample=0.01)
