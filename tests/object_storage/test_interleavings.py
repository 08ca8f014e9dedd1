"""In every order of requests, faults and ticks, the protocol keeps its promises.

``python -m tests.object_storage`` says how many states each scenario has. With ``STATESTORE_MODEL=full`` the bounds
are larger: one more fault in each scenario, faults of all kinds, and clients that are slow to look at the clock.
"""

from __future__ import annotations

import pytest

from tests.object_storage.model import Model
from tests.object_storage.scenarios import LEAST, SCENARIOS
from tests.object_storage.scene import Scenario


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_promise_is_broken(name: str, record_property: pytest.RecordProperty) -> None:
    found = Model(SCENARIOS[name]).explore()
    record_property("states", found.states)
    assert found.violation is None, found.trace
    assert found.complete
    assert found.states >= LEAST[name]
    assert found.ends > 0


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario({"a": "create a | append b, append c", "b": "tail, append d"}, faults=1),
        Scenario({"late": "create a | append z", "other": "tail, append b | merge 2, collect"}, ticks=(3,)),
        Scenario({"a": "create a | append b", "d": "delete, create c"}, faults=1),
    ],
    ids=["two writers", "a collector", "a deleter"],
)
def test_joining_histories_loses_no_state_of_the_storage(scenario: Scenario) -> None:
    joined, apart = Model(scenario), Model(scenario, joined=False)
    assert joined.explore().states <= apart.explore().states
    assert joined.storages() == apart.storages()


def test_two_explorations_go_the_same_way() -> None:
    scenario = Scenario({"a": "create a | append b", "b": "append c"}, faults=1)
    once, again = Model(scenario).explore(), Model(scenario).explore(breadth=True)
    assert (once.states, once.transitions, once.ends) == (again.states, again.transitions, again.ends)
