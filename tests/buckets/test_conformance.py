"""The kit, on OpenSSH's server, Azurite and fake-gcs-server.

What the kit repeats many times is tried at a hundredth of the full size, or at the least that the clause still means
something with, and the level ``scale`` is left out: the emulators are slow, and what grows with a log is the same code
as on S3. With STATESTORE_CONFORM=full in the environment everything is tried at its full size, which takes hours.
"""

from __future__ import annotations

import os
from functools import partial

import pytest

from statestore.conformance import conformance
from statestore.conformance.registry import LEVELS
from tests.buckets.places import harness

FULL = os.environ.get("STATESTORE_CONFORM") == "full"
SAMPLE = 1.0 if FULL else 0.01
LIMIT = 7200.0 if FULL else 300.0  # seconds for one clause
CHOSEN = LEVELS if FULL else tuple(level for level in LEVELS if level != "scale")

# Azure's library hands large bodies to aiohttp in a way that it warns of.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")

# The fixtures start the servers before the first clause, whose time is limited, and skip where one can't be had.
test_on_azure = pytest.mark.usefixtures("azure")(
    conformance(partial(harness, "azure"), levels=CHOSEN, sample=SAMPLE, limit=LIMIT)
)
test_on_gcs = pytest.mark.usefixtures("gcs")(
    conformance(partial(harness, "gcs"), levels=CHOSEN, sample=SAMPLE, limit=LIMIT)
)
test_on_sftp = pytest.mark.usefixtures("sftp")(
    conformance(partial(harness, "sftp"), levels=CHOSEN, sample=SAMPLE, limit=LIMIT)
)
