"""What a transcript comes to: above all, that a context pairs every call with its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore.errors import Corrupt, NotFound
from statestore.records import BLOCKS, CALL, CONFIG, KINDS, RESULT, START, STEP, Header, Record, encode, scan
from statestore.sessions import Conf, Transcript

CALLS = {"kind": "call", "step": "s1"}
TWO_CALLS = [
    {"kind": "start"},
    {"kind": "message", "id": "m1"},
    {**CALLS, "id": "a"},
    {**CALLS, "id": "b"},
    {"kind": "step", "id": "s1", "upto": 2},
]

ids = st.sampled_from(["x", "y", ""])
headers = st.builds(
    Header,
    n=st.integers(-1, 9),
    kind=st.sampled_from([*KINDS, CALL, CALL, RESULT, RESULT, STEP, "other"]),
    id=ids,
    step=ids,
    for_=ids,
    upto=st.integers(-1, 9),
)
numbered = st.lists(headers, min_size=1, max_size=24).map(
    lambda chain: [
        Header(n=n, kind=h.kind, id=h.id, step=h.step, for_=h.for_, upto=h.upto) for n, h in enumerate(chain, 1)
    ]
)
chains = st.one_of(numbered, st.lists(headers, min_size=1, max_size=24))


def transcript_of(chain: Sequence[Header]) -> Transcript:
    return Transcript(scan(b"".join(encode(header, b"") for header in chain)))


def check_paired(context: Sequence[Record]) -> None:
    """Every call has its result behind it, every result its call before it, and none of them is used twice."""
    open_calls: Counter[str] = Counter()
    for record in context:
        if record.kind == CALL:
            open_calls[record.id] += 1
        elif record.kind == RESULT:
            open_calls[record.header.for_] -= 1
            assert open_calls[record.header.for_] >= 0
    assert not +open_calls


def plainly_arranged(records: Sequence[Record]) -> list[Record]:
    """The order of a context, said as simply as possible."""
    context: list[Record] = []
    blocks: list[Record] = []
    unseen: list[Record] = []

    def show(chosen: list[Record]) -> None:
        for results in (True, False):
            context.extend(record for record in chosen if (record.kind == RESULT) is results)

    for record in records:
        if record.kind in BLOCKS:
            blocks.append(record)
        elif record.kind == STEP:
            show([other for other in unseen if other.n <= record.header.upto])
            unseen = [other for other in unseen if other.n > record.header.upto]
            context.extend(block for block in blocks if block.header.step == record.id)
            blocks = [block for block in blocks if block.header.step != record.id]
            context.append(record)
        elif record.kind not in (START, CONFIG):
            unseen.append(record)
    show(unseen)
    return context


@given(chains)
def test_a_context_holds_no_call_without_its_result_and_no_result_without_its_call(chain: list[Header]) -> None:
    for end in range(1, len(chain) + 1):
        context = transcript_of(chain[:end]).context()
        check_paired(context)
        assert transcript_of(chain[:end]).context() == context


@given(chains)
def test_a_context_leaves_out_nothing_but_waiting_calls_and_stray_results(chain: list[Header]) -> None:
    transcript = transcript_of(chain)
    everything = transcript.context(unpaired="keep")
    context = transcript.context()
    left_out = [record for record in everything if record not in context]
    assert [record for record in everything if record in context] == context
    assert [record for record in left_out if record.kind == CALL] == transcript.waiting()
    assert {record.kind for record in left_out} <= {CALL, RESULT}
    if left_out:
        with pytest.raises(NotFound):
            transcript.context(unpaired="error")
    else:
        assert transcript.context(unpaired="error") == everything


@given(chains)
def test_a_context_has_the_order_of_its_simplest_description(chain: list[Header]) -> None:
    transcript = transcript_of(chain)
    assert transcript.context(unpaired="keep") == plainly_arranged(transcript.records)


@given(chains)
def test_once_every_waiting_call_is_answered_a_context_has_every_call_that_a_step_closed(chain: list[Header]) -> None:
    waiting = transcript_of(chain).waiting()
    answers = [Header(n=len(chain) + at, kind=RESULT, for_=call.id) for at, call in enumerate(waiting, 1)]
    repaired = transcript_of([*chain, *answers])
    assert repaired.waiting() == []
    calls = [record for record in repaired.context(unpaired="keep") if record.kind == CALL]
    assert [record for record in repaired.context() if record.kind == CALL] == calls


@given(chains, st.data())
def test_a_transcript_that_went_on_is_as_one_made_at_once_and_the_shorter_ones_stay_as_they_are(
    chain: list[Header], data: st.DataObject
) -> None:
    records = list(transcript_of(chain))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=4)))
    grown = Transcript()
    stages = []
    for begin, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        grown = grown.followed_by(records[begin:end])
        stages.append((grown, end))
    for transcript, end in stages:
        whole = Transcript(records[:end])
        assert transcript.records == whole.records
        assert transcript.waiting() == whole.waiting()
        assert transcript.last_step() == whole.last_step()
        if end:
            assert transcript.status() == whole.status()
            assert transcript.context() == whole.context()


def test_of_two_results_for_one_call_the_first_counts(spell: Callable[..., bytes]) -> None:
    answers = [{"kind": "result", "id": f"r{at}", "for_": of} for at, of in enumerate(["a", "a", "b", "a"])]
    context = Transcript(scan(spell([*TWO_CALLS, *answers]))).context()
    assert [record.id for record in context] == ["m1", "a", "b", "s1", "r0", "r2"]


def test_a_result_that_comes_before_its_calls_step_answers_nothing(spell: Callable[..., bytes]) -> None:
    chain = [*TWO_CALLS[:4], {"kind": "result", "id": "early", "for_": "a"}, TWO_CALLS[4]]
    transcript = Transcript(scan(spell(chain)))
    assert [call.id for call in transcript.waiting()] == ["a", "b"]
    assert [record.id for record in transcript.context()] == ["m1", "s1"]


def test_an_unpaired_context_asked_for_with_error_names_the_calls_and_results(spell: Callable[..., bytes]) -> None:
    chain = [*TWO_CALLS, {"kind": "result", "id": "r1", "for_": "a"}, {"kind": "result", "id": "r2", "for_": "zz"}]
    with pytest.raises(NotFound, match=r"calls=b results=r2\Z") as caught:
        Transcript(scan(spell(chain))).context(unpaired="error")
    assert caught.value.facts == {"calls": "b", "results": "r2"}


def test_a_wrong_word_for_unpaired_is_refused(spell: Callable[..., bytes]) -> None:
    with pytest.raises(ValueError, match="drop, error, keep"):
        Transcript(scan(spell(TWO_CALLS))).context(unpaired="Drop")  # type: ignore[arg-type]


def test_a_transcript_without_a_record_has_no_calls_and_no_tokens_and_refuses_the_rest() -> None:
    empty = Transcript()
    assert (len(empty), list(empty), empty.waiting(), empty.last_step(), empty.prompt_tokens()) == (0, [], [], None, 0)
    assert empty.conf() is None
    for ask in (empty.context, empty.status, lambda: empty.upto):
        with pytest.raises(ValueError, match="without a record"):
            ask()


def test_the_last_config_record_counts(spell: Callable[..., bytes]) -> None:
    first, second = Conf(model="a").encode(), Conf(model="b").encode()
    data = b"".join(encode(Header(n=n, kind="config"), body) for n, body in enumerate((first, second), 1))
    assert Transcript(scan(data)).conf() == Conf(model="b")
    assert Transcript(scan(spell(TWO_CALLS))).conf() is None


def test_a_config_record_that_is_none_says_where_it_stands(spell: Callable[..., bytes]) -> None:
    with pytest.raises(Corrupt, match="append another one") as caught:
        Transcript(scan(spell([{"kind": "start"}, {"kind": "config"}]))).conf()
    assert (caught.value.record, caught.value.offset) == (2, len(spell([{"kind": "start"}])))


def test_a_held_session_is_stepping_whatever_its_records_say(spell: Callable[..., bytes]) -> None:
    transcript = Transcript(scan(spell([*TWO_CALLS, {"kind": "error"}])))
    assert (transcript.status(), transcript.status(held=True)) == ("failed", "stepping")
    assert f"{transcript.status()}" == "failed"


def test_a_long_transcript_whose_steps_see_nothing_is_arranged_all_the_same(spell: Callable[..., Any]) -> None:
    chain = [{"kind": kind, "upto": 0} for _ in range(5_000) for kind in ("message", "step")]
    context = Transcript(scan(spell(chain))).context()
    assert [record.n for record in context] == [*range(2, 10_001, 2), *range(1, 10_000, 2)]
