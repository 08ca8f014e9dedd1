"""The kit, on OpenSSH's server, Azurite and fake-gcs-server.

What the kit repeats many times is tried at a hundredth of the full size, or at the least that the clause still means
something with. On the emulators of Azure and Google, which are slow, it is the level ``core``: their races have a test
in test_drives.py. On SFTP, where exclusive creation is made of several requests, it is ``concurrent`` too. With
STATESTORE_CONFORM=all every level is tried so, and with STATESTORE_CONFORM=full at its full size, which takes hours.
"""

from __future__ import annotations

import os
from functools import partial

import pytest

from statestore.conformance import conformance
from statestore.conformance.registry import LEVELS
from tests.buckets.places import harness

WISH = os.environ.get("STATESTORE_CONFORM", "")
SAMPLE = 1.0 if WISH == "full" else 0.01
LIMIT = 7200.0 if WISH == "full" else 300.0  # seconds for one clause


def chosen(*levels: str) -> tuple[str, ...]:
    return LEVELS if WISH in ("all", "full") else levels


# Azure's library hands large bodies to aiohttp in a way that it warns of.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")

# The fixtures start the servers before the first clause, whose time is limited, and skip where one can't be had.
test_on_azure = pytest.mark.usefixtures("azure")(
    conformance(partial(harness, "azure"), levels=chosen("core"), sample=SAMPLE, limit=LIMIT)
)
test_on_gcs = pytest.mark.usefixtures("gcs")(
    conformance(partial(harness, "gcs"), levels=chosen("core"), sample=SAMPLE, limit=LIMIT)
)
test_on_sftp = pytest.mark.usefixtures("sftp")(
    conformance(partial(harness, "sftp"), levels=chosen("core", "concurrent"), sample=SAMPLE, limit=LIMIT)
)
