"""The README's ten lines do the same in a bucket."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.servers import Rgw
from tests.test_readme import blocks


def test_the_session_prints_in_a_bucket_what_the_readme_shows(rgw: Rgw, place: str) -> None:
    (_, session), (shown,) = blocks("python"), blocks("text")
    credentials = {
        "AWS_ACCESS_KEY_ID": rgw.access_key,
        "AWS_SECRET_ACCESS_KEY": rgw.secret_key,
        "AWS_DEFAULT_REGION": rgw.region,
        "AWS_ENDPOINT_URL": rgw.endpoint,
    }
    ran = subprocess.run(
        [sys.executable, "-c", session.replace("my-bucket/agents", place)],
        env={**os.environ, **credentials},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == shown
