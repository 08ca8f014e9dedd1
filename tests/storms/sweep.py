"""One fault at a time, at each request of a call."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from statestore_fsspec import FsspecStore
from tests.proxy import Fault, Proxy
from tests.storms.aim import Aim
from tests.storms.calls import CALLS

__all__ = ["sweep"]


def sweep(
    aim: Aim,
    proxy: Proxy,
    plain: Callable[[], FsspecStore],
    harmed: Callable[[], FsspecStore],
    fault: Fault,
    name: str,
    *,
    method: str = "",
    first: int = 1,
    step: int = 1,
) -> int:
    """Do a call again and again, each time with a fault at another one of its requests; return how often.

    Args:
        aim: how the storage's requests are told apart.
        proxy: what does the harm.
        plain: makes a store that goes past the proxy.
        harmed: makes a store that goes through it.
        fault: what is done.
        name: which of `CALLS`.
        method: the method of the requests that it is done to; "" for any.
        first: the request that it is done to first.
        step: how many requests further it is done to the next time.
    """
    call, beside = CALLS[name], plain()
    for done in itertools.count():
        nth = first + done * step
        log = f"{name.replace(' ', '-')}/{fault.name}/{nth}"
        store = harmed()
        proxy.begin(nth)
        at = call.before(store if call.warm else beside, log)
        proxy.clear()
        proxy.inject(fault, nth=nth, method=method)
        told = f"request {nth} of {log}"
        assert call.call(store, log, at) == call.result, told
        struck = [request for request in proxy.requests if request.fault]
        proxy.heal()
        proxy.release()
        if call.holds is None:
            assert [info.name for info in beside.list(log)] == [], told
        else:
            assert beside.read(log) == call.holds, told
        if any(aim.write in ("", request.method) for request in struck):
            assert list(beside.maintenance.check(log)) == [], told
        if not struck:
            return done
    raise AssertionError("a call without end")
