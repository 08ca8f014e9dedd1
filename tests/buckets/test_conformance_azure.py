"""The kit, on Azurite."""

from __future__ import annotations

from functools import partial

import pytest

from statestore.conformance import conformance
from tests.buckets.places import harness

# Azure's library hands bodies to aiohttp in a way that it warns of.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")

test_conformance = conformance(partial(harness, "azure"), sample=0.01)
