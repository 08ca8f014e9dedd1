"""Each of the protocol's rules, taken away, beside the scenario that shows why it is there."""

from __future__ import annotations

from statestore_fsspec import _check, _copying, _finding, _layout, _upkeep, _walk
from statestore_fsspec._finding import Finder
from statestore_fsspec._steps import Remove
from statestore_fsspec._writing import Writer
from tests.object_storage.breaks import Broken, Edit, fresh, narrowest, read_through, singles_first
from tests.object_storage.scene import DOUBLED, LATE, LOST, RETRIED, Scenario

__all__ = ["BROKEN", "HARMLESS"]


BEFORE = "create ab, append c | append d, merge 2, collect"  # a tail that is then merged away
STUCK = frozenset({LATE})


def _scene(*, faults: int = 0, ticks: tuple[int, ...] = (3,), page: int = 9, **scripts: str) -> Scenario:
    return Scenario(scripts, ticks=ticks, faults=faults, kinds=STUCK, page=page)


BROKEN = (
    Broken(
        1,
        "a deletion creates a head, and removes none",
        (
            Edit(
                Writer._bury,
                "outcome = yield Put(key, layout.spell_dead(dead))",
                "yield Remove((layout.head_key(log, generation - 1),)); outcome = Outcome.CREATED",
                {"Remove": Remove},
            ),
        ),
        Scenario({"creator": "create a", "deleter": "delete"}, faults=1, kinds=frozenset({DOUBLED}), passing=True),
    ),
    Broken(
        1,
        "a head names a run only when all its bytes are there",
        (Edit(Writer.create, "if outcome is Outcome.CREATED:", "if outcome is not Outcome.REFUSED:"),),
        _scene(faults=1, creator="create a"),
    ),
    Broken(
        1,
        "the name of a run is random",
        (Edit(_layout.new_run, "{token}", "{'0' * 16}"),),
        _scene(
            ticks=(),
            page=9,
            copier="create a, append b, merge 2 | copy y",
            other="w.create c, w.append d, w.merge 2 | w.copy y",
        ),
    ),
    Broken(
        1,
        "an ambiguous head is read, not believed to be there",
        (Edit(Writer.publish, "if outcome is Outcome.CREATED:", "if outcome is not Outcome.REFUSED:"),),
        _scene(faults=1, creator="create a"),
    ),
    Broken(
        1,
        "a head that is refused is read: it may be one's own",
        (Edit(Writer.publish, "return layout.read_live(raw, key) == run", "return False"),),
        Scenario({"creator": "create a |", "copier": "copy y"}, faults=1, kinds=frozenset({RETRIED})),
    ),
    Broken(
        2,
        "the largest key does not tell the tail",
        (
            Edit(
                _walk.walk,
                "end = used[-1].stop if used else 0",
                "top = max(singles.values(), key=_start, default=None)\n"
                "used = tuple(s for s in used if top is None or s.stop <= top.stop)\n"
                "end = used[-1].stop if used else 0",
            ),
        ),
        _scene(writer="create a | append b, append c, append d, merge 2, collect, read", late="tail | append z"),
    ),
    Broken(
        2,
        "merges come before singles",
        (read_through(singles_first),),
        _scene(writer="create a, append b | append c, append d, merge 2, collect, read", late="tail | append z"),
    ),
    Broken(
        2,
        "of two merges the wider one counts",
        (read_through(narrowest),),
        _scene(page=2, writer="create a, append b, append c, append d, merge 2, merge 4 | collect", reader="tail"),
    ),
    Broken(
        2,
        "a gap means: list again",
        (Edit(Finder.find, "failure = gap.failure", "raise gap.failure"),),
        _scene(page=2, writer="create a, append b, append c, append d | merge 2, collect", reader="read"),
    ),
    Broken(
        2,
        "paging goes on to where the merges end",
        (Edit(_finding._floor, "if not more:", "if not more or any(segment.merged for segment in segments):"),),
        _scene(page=2, ticks=(), writer="create a, append b, append c, append d, append e | merge 2", reader="read"),
    ),
    Broken(
        3,
        "an append goes out only at a tail that was seen",
        (Edit(Writer.append, "self._proofs.get(log)", "_Proof(at.run, at.size, (yield NOW))"),),
        _scene(writer=BEFORE, late="tail | append z"),
    ),
    Broken(
        3,
        "a success found by comparing bytes proves no tail",
        (
            Edit(
                Writer.append,
                "if there:",
                "if there:\n    self._proofs[log] = _Proof(at.run, at.size + len(data), found.sent)",
            ),
        ),
        Scenario(
            {"writer": "create ab | tail, append d, merge 2, collect", "late": "tail | append c, append e"},
            faults=1,
            kinds=frozenset({LOST}),
            ticks=(3,),
        ),
    ),
    Broken(
        4,
        "what a refused append left is not looked up by its name",
        (
            Edit(
                Writer.append,
                "tried, proof = True, None",
                "tried, proof = True, None\n"
                "(raw,) = yield Fetch((Span(layout.single_key(log, at.run, at.size)),))\n"
                "if raw == layout.segment_object(data): return Tail(at.size + len(data), at.run)",
            ),
        ),
        _scene(faults=1, writer=BEFORE, late="tail | append z"),
    ),
    Broken(
        4,
        "a conflict is not believed",
        (
            Edit(
                Writer.append,
                "tried, proof = True, None",
                "tried, proof = True, None\n"
                "if outcome is Outcome.REFUSED: raise Conflict('', expected=at, found=Tail(at.size + 1, at.run))",
            ),
        ),
        Scenario({"writer": "create a | append b"}, faults=1, kinds=frozenset({RETRIED})),
    ),
    Broken(
        4,
        "a time-out is not taken for success",
        (Edit(Writer.append, "outcome is Outcome.CREATED and", "outcome is not Outcome.REFUSED and"),),
        _scene(faults=1, writer="create a | append b"),
    ),
    Broken(
        4,
        "an unknown outcome does not free the caller from the run it named",
        (
            Edit(
                Writer.append,
                "yield from self._refuse_other_run(log, at, found, tried)",
                "if found.run is None: yield from self._refuse_other_run(log, at, found, tried)\n"
                "at = Tail(at.size, found.run)",
            ),
        ),
        _scene(faults=1, writer="create a | append b", deleter="delete, create c"),
    ),
    Broken(
        4,
        "an append that was under way in a run that died may have had its effect",
        (Edit(Writer._refuse_other_run, "if tried:", "if tried and False:"),),
        Scenario({"writer": "create a | append b", "deleter": "delete"}, faults=1, kinds=frozenset({LOST})),
    ),
    Broken(
        5,
        "a deletion begins with a seal",
        (
            Edit(
                Writer.delete,
                "outcome = yield Put(layout.single_key(log, dead.run, dead.end), layout.seal_object(token))",
                "outcome = Outcome.CREATED",
            ),
        ),
        _scene(ticks=(), writer="create a | append b", deleter="delete"),
    ),
    Broken(
        5,
        "a seal counts only at the tail of a fresh walk",
        (
            Edit(
                Writer.delete,
                "tried = dead.run",
                "tried = dead.run\n"
                "(raw,) = yield Fetch((Span(layout.single_key(log, dead.run, dead.end)),))\n"
                "if raw == layout.seal_object(token): return (yield from self._bury(log, dead))",
            ),
        ),
        _scene(faults=1, writer=BEFORE, deleter="tail | delete at"),
    ),
    Broken(
        5,
        "whoever is refused by a seal completes the deletion before it answers",
        (Edit(Writer._settle, "yield from self._complete(log, found)", "pass"),),
        _scene(ticks=(), writer="create a | append b", deleter="delete"),
    ),
    Broken(
        5,
        "whoever creates over a seal completes the deletion first",
        (Edit(Writer.vacancy, "yield from self._complete(log, found)", "pass"),),
        _scene(ticks=(), writer="create a |", deleter="delete", creator="create b, read"),
    ),
    Broken(
        5,
        "a deleter knows by its token that it was the one",
        (Edit(Writer.delete, "if winner == token:", "if True:"),),
        _scene(ticks=(), writer="create a |", deleter="delete", other="delete"),
    ),
    Broken(
        6,
        "a writer of another run is refused, even at the same size",
        (
            Edit(
                Writer.append,
                "found = yield from self.finder.find(log)",
                "found = yield from self.finder.find(log)\n"
                "if found.run and found.walk.size == at.size: at = found.tail\n",
            ),
        ),
        _scene(ticks=(), writer="create a | append b", deleter="delete, create c"),
    ),
    Broken(
        6,
        "a run that is known is no reason not to list the heads",
        (
            Edit(
                Finder.generation,
                "generation = 0",
                "if log in self._runs: return self._runs[log][0]\ngeneration = 0",
            ),
        ),
        _scene(ticks=(), writer="create a | delete", reader="read | read"),
    ),
    Broken(
        7,
        "where merges begin and end does not depend on how much there is",
        (
            Edit(
                _upkeep.plan_merges,
                "large = not segment.merged and segment.stop - segment.start > layout.LARGEST",
                "large = segment.merged",
                also={
                    "(large or segment.start // window != group[0].start // window)": "large",
                    "if group and size // window != group[0].start // window:": "if group:",
                },
            ),
        ),
        _scene(writer="create a, append b | append c, merge 9", merger="merge 9, tail, append d, merge 9, collect"),
    ),
    Broken(
        7,
        "the sizes of merges are the root's, not each client's",
        (),
        _scene(writer="create a, append b, append c, append d | merge 2, collect", merger="merge 3"),
        "No code is changed here: the merger has another size than the writer has.",
    ),
    Broken(
        8,
        "a collector waits for the grace period",
        (Edit(_upkeep.collect, "now - item.since > writer.finder.grace", "True"),),
        _scene(ticks=(), late="create ab, append c | append z", writer="tail | append d, merge 2, collect"),
    ),
    Broken(
        8,
        "the grace period begins when an object is superseded, not when it is made",
        (Edit(_upkeep._merged_away, "cover.modified", "segment.modified"),),
        _scene(late="create a | append z", writer="tail, append b | merge 2, collect", reader="read"),
    ),
    Broken(
        8,
        "a run whose generation has no head is left alone, however old",
        (
            Edit(
                _upkeep.spare_objects,
                "continue",
                "spare += (_spare(segment, segment.modified, '') for segment in runs[run]); continue",
            ),
        ),
        _scene(creator="create a", collector="collect"),
    ),
    Broken(
        8,
        "a writer whose listing is old lists again before it acknowledges",
        (fresh("append"),),
        _scene(late="create ab, append c | append z", writer="tail | append d, merge 2, collect"),
    ),
    Broken(
        8,
        "so does a writer who compares bytes",
        (fresh("fetch_fresh", "_holds"),),
        _scene(faults=1, writer=BEFORE, late="tail | append z"),
    ),
    Broken(
        8,
        "so does a deleter",
        (fresh("delete"),),
        _scene(writer=BEFORE, deleter="tail | delete at"),
    ),
    Broken(
        8,
        "so does a reader",
        (fresh("fetch_fresh", "_try"),),
        _scene(late="create a | append z", writer="tail, append b | merge 2, collect", reader="read"),
    ),
    Broken(
        8,
        "so does a copier",
        (fresh("fetch_fresh", "_fill"),),
        _scene(
            late="create ab | append z",
            writer="tail, append c, append d | merge 2, collect",
            copier="copy y 3",
        ),
    ),
    Broken(
        8,
        "so does whoever looks for the tail",
        (fresh("find"),),
        _scene(writer="create b, delete, collect", creator="create a", reader="tail"),
    ),
    Broken(
        8,
        "so does whoever verifies",
        (fresh("check"),),
        _scene(page=1, writer="create a, append b, append c | merge 2, collect", verifier="verify"),
    ),
    Broken(
        8,
        "what seems to be wrong is told only when it is still there in a second listing",
        (Edit(_check.check, "(yield from _confirm(finder, log, live, suspicions))", "True"),),
        _scene(late="create a | append z", writer="tail, append b, merge 2 | collect", verifier="verify"),
    ),
    Broken(
        8,
        "what came late inside a merge need not hold what the merge does",
        (Edit(_check._suspect, "late = came_late(segments)", "late = set()"),),
        _scene(late="create a | append z", writer="tail, append b, merge 2 | collect, verify"),
    ),
    Broken(
        8,
        "of what lies inside a merge appends go first",
        (Edit(_upkeep._merged_away, "not segment.merged)", "segment.merged)"),),
        _scene(
            ticks=(3, 3),
            late="create a | append z, verify",
            writer="tail, append b, append cd, merge 2 | collect, merge 4, collect",
        ),
    ),
    Broken(
        8,
        "what came late goes with the merge before it, even where it reaches beyond",
        (Edit(_upkeep._merged_away, " or segment.key in late", ""),),
        _scene(
            ticks=(3, 3),
            late="create a | append zzzz",
            writer="tail, append b, append cd, append e, merge 2 | collect, merge 4, collect, verify",
        ),
    ),
    Broken(
        8,
        "only merges are copied by the storage, since their keys say what they hold",
        (
            Edit(
                _copying._fill,
                "if first is last and last.merged and last.stop <= end:",
                "if first is last and last.stop <= end:",
                also={
                    "layout.merge_key(target, run, first.start, first.stop)": (
                        "layout.single_key(target, run, first.start)"
                    )
                },
            ),
        ),
        Scenario(
            {
                "copier": "create ab | copy y 3, append z",
                "writer": "tail, append c, append d | merge 4, collect",
            },
            faults=1,
            kinds=frozenset({DOUBLED}),
            ticks=(3,),
            page=9,
        ),
    ),
    Broken(
        1,
        "one run alone on a page is not the head's where the listing goes on",
        (Edit(Finder._survey, "if not page.more and len(segments) == 1:", "if len(segments) == 1:"),),
        _scene(ticks=(), page=1, first="create a", second="create b", reader="read"),
    ),
)
HARMLESS = (
    Broken(
        2,
        "an object behind the end means: list again",
        (Edit(_walk.walk, "beyond=last if last is not None and last.start > end else None", "beyond=None"),),
        _scene(page=2, writer="create a, append b, append c, append d | merge 2, collect", reader="read, tail"),
        "A listing that shows a gap is too old to be believed in any case. The check finds objects that somebody "
        "else removed, and says so instead of showing a shorter log.",
    ),
    Broken(
        8,
        "the seal goes last",
        (
            Edit(
                _upkeep._spare,
                "2 if segment.seal else int(not first)",
                "0 if segment.seal else 2 - int(not first)",
            ),
        ),
        _scene(faults=1, late="create a | append z", deleter="delete, collect"),
        "Whoever meets what is left of a deleted log has an old listing, and lists the heads again before it "
        "acknowledges anything. With the seal last, fewer late requests leave garbage.",
    ),
    Broken(
        8,
        "a listing is believed for half the grace period, not all of it",
        (Edit(Finder.is_fresh, "self.grace / 2", "self.grace"),),
        _scene(ticks=(2, 1), late="create ab, append c | append z", writer="tail | append d, merge 2, collect"),
        "The other half is the margin for the time that an upload takes and for the error of clocks, which the model "
        "does not have.",
    ),
    Broken(
        1,
        "a creation that starts over takes a new run",
        (Edit(_layout.new_run, "{token}", "{token[0] * 16}"),),
        _scene(faults=1, ticks=(), creator="create a, append b, delete, create c", other="create d"),
        "An exclusive create keeps two attempts of one client apart. But a client could not start over at all while "
        "its first request is stuck; and that runs of two clients differ is needed, as shown above.",
    ),
)
