"""A project's year in an hour: captures, recalls, syncs, decisions, undos and a language model that fails, and after each step what must hold.

    python benchmarks/soak.py [--runs 1000] [--memories 1000] [--clones 3] [--every 50] [--seed 9] [--json FILE]

Three clones of one hub live side by side. A step is the year's next few hours in one of them: memories are written as the plugin writes them, some are
asked for, forgotten, restored, questioned and answered, and then a run consolidates. Every twentieth run has a language model that answers nonsense, every
fortieth step has a run, a sync and a write in one clone at once. After each step the cheap invariants are looked at, every `--every` steps the deep ones.
A violation is printed, counted, and makes the command fail.
"""
import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "tests")]

from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from generate import generate
from helpers import git
from llm_servers import BAD_REPLIES, FaultyServer, sensible
from statistics import median
from git_notes_consolidation.consolidation import (
    plan as consolidation_plan, scan as consolidation_scan, service, status as consolidation_status, stores as consolidation_stores)
from git_notes_consolidation.consolidation.stores import SummaryStore
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW
from git_notes_consolidation.core.models import MemoryTier
from git_notes_consolidation.recall.service import open_recall
from git_notes_consolidation.session.context import SessionStartSummaryInjector, SummaryInjectionConfig
from git_notes_consolidation.store import audit, cache as index
from git_notes_consolidation.store.events import Locked, REFS, clone_id, read_events
from git_notes_consolidation.store.git import MEM, RepoError, open_repo, tips
from git_notes_consolidation.store.reader import note_text
from git_notes_consolidation.store.sync import sync
from git_notes_consolidation.writing.review import answer
from git_notes_consolidation.writing.write import open_writing

YEAR = timedelta(days=365)
START = SAMPLE_NOW - YEAR
WORDS = "queue worker retry cache index mail report billing search import export database scheduler ticket build".split()
FAILS = tuple(f for f in BAD_REPLIES if f not in ("500", "dropped"))  # Those two are asked again after a pause, which a soak has no time for


class Clone:
    "One person's clone, and what must be in it."
    def __init__(self, home, hub, name):
        self.home, self.name, self.known = home, name, set()
        git(home.parent, "init", "-q", "--template=", "-b", name, home)
        for key, value in (("user.name", name), ("user.email", f"{name}@example.invalid"), ("gc.auto", "0"), ("notes.displayRef", "")):
            git(home, "config", key, value)
        git(home, "remote", "add", "origin", hub)
        git(home, "commit", "-q", "--allow-empty", "--message=Begun", date=START.isoformat())
        self.day, self.now = "", START
        self.writer = open_writing(home, load_settings(env={}), clock=lambda: self.now)
        self.recall = open_recall(home, load_settings(env={}), clock=lambda: self.now)

    def service(self, env=None, **given):
        s = consolidation_stores.open_service(self.home, load_settings({"max_change": 0.5, **given}, env=env or {}))
        return service.replace(s, clock=lambda: self.now)

    def view(self): return consolidation_scan.view(open_repo(self.home))

    def capture(self, m):
        "As /memory:capture does: git appends to the note of the commit that is worked on."
        if self.day != (day := f"{self.now:%Y-%m-%d}"):
            git(self.home, "commit", "-q", "--allow-empty", f"--message=Work of {day}", date=self.now.isoformat())
            self.day = day
        git(self.home, "notes", f"--ref={MEM}{m.namespace}", "append", "-F", "-", "HEAD", input=note_text(m))
        self.known.add(m.id)

    def meet(self):
        "The plugin's notes as git unites them, ours as `gnc sync` does."
        git(self.home, "fetch", "-q", "--no-auto-gc", "origin", "+refs/notes/mem/*:refs/notes/theirs/*")
        mine = tips(open_repo(self.home), MEM)
        for ref, tip in tips(open_repo(self.home), "refs/notes/theirs/").items():
            own = MEM + ref.rsplit("/", 1)[1]
            if own not in mine: git(self.home, "update-ref", own, tip)
            elif mine[own] != tip: git(self.home, "notes", f"--ref={own}", "merge", "-q", "-s", "union", ref)
        if tips(open_repo(self.home), MEM): git(self.home, "push", "-q", "origin", "refs/notes/mem/*:refs/notes/mem/*")
        sync(open_repo(self.home))


