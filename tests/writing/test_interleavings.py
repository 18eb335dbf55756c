"""Any order of remembering, consolidating, undoing, deciding, forgetting, restoring and syncing, in two clones, beside a model that a child could check."""
import pytest
import shutil
import tempfile
from calls import made
from datetime import timedelta
from helpers import git
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from pathlib import Path
from git_notes_consolidation.consolidation import (
    service as consolidation_service, stores as service)
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import EdgeType
from git_notes_consolidation.store import audit
from git_notes_consolidation.store.events import read_events
from git_notes_consolidation.store.git import MEM, open_repo, tips
from git_notes_consolidation.store.state import fold
from git_notes_consolidation.store.sync import sync
from git_notes_consolidation.writing.decide import BadFact
from git_notes_consolidation.writing.review import answer
from git_notes_consolidation.writing.write import open_writing
from git_notes_consolidation.consolidation import scan as consolidation_scan
from git_notes_consolidation.consolidation import status as consolidation_status


pytestmark = pytest.mark.slow

ANIMALS = "otter heron lynx badger marten kestrel viper toad bison raven".split()
THINGS = "turbine ledger harbour violin glacier lantern orchard saddle piston quarry".split()


def fact(n): return f"The {ANIMALS[n % 10]} {THINGS[n // 10]}"


class Model:
    "One clone: what was ever done, by the run that did it. What holds is worked out anew from all of it, each time."
    def __init__(self): self.log = {}  # run: (number, what, …)

    def add(self, run, *what): self.log[run] = (max((n for n, *_ in self.log.values()), default=0) + 1, *what)

    def live(self):
        "What was not taken back, in order."
        gone = set()
        for run, (n, what, *rest) in sorted(self.log.items(), key=lambda x: -x[1][0]):
            if what == "undo" and run not in gone: gone |= {t for t in rest[0] if self.log[t][0] < n}
        return [(run, *row) for run, row in sorted(self.log.items(), key=lambda x: (x[1][0], x[0])) if run not in gone]

    def state(self):
        "Texts that are shown; how often each was said again; who replaced whom; open questions."
        said, shown, again, over, asked = {}, {}, {}, {}, {}
        for _, _, what, *rest in self.live():
            if what == "write":
                i, text, old, question = rest
                said[i], shown[i] = text, True
                if old: over[old, i] = True
                if question: asked[question] = True
            elif what == "again": again[rest[0]] = again.get(rest[0], 0) + 1
            elif what in ("forget", "restore"): shown[rest[0]] = what == "restore"
            elif what == "answer":
                asked.pop(rest[0], None)
                if rest[1]: over[rest[0][1:]] = True
        return {i for i in said if shown[i]}, {i: n for i, n in again.items() if i in said}, set(over), set(asked)

    def tied(self):
        "Memories of which two clones said different things under one number."
        numbers = {}
        for _, n, what, *rest in self.live():
            if what in ("forget", "restore"): numbers.setdefault((n, rest[0]), set()).add(what)
        return {i for (_, i), whats in numbers.items() if len(whats) > 1}


