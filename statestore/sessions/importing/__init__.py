"""Sessions made of the files that coding agents keep, with a report of what came over and what did not.

Each file becomes a session: what was said, the model's blocks and steps, its calls and their results, so that
``statestore show`` tells it and a :class:`~statestore.sessions.Transcript` builds its context. A file holds more than
a session does: each of its lines is carried over or lost, and :class:`Report` counts both, with the reason.
"""

from __future__ import annotations

from statestore.sessions.importing._bring import AGENTS, bring_in, files
from statestore.sessions.importing._report import Brought, Report

__all__ = ["AGENTS", "Brought", "Report", "bring_in", "files"]
