"""A real runner over our service: turns, restarts, a request that waits, and an operator beside it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from google.genai import types

from statestore.adapters.adk import AdkSource
from statestore.errors import InvalidAnswer
from statestore.ops import Operator, State
from tests.adapters.adk.agent import APP, SESSION, USER, runner, say, service_on


def test_c17_a_request_survives_the_process_is_listed_answered_and_resumes(tmp_path):
    root = tmp_path / "store"
    command = [sys.executable, "-m", "tests.adapters.adk.agent", str(root), "hi", "count", "ask"]
    ran = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.split("\n")[:2]) == (0, ["seen hi", "got {'n': 1}"]), ran.stderr

    async def case():
        service = service_on(root)
        operator = Operator(AdkSource(service, APP))
        (row,) = await operator.list()
        assert (row.id, row.user_id, row.state) == (SESSION, USER, State.PAUSED)
        (interrupt,) = row.pending_interrupt_ids
        (pending,) = (await operator.get(SESSION)).pending
        assert (pending.message, pending.author, pending.response_schema) == ("May I?", "agent", {"type": "boolean"})
        with pytest.raises(InvalidAnswer):
            await operator.resume(SESSION, interrupt, "perhaps")
        answer = await operator.resume(SESSION, interrupt, True)
        turns = runner(service)
        assert await say(turns, types.Content.model_validate(answer.content)) == ["got {'result': True}"]
        assert (await operator.get(SESSION)).state is State.IDLE
        # The history of both processes is there, and the state of all scopes.
        (text,) = await say(turns, "bye")
        assert text.startswith("seen hi seen hi count")
        assert text.endswith("bye")
        assert await say(turns, "count") == ["got {'n': 2}"]
        session = await service.get_session(app_name=APP, user_id=USER, session_id=SESSION)
        assert session.state == {"n": 2, "user:n": 2, "app:n": 2}

    asyncio.run(case())


def test_c51_an_operator_aborts_a_session_while_a_runner_is_in_the_midst_of_it_and_does_not_disturb_it(tmp_path):
    async def case():
        service = service_on(tmp_path / "store")
        operator = Operator(AdkSource(service, APP))
        turns = runner(service)
        await say(turns, "hi")
        content = types.Content(role="user", parts=[types.Part(text="count")])
        seen = 0
        async for _ in turns.run_async(user_id=USER, session_id=SESSION, new_message=content):
            seen += 1
            if seen == 1:
                await operator.mark_interrupted(SESSION, "shutdown")
                assert (await operator.get(SESSION)).state is State.INTERRUPTED
                await operator.abort(SESSION, "stop")
                assert [row.state for row in await operator.list()] == [State.ABORTED]
        assert seen == 3
        session = await service.get_session(app_name=APP, user_id=USER, session_id=SESSION)
        assert session.state == {"n": 1, "user:n": 1, "app:n": 1}
        assert (await operator.get(SESSION)).abort_reason == "stop"

    asyncio.run(case())


def test_a_session_that_was_taken_back_goes_on_from_there(tmp_path):
    async def case():
        service = service_on(tmp_path / "store")
        turns = runner(service)
        await say(turns, "count")
        await say(turns, "ask")
        session = await service.get_session(app_name=APP, user_id=USER, session_id=SESSION)
        operator = Operator(AdkSource(service, APP))
        assert (await operator.get(SESSION)).state is State.PAUSED
        await turns.rewind_async(
            user_id=USER, session_id=SESSION, rewind_before_invocation_id=session.events[-1].invocation_id
        )
        assert (await operator.get(SESSION)).state is State.IDLE
        (text,) = await say(turns, "bye")
        assert "ask" not in text

    asyncio.run(case())