class Interleavings(RuleBasedStateMachine):
    @initialize()
    def two_clones(self):
        self.home = Path(tempfile.mkdtemp())
        git(self.home, "init", "-q", "--bare", "hub")
        first = made(self.home / "a", [mem("Before it all", "An old note.", days_ago=400)])
        for key, value in (("user.name", "A"), ("user.email", "a@example.invalid")): git(first, "config", key, value)
        git(first, "remote", "add", "origin", self.home / "hub")
        git(first, "push", "-q", "origin", "main", "refs/notes/mem/*:refs/notes/mem/*")
        shutil.copytree(first, self.home / "b")
        self.clones, self.models, self.minute = [first, self.home / "b"], [Model(), Model()], 0
        self.writers = [open_writing(c, load_settings(env={}), clock=self.now) for c in self.clones]

    def now(self):
        self.minute += 1
        return SAMPLE_NOW + timedelta(minutes=self.minute)

    def pick(self, which, at):
        "Some memory of a clone, by its place."
        there = sorted(self.models[which].state()[0])
        return there[at % len(there)] if there else None

    @rule(which=st.integers(0, 1), n=st.integers(0, 99))
    def remember(self, which, n):
        model, text = self.models[which], fact(n)
        known = [r[3] for r in model.live() if r[2] == "write" and r[4] == text]
        shown, _, over, _ = model.state()
        current = [i for i in known if i in shown and i not in {old for old, _ in over}]
        r = self.writers[which].remember(text)
        assert r.operation == ("NOOP" if current else "ADD") and (not current or r.memory_id in current)
        model.add(r.run_id, *(("again", r.memory_id) if current else ("write", r.memory_id, text, None, None)))

    @rule(which=st.integers(0, 1), at=st.integers(0, 99), n=st.integers(0, 99))
    def replace(self, which, at, n):
        if not (old := self.pick(which, at)): return
        r = self.writers[which].remember(f"{fact(n)}, number {self.minute}", supersedes=[old])
        assert (r.operation, r.superseded_ids) == ("SUPERSEDE", (old,))
        self.models[which].add(r.run_id, "write", r.memory_id, f"{fact(n)}, number {self.minute}", old, None)

    @rule(which=st.integers(0, 1), at=st.integers(0, 99), n=st.integers(0, 99))
    def wonder(self, which, at, n):
        "A replacement that somebody has to confirm."
        if not (old := self.pick(which, at)): return
        there = {m.id: m for m in self.writers[which].held().view.scan.memories}
        text = f"{fact(n)} of the year {self.minute}\n\nReplaces “{there[old].summary}”."
        s = self.writers[which]
        r = open_writing(s.repo.path, load_settings({"write_confidence": 1.0}, env={}), clock=self.now).remember(text)
        q, = r.review or (None,)
        about = {q: (self.writers[which].held().view.state.reviews[q]["target"], r.memory_id)} if q else {}
        self.models[which].add(r.run_id, "write", r.memory_id, text, None, (q, *about[q]) if q else None)

    @rule(which=st.integers(0, 1), at=st.integers(0, 99), yes=st.booleans())
    def answer(self, which, at, yes):
        asked = sorted(self.models[which].state()[3])
        if not asked: return
        q, old, new = asked[at % len(asked)]
        shown = self.models[which].state()[0]
        try: r = answer(self.writers[which], q, "yes" if yes else "no")
        except BadFact: assert yes and not {old, new} <= shown; return  # What is forgotten replaces nothing
        self.models[which].add(r.run_id, "answer", (q, old, new), yes)

    @rule(which=st.integers(0, 1), at=st.integers(0, 99))
    def forget(self, which, at):
        if not (i := self.pick(which, at)): return
        self.models[which].add(self.writers[which].forget(i).run_id, "forget", i)

    @rule(which=st.integers(0, 1), at=st.integers(0, 99))
    def restore(self, which, at):
        shown = self.models[which].state()[0]
        hidden = sorted({r[3] for r in self.models[which].live() if r[2] == "write"} - shown)
        if hidden: self.models[which].add(self.writers[which].restore(hidden[at % len(hidden)]).run_id, "restore", hidden[at % len(hidden)])

    @rule(which=st.integers(0, 1), at=st.integers(0, 99))
    def undo(self, which, at):
        model, s = self.models[which], service.open_service(self.clones[which], clock=self.now)
        runs = [r[0] for r in model.live()]
        if not runs: return
        name, *targets = consolidation_status.undo(s, runs[at % len(runs)], confirmed=True)
        assert targets[0] == runs[at % len(runs)] and set(targets) <= set(runs)
        model.add(name, "undo", targets)

    @rule(which=st.integers(0, 1), full=st.booleans())
    def consolidate(self, which, full):
        before = self.models[which].state()
        claims = any(r[2] == "write" and "Replaces" in r[4] for r in self.models[which].live())  # The judge would answer these questions itself
        scope = consolidation_scan.Scope(strategies=frozenset({"summarize", "tier", "dedupe"} if claims else ()))
        r = consolidation_service.run(service.open_service(self.clones[which], load_settings({"max_change": 1.0}, env={}), clock=self.now), full=full,
                                      scope=scope)
        if r.run_id: self.models[which].add(r.run_id, "batch")
        assert self.models[which].state() == before and not r.errors  # It moves tiers and writes summaries; the rest is for the invariant

    @rule()
    def sync(self):
        "Ours as `gnc sync` does it, the plugin's notes as git unites them."
        for which in (0, 1, 0):
            repo = open_repo(self.clones[which])
            git(repo.path, "fetch", "-q", "origin", "+refs/notes/mem/*:refs/notes/theirs/*")
            for ref in tips(repo, "refs/notes/theirs/"):
                git(repo.path, "notes", f"--ref={MEM}{ref.rsplit('/', 1)[1]}", "merge", "-q", "-s", "union", ref)
            git(repo.path, "push", "-q", "origin", "refs/notes/mem/*:refs/notes/mem/*")
            sync(repo)
        self.models[0].log |= self.models[1].log
        self.models[1].log |= self.models[0].log
        assert fold(read_events(open_repo(self.clones[0]))) == fold(read_events(open_repo(self.clones[1])))

    @invariant()
    def is_as_the_model_says(self):
        for clone, model, w in zip(self.clones, self.models, self.writers):
            v = consolidation_scan.view(open_repo(clone))
            shown, again, over, asked = model.state()
            mine = {i for r in model.log.values() if r[1] == "write" for i in [r[2]]}
            there = {m.id: m for m in v.scan.memories}
            assert mine <= set(there)  # Every text that was ever written is in the notes
            assert {i for i in mine if there[i].status != "tombstone"} - model.tied() == shown - model.tied()
            assert {(e.target_id, e.source_id) for e in v.state.edges.values() if e.edge_type == EdgeType.SUPERSEDES} == over
            assert {i: n for i, (n, _) in v.state.accesses.items()} == {i: n for i, n in again.items()}
            extra = {i: r["reason"] for i, r in v.state.reviews.items() if i not in {q for q, *_ in asked}}
            assert {q for q, *_ in asked} <= set(v.state.reviews) and all(why.startswith("said again after it was replaced") for why in extra.values()), extra
            kept = w.held().view
            assert (kept.state, {m.id: m.status for m in kept.scan.memories}) == (v.state, {m.id: m.status for m in v.scan.memories})
            assert [str(f) for f in audit.audit(clone).findings if f.level == "broken"] == []

    def teardown(self):
        if hasattr(self, "home"): shutil.rmtree(self.home, ignore_errors=True)


def test_any_interleaving_is_as_the_model_says():
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    phases = [Phase.explicit, Phase.reuse, Phase.generate]  # To make a failure small takes minutes; add Phase.shrink to see one
    run_state_machine_as_test(Interleavings, settings=settings(
        max_examples=3, stateful_step_count=14, deadline=None, phases=phases, suppress_health_check=slow))
