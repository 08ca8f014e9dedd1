"""A record whose fate the network hides stays in doubt when its log is gone before the append is repeated."""

from __future__ import annotations

import pytest

from statestore import RecordLog
from statestore.errors import Conflict, NotFound, Unavailable
from statestore.store import Tail
from statestore.wrappers import Faulty
from tests.faultproxy import Fault, FaultProxy
from tests.s3.raw import Place, connection
from tests.servers import Rgw
from tests.storms.storm import SETTINGS


class Watched(Faulty):
    """Lets something happen after an append whose outcome is unknown."""

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        try:
            return super().append(log, data, at=at)
        except Unavailable:
            self.after()
            raise


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "made again"])
def test_a_record_that_was_added_to_a_log_that_is_gone_is_not_said_to_be_refused(rgw: Rgw, place: str, again: bool):
    spot = Place(rgw, place)
    spot.put("statestore.json", SETTINGS.spell())
    plain = spot.quick(connection(rgw))
    with FaultProxy(rgw.endpoint) as proxy:
        watched = Watched(spot.quick(connection(rgw.through(proxy), timeout=1.0)))
        log = RecordLog(watched, "log")
        log.append("start", expect=1)

        def replace() -> None:
            proxy.heal()
            assert RecordLog(plain, "log").count() == 2, "the record was added"
            plain.delete("log")
            if again:
                RecordLog(plain, "log").append("start", b"another", expect=1)

        watched.after = replace
        proxy.inject(Fault.REPLY_LOST, method="PUT")
        proxy.inject(Fault.ERROR_BEFORE, method="GET", times=None)
        with pytest.raises(Unavailable) as caught:
            log.append("message", b"mine")
    assert (caught.value.effect_unknown, caught.value.retry) == (True, False)
    assert isinstance(caught.value.__cause__, Conflict if again else NotFound)
    if again:
        assert [record.body for record in RecordLog(plain, "log")] == [b"another"]