class Soak:
    def __init__(self, place, runs, memories, clones=3, every=50, seed=9, say=print):
        self.place, self.runs, self.every, self.rng, self.say = place, runs, every, random.Random(seed), say
        git(place, "init", "-q", "--bare", "--template=", "hub")
        self.clones = [Clone(place / name, place / "hub", name) for name in "abcdefgh"[:clones]]
        self.todo = generate(memories)
        self.moments = {"at once": 40, "undo": 23, "model": 20}  # Every how many steps
        self.seconds, self.violations, self.did, self.curve, self.hub = [], [], Counter(), [], set()
        self.server = FaultyServer(rate=0.3, faults=FAILS, brain=sensible(lambda newer, older: "supersede" if newer[:20] == older[:20] else "coexist"))

    def wrong(self, n, text):
        self.violations.append({"step": n, "what": text})
        self.say(f"! step {n}: {text}", flush=True)

    def year(self):
        "Every step, and what came of it."
        with self.server:
            for n in range(1, self.runs + 1):
                for work in (self.step, *([self.look_deep] if n % self.every == 0 or n == self.runs else [])):
                    try: work(n)
                    except Exception as e: self.wrong(n, f"{type(e).__name__}: {e} ({traceback.extract_tb(e.__traceback__)[-1]})")
        return self.report()

    def step(self, n):
        c, r = self.rng.choice(self.clones), self.rng
        now = START + YEAR * n / self.runs
        for x in self.clones: x.now = now
        while self.todo and self.todo[0].timestamp <= now: c.capture(self.todo.pop(0)); self.did["captured"] += 1
        for _ in range(r.randint(0, 2)): self.ask(c)
        if r.random() < 0.25: self.decide(c)
        if n % self.moments["at once"] == 0: self.all_at_once(n, c)
        if n % 7 == 0: self.meet(c)
        self.consolidate(n, c)
        if n % self.moments["undo"] == 0: self.undo(n, c)
        self.look(n, c)

    def meet(self, c):
        "Whoever meets the hub knows what it knows, and it what they know."
        c.meet()
        self.hub |= c.known
        c.known |= self.hub
        self.did["synced"] += 1

    def ask(self, c):
        c.recall.session = f"s{self.rng.randrange(10**9)}"
        c.recall.search(" ".join(self.rng.sample(WORDS, 2)), limit=5)
        self.did["recalled"] += 1

    def decide(self, c):
        "Somebody forgets, restores, changes, writes or answers."
        v, r = c.view(), self.rng
        there = sorted(m.id for m in v.scan.memories)
        if not there: return
        what, i = r.choice(("forget", "restore", "update", "remember", "answer", "answer")), r.choice(there)
        try:
            if what == "forget": c.writer.forget(i)
            elif what == "restore": c.writer.restore(r.choice([m.id for m in v.scan.memories if m.status == "tombstone"] or [i]))
            elif what == "update": c.writer.update(i, importance=r.randint(0, 10) / 10)
            elif what == "remember": c.known.add(c.writer.remember(f"The {r.choice(WORDS)} has {r.randint(2, 99)} {r.choice(WORDS)}s in {c.now:%B}").memory_id)
            elif v.state.reviews: answer(c.writer, as_=r.choice(("yes", "no")), id=r.choice(sorted(v.state.reviews)))
            else: return
            self.did[what] += 1
        except RepoError: self.did["refused"] += 1  # One that makes no sense here: what is forgotten already, what no longer stands

    def all_at_once(self, n, c):
        "A run, a second run, a sync and a write in one clone, and a run in another."
        other = next(x for x in self.clones if x is not c)
        def fact(): c.known.add(c.writer.remember(f"Step {n} of {c.name}: {self.rng.choice(WORDS)} {n * 7919}").memory_id)
        jobs = [lambda: service.run(c.service(), c.now), lambda: service.run(c.service(), c.now), fact, lambda: sync(open_repo(c.home)),
                lambda: service.run(other.service(), other.now)]
        with ThreadPoolExecutor(len(jobs)) as pool:
            for job in [pool.submit(j) for j in jobs]:
                try: job.result()
                except Locked: self.did["locked out"] += 1
                except RepoError as e: self.wrong(n, f"at once: {type(e).__name__}: {e}")
        self.did["at once"] += 1

    def consolidate(self, n, c):
        there = {"MEMORY_CONSOLIDATION_LLM_BASE_URL": self.server.url}
        model = {"llm_provider": "lmstudio", "llm_timeout_s": 5.0, "env": there} if n % self.moments["model"] == 0 else {}
        begin, used = time.perf_counter(), cpu()
        try: result = service.run(c.service(**model), c.now, full=n % 97 == 0)
        except consolidation_plan.Guard: self.did["stopped by the guard"] += 1; return
        self.seconds.append((time.perf_counter() - begin, cpu() - used))
        self.did["runs with a model" if model else "runs without"] += 1
        if result.errors: self.wrong(n, f"errors of a run: {result.errors[:2]}")

    def undo(self, n, c):
        v = c.view()
        live = [i for i, x in v.state.runs.items() if i not in v.state.undone and x["kind"] == "run" and "operations" not in x.get("counts", {})]
        if not live: return
        try: consolidation_status.undo(c.service(), max(live, key=lambda i: v.state.runs[i]["seq"]), c.now, confirmed=True)
        except RepoError as e: self.wrong(n, f"undo: {e}"); return
        self.did["undone"] += 1

    # What must hold

    def look(self, n, c):
        "Cheap, after each step."
        v = c.view()
        there, ever = {m.id for m in v.scan.memories}, set().union(*(x.known for x in self.clones))  # `gnc sync` alone brings what is said of them first
        if lost := c.known - there: self.wrong(n, f"{len(lost)} memories are lost in {c.name}: {sorted(lost)[:3]}")
        if v.scan.problems or v.events.problems: self.wrong(n, f"cannot be read: {v.warnings[:2]}")
        for i, x in v.state.summaries.items():
            if strange := set(x.source_memory_ids) - ever: self.wrong(n, f"{i} is made of {sorted(strange)[:2]}, which nobody wrote")
        if bad := [i for i, d in v.state.tiers.items() if d["tier"] not in {t.value for t in MemoryTier}]: self.wrong(n, f"tiers: {bad[:3]}")
        if left := [*(open_repo(c.home).common_dir / "refs" / "notes").rglob("*.lock")]: self.wrong(n, f"locks are left: {left[:2]}")
        block = SessionStartSummaryInjector(SummaryStore(open_repo(c.home)), config=SummaryInjectionConfig(token_budget=1000)).inject_summaries("")
        if block.tokens_used > 1000: self.wrong(n, f"a block of {block.tokens_used} tokens")

    def look_deep(self, n):
        "All clones meet, say the same, and are sound; each cache can go."
        for c in (*self.clones, *self.clones[:-1]): self.meet(c)
        views = [c.view() for c in self.clones]
        said = [(v.state, {m.id: m for m in v.scan.memories}) for v in views]
        if any(s != said[0] for s in said[1:]): self.wrong(n, "the clones do not agree after they met")
        try: service.run(self.clones[0].service(), self.clones[0].now)  # What two clones found apart, a repeat of a repeat say, the next run puts right
        except consolidation_plan.Guard: self.did["stopped by the guard"] += 1
        for c in (*self.clones, *self.clones[:-1]): self.meet(c)
        for c in self.clones:
            if bad := [str(f) for f in audit.audit(c.home).findings if f.level == "broken"]: self.wrong(n, f"audit of {c.name}: {bad[:3]}")
        c = self.clones[n // self.every % len(self.clones)]
        try: service.run(c.service(), c.now)
        except consolidation_plan.Guard: self.did["stopped by the guard"] += 1
        else:
            if again := service.run(c.service(), c.now).changed: self.wrong(n, f"a second run finds something to do: {again}")
        self.rebuilt(n, c)
        self.measure(n)

    def rebuilt(self, n, c):
        "What is answered and planned without a cache is what was with it."
        def answers():
            found = open_recall(c.home, load_settings(env={}), clock=lambda: c.now).search("worker retry queue", limit=20, count=False)
            with closing(index.open_index(open_repo(c.home))) as conn:
                rows = {t: conn.execute(f"SELECT * FROM {t} ORDER BY id").fetchall() for t in ("memories", "mem_summaries", "mem_edges", "operations")}
            return [r.id for r in found], rows
        service.run(c.service(), c.now)
        with closing(index.open_index(open_repo(c.home))) as conn: service.refresh_tables(conn, c.view(), c.service().settings, c.now)
        was = answers()
        waiting = self.journal(c)
        shutil.rmtree(c.home / ".memory")
        if waiting: self.wrong(n, f"accesses wait after a run: {waiting}")
        again = service.run(c.service(), c.now)
        if again.changed: self.wrong(n, f"without its cache a run finds something to do: {again.to_dict()}")
        with closing(index.open_index(open_repo(c.home))) as conn: service.refresh_tables(conn, c.view(), c.service().settings, c.now)
        for kind, a, b in zip(("answers", "tables"), was, answers()):
            if a != b: self.wrong(n, f"a rebuilt cache has other {kind}")

    def journal(self, c):
        with closing(index.open_index(open_repo(c.home))) as conn:
            return len(index.unflushed(conn, index.access_counts(read_events(open_repo(c.home)), clone_id(open_repo(c.home)))))

    # How much it takes

    def measure(self, n):
        c = self.clones[0]
        git(c.home, "gc", "-q", "--prune=now")
        v, ours = c.view(), self.place / "ours"
        shutil.rmtree(ours, ignore_errors=True)
        git(self.place, "init", "-q", "--bare", "--template=", ours)
        git(ours, "fetch", "-q", c.home, *(f"{r}:{r}" for r in REFS.values() if r in v.events.tips))
        git(ours, "gc", "-q", "--prune=now")
        touched = changed(v.events)
        row = {"runs": n, "day": round(365 * n / self.runs), "memories": len(v.scan.memories), "records": len(v.events.records),
               "repository_bytes": pack(c.home), "own_refs_bytes": pack(ours), "changed_memories": touched,
               "bytes_per_changed_memory_per_run": round(pack(ours) / max(1, touched), 1), **middle(self.seconds[-self.every:]),
               "violations": len(self.violations)}
        self.curve.append(row)
        self.say(f"| {' | '.join(f'{x:,}' for x in row.values())} |", flush=True)

    def report(self):
        return {"steps": self.runs, "clones": len(self.clones), "did": dict(sorted(self.did.items())), "last": self.curve[-1], "curve": self.curve,
                "model_replies": dict(sorted(self.server.sent.items())), "violations": self.violations}


def cpu(): return sum(os.times()[:4])


def middle(spent):
    "Medians of wall and CPU seconds; children count."
    return {k: round(median(x), 3) for k, x in zip(("wall_seconds_per_run", "cpu_seconds_per_run"), zip(*spent))}


def pack(repo):
    "Bytes of a repository's objects."
    rows = dict(line.split(": ") for line in git(repo, "count-objects", "-v").splitlines())
    return 1024 * (int(rows["size-pack"]) + int(rows["size"]))


def changed(events):
    "How many memories each write changed, added up over all writes."
    about = defaultdict(set)
    for _, _, r in events.records:
        named = [r.get(k) for k in ("memory", "source", "target", "subject")] + list(r.get("value", {}).get("source_memory_ids", ())
                                                                                    if isinstance(r.get("value"), dict) else ())
        about[r.get("run") or (r.get("clone"), r["seq"])].update(str(i).partition("/")[0] for i in named if str(i).startswith("mem_"))
    return sum(map(len, about.values()))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("runs", 1000), ("memories", 1000), ("clones", 3), ("every", 50), ("seed", 9)):
        p.add_argument(f"--{name}", type=int, default=default)
    p.add_argument("--json", metavar="FILE", help="write the figures there too")
    a = p.parse_args()
    for k in [k for k in os.environ if k.startswith(("GIT_", "MEMORY_", "GNC_", "HOOK_", "SUBCOG_"))]: del os.environ[k]
    os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "TZ": "UTC"}
    os.environ |= {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "soak"), ("EMAIL", "soak@example.org"))}
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as tmp:
        names = ("runs", "day", "memories", "records", "repository bytes", "bytes of our refs", "changed memories", "bytes each",
                 "wall s a run", "CPU s a run", "violations")
        print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}", flush=True)
        report = Soak(Path(tmp), a.runs, a.memories, a.clones, a.every, a.seed).year()
    report |= {"seed": a.seed, "memories_written": a.memories, "wall_seconds": round(time.perf_counter() - begin)}
    if a.json: Path(a.json).write_text(json.dumps(report, indent=1) + "\n")
    print("\n" + json.dumps({k: v for k, v in report.items() if k not in ("curve",)}, indent=1))
    return 1 if report["violations"] else 0


if __name__ == "__main__": sys.exit(main())
