"""The counter-examples as a page for people: ``python -m tests.object_storage.traces > docs/object-storage-traces.md``.

Each is a shortest run of the protocol in which a promise is broken once a rule is taken away.
"""

from __future__ import annotations

import difflib
import inspect
import textwrap
from typing import Any

from statestore_fsspec import _layout as layout
from statestore_fsspec._steps import NOW, Copy, Fetch, List, Page, Put, Remove
from tests.object_storage.breaks import RULES, Broken, edited
from tests.object_storage.clients import End, Raised
from tests.object_storage.model import Model, Report
from tests.object_storage.rules import BROKEN, HARMLESS
from tests.object_storage.scene import GRACE, Step

__all__ = ["heading", "page", "report", "section"]

_HEAD = f"""# What each rule is for

The protocol of [logs in buckets](object-storage.md) has eight rules. Here each of them is taken away by a change of a
few words in the code, and what follows is a shortest sequence of requests in which a promise is then broken. The
tests find them by going through everything that clients, network and clock can do in a small scenario
(`tests/object_storage/`); this page is rendered from what they found:
`python -m tests.object_storage.traces > docs/object-storage-traces.md`.

How to read them: a client's script is a list of calls, and what stands before `|` was done before anything else.
Runs are named A, B, C as they appear. `A[2]` is the single object of run A at offset 2, an append or a seal, and
`A[0:2]` a merge of the first two bytes. The log is `x` where no other is named. A request that is stuck, or is sent
by a stalled client, arrives later; the clock's unit is half the grace period, which is {GRACE}.
"""

_TAIL = """## Rules that cost no log when they go

These were taken away too, and all that can happen in the scenarios shown was gone through without a broken promise.
They stay for other reasons.
"""


def report(broken: Broken) -> Report:
    """Explore a scenario without a rule, the nearest states first."""
    with edited(*broken.edits):
        return Model(broken.scenario, strict=False).explore(breadth=True)


def heading(broken: Broken) -> str:
    """Return the heading of a claim's section."""
    return f"### {broken.claim[0].upper()}{broken.claim[1:]}"


def section(broken: Broken, found: Report) -> str:
    """Return a claim's section: what was changed, who does what, and what happens."""
    lines = [heading(broken), "", f"Rule {broken.rule}.", ""]
    if broken.why:
        lines += [broken.why, ""]
    if broken.edits:
        lines += ["```diff", *(line for edit in broken.edits for line in _diff(edit)), "```", ""]
    lines += [f"- {name}: `{words}`" for name, words in broken.scenario.scripts.items()]
    if found.violation is not None:
        words = _Words(tuple(broken.scenario.scripts))
        steps = [words.step(step) for step in found.trace]
        lines += ["", *(f"{number}. {step}" for number, step in enumerate(steps, start=1))]
        lines += ["", f"**Broken:** {found.violation}."]
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the whole page."""
    parts = [_HEAD]
    for rule, title in RULES.items():
        parts.append(f"## {rule}. {title}\n")
        parts += (section(broken, report(broken)) for broken in BROKEN if broken.rule == rule)
    parts.append(_TAIL)
    parts += (section(broken, report(broken)) for broken in HARMLESS)
    return "\n".join(parts)


def _diff(edit: Any) -> list[str]:
    """Return the lines that an edit changes, as a diff."""
    before = textwrap.dedent(inspect.getsource(edit.function))
    after = edit.apply(before)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return [f"@@ {edit.function.__qualname__} @@", *changed]


class _Words:
    """Says what happened, with short names for runs."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._runs: dict[str, str] = {}

    def step(self, step: Step) -> str:
        """Say what happened in one step."""
        if step.client is None:
            if step.request is NOW:
                return f"*It is {step.answer:g}.*"
            if isinstance(step.request, Copy):
                ((source, target),) = step.request.pairs
                return f"*The stuck request arrives:* {self._key(source)} is copied to {self._key(target)}."
            return (
                f"*The stuck request arrives:* {self._key(step.request.key)} is created: {self._object(step.request)}."
            )
        said = f"**{self._names[step.client]}** {self._asked(step)}"
        for end in step.ends:
            said += f" {self._end(end)}"
        return said

    def _asked(self, step: Step) -> str:
        request, answer = step.request, step.answer
        if isinstance(answer, Raised):
            return f"asks, and {answer.message}."
        if request is NOW:
            return f"looks at the clock: {answer:g}." if not step.slow else "pauses."
        if isinstance(request, List):
            return f"lists {self._prefix(request)}: {self._page(answer)}."
        if isinstance(request, Put):
            said = f"puts {self._object(request)} at {self._key(request.key)}"
            return f"{said}: {step.fault}." if step.fault else f"{said}: {answer.value}."
        if isinstance(request, Fetch):
            done = len(answer) - 1
            span = request.spans[done]
            if answer[done] is None:
                return f"fetches {self._key(span.key)}: not there."
            return f"fetches {self._key(span.key)}: {self._object(Put(span.key, answer[done]))}."
        if isinstance(request, Copy):
            source, target = request.pairs[(len(request.pairs) if type(answer) is bool else len(answer)) - 1]
            return f"copies {self._key(source)} to {self._key(target)}{f': {step.fault}' if step.fault else ''}."
        assert isinstance(request, Remove)
        done = len(request.keys) if answer is None else len(answer)
        return f"removes {self._key(request.keys[done - 1])}."

    def _end(self, end: End) -> str:
        if end.error is not None:
            return f"The call raises `{type(end.error).__name__}`."
        result = end.result
        if hasattr(result, "run"):
            return f"The call returns {self._run('x', result.run)} at {result.size}."
        return f"The call returns `{result!r}`." if isinstance(result, bytes) else "The call returns."

    def _run(self, log: str, run: str) -> str:
        """Return a run's short name."""
        name = self._runs.setdefault(run, chr(ord("A") + len(self._runs)))
        return name if log == "x" else f"{log}:{name}"

    def _key(self, key: str) -> str:
        if key.startswith("heads/"):
            log, generation = layout.parse_head(key)
            return f"head {generation}" if log == "x" else f"head {generation} of {log}"
        log, run, place = key.removeprefix("data/").replace("!", "/", 1).split("/", 2)
        if place.startswith("t/"):
            return f"{self._run(log, run)}[{layout.MAX_OFFSET - int(place[2:])}]"
        start, stop = place[2:].split("-")
        return f"{self._run(log, run)}[{int(start)}:{int(stop)}]"

    def _object(self, put: Put) -> str:
        if put.key.startswith("heads/"):
            words = put.data.decode().split()
            run = self._run("x", words[1])
            return f"“live: {run}”" if words[0] == "live" else f"“dead: {run}, at {int(words[2])}”"
        if put.data.startswith(b"sts1 s"):
            return "a seal"
        return f"`{put.data[layout.PREAMBLE :].decode()}`"

    def _prefix(self, request: List) -> str:
        log = request.prefix.partition("/")[2].partition("!")[0]
        what = "heads" if request.prefix.startswith("heads/") else "data"
        more = f", after {self._key(request.after)}" if request.after else ""
        return f"{what}{'' if log == 'x' else f' of {log}'}{more}"

    def _page(self, page: Page) -> str:
        if not page.entries:
            return "nothing"
        return ", ".join(self._key(entry.key) for entry in page.entries) + (" and more" if page.more else "")


if __name__ == "__main__":
    print(page(), end="")
