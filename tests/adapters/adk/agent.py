"""An agent whose model is a few lines: it counts turns, asks for input, and repeats the answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService
from google.adk.tools import ToolContext, request_input
from google.genai import types

from statestore.adapters.adk import StateStoreSessionService
from statestore_local import LocalStore

APP, USER, SESSION = "app", "alice", "one"


def count(tool_context: ToolContext) -> dict[str, int]:
    """Count, in the state of all scopes."""
    for key in ("n", "user:n", "app:n"):
        tool_context.state[key] = tool_context.state.get(key, 0) + 1
    return {"n": tool_context.state["n"]}


class Model(BaseLlm):
    """Says how many texts it has seen; ``ask`` asks for input, ``count`` calls the tool, an answer is repeated."""

    model: str = "fake"

    async def generate_content_async(self, request: LlmRequest, stream: bool = False) -> AsyncGenerator[Any, None]:
        parts = [part for content in request.contents for part in content.parts or ()]
        last = parts[-1]
        called = {
            "ask": ("adk_request_input", {"message": "May I?", "response_schema": {"type": "boolean"}}),
            "count": ("count", {}),
        }.get(last.text or "")
        if called is not None:
            part = types.Part(function_call=types.FunctionCall(name=called[0], args=called[1]))
        elif last.function_response is not None:
            part = types.Part(text=f"got {last.function_response.response}")
        else:
            part = types.Part(text=f"seen {' '.join(part.text for part in parts if part.text)}")
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)


def runner(service: BaseSessionService) -> Runner:
    agent = LlmAgent(name="agent", model=Model(), tools=[request_input, count])
    return Runner(app_name=APP, agent=agent, session_service=service, auto_create_session=True)


async def say(runner: Runner, what: str | types.Content) -> list[str]:
    """Run a turn and return the texts of the agent."""
    content = types.Content(role="user", parts=[types.Part(text=what)]) if isinstance(what, str) else what
    texts = []
    async for event in runner.run_async(user_id=USER, session_id=SESSION, new_message=content):
        texts += [part.text for part in (event.content.parts if event.content else None) or () if part.text]
    return texts


def service_on(root: Path) -> StateStoreSessionService:
    return StateStoreSessionService(LocalStore(root, sync="never"), catalog=root.with_name("catalog"))


if __name__ == "__main__":

    async def main() -> None:
        turns = runner(service_on(Path(sys.argv[1])))
        for text in sys.argv[2:]:
            print(*await say(turns, text), sep="\n", flush=True)

    asyncio.run(main())
