"""Drafts of summaries that are kept elsewhere, true ones and ones with a planted fault: what of them comes through, by words alone and read a second time.

What the second reading said is recorded, of agents who saw its requests and nothing else: no product's model.
"""
import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from git_notes_consolidation.consolidation.pipeline import last_words
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.llm.client import Job
from git_notes_consolidation.llm.summary_prompts import summary_request
from git_notes_consolidation.summaries.extraction import summarize_cluster
from git_notes_consolidation.summaries.generation import check, drafted_summary
from git_notes_consolidation.supersession.editions import says_resolved
from git_notes_consolidation.summaries.verification import parts

HEARD = Path(__file__).parent.parent / "fixtures" / "capable_reader_drafts.jsonl"


class Second(dict):
    "What a second reading says of any sentence: supported, if it is not among those that are not."
    def __init__(self, unsupported): super().__init__({digest: "the memories do not say so" for digest in unsupported})
    def get(self, sentence, default=None): return super().get(sha256(sentence.encode()).hexdigest()[:12], "")


def memory(row): return mem(row["summary"], row["body"], now=datetime.fromisoformat(row["at"]), namespace=row["namespace"])


def cluster_of(row):
    "The job and the quoted summary."
    all_ = {m["k"]: memory(m) for m in row["memories"]}
    members = tuple(all_[k] for k in row["members"])
    outdated, amended = ({all_[k].id: all_[by] for k, by in row[name].items()} for name in ("outdated", "amended"))
    current = sorted((m for m in members if m.id not in outdated), key=lambda m: (m.event_time, m.id))
    earlier = tuple(m.id for m in current if m not in last_words(current) or says_resolved(m))
    return Job(members, outdated, amended), summarize_cluster(members, outdated, coherence=0.5, created_at=datetime(2026, 12, 1, tzinfo=UTC), amended=amended,
                                                              earlier=earlier)


def told(summary): return " | ".join(" ".join(t.lower().split()) for name, t in parts(summary).items() if not name.startswith("superseded"))


def outcome(row, heard):
    "Of a faithful draft how many sentences fall; of one with a fault whether the fault stands."
    job, plain = cluster_of(row)
    draft = summary_request(job.members, job.outdated, job.amended)[1](json.dumps(row["draft"]))
    c = check(drafted_summary(plain, draft), plain, job, draft.quotes, heard)
    if row["faithful"]: return len([f for f in c.wrong if not f.part.startswith("insights")])
    return c.summary is not None and any(p.lower() in told(c.summary) and p.lower() not in told(plain) for p in row["planted"])


@pytest.fixture(scope="module")
def rows(shared): return [json.loads(line) for line in (shared / "summaries" / "drafts.dev.jsonl").open(encoding="utf-8")]


@pytest.fixture(scope="module")
def heard(): return {r["id"]: Second(r["unsupported"]) for r in map(json.loads, HEARD.open(encoding="utf-8")) if "id" in r}


def test_by_words_alone_true_drafts_come_through_and_few_faults_stand(rows):
    found = {r["id"]: outcome(r, {}) for r in rows}
    fell, stands = ([found[r["id"]] for r in rows if r["faithful"] is kind] for kind in (True, False))
    assert sum(n <= 1 for n in fell) >= 0.95 * len(fell) and sum(stands) <= 0.1 * len(stands)


def test_read_a_second_time_no_planted_fault_stands(rows, heard):
    found = {r["id"]: outcome(r, heard[r["id"]]) for r in rows}
    fell, stands = ([found[r["id"]] for r in rows if r["faithful"] is kind] for kind in (True, False))
    assert all(n <= 1 for n in fell) and not sum(stands)


def test_who_supports_everything_helps_few_faults(rows):
    found = {r["id"]: outcome(r, Second(())) for r in rows if not r["faithful"]}
    assert sum(found.values()) <= 0.25 * len(found)  # Words alone: 2 of 26; such a model is not heard, for it supports the control too
