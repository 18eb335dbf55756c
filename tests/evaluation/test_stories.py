"""A run leaves the memory of small projects truer than before: their questions before it and after it, and what it hides."""
import hashlib
import json
import re
from pathlib import Path

import pytest
from calls import gnc
from llm_servers import FaultyServer
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.evaluation.scoring import fixture
from git_notes_consolidation.evaluation.stories import closure, evaluate_stories, load_stories

SETTINGS = load_settings({"max_change": 1.0}, env={})


@pytest.mark.slow
def test_stories_by_others_are_truer_after_a_run(shared):
    r, played = evaluate_stories(load_stories(shared / "stories" / "dev.jsonl"), SETTINGS)
    before, after = r.right["all"]
    assert r.wrongly == 0 and r.hidden.value == 1 and len(played) == 22
    assert r.found.value >= 0.55 and r.asked.value >= 0.70
    assert after.value >= 0.75 and after.k > before.k and r.wrong[1].value <= 0.05 and r.wrong[1].k < r.wrong[0].k
    assert r.told.value >= 0.93 and r.not_told.value >= 0.90


def capable_reader(replies):
    "Who answers about pairs as the file says; what it does not list coexists, and no summary is written."
    known = {r["pair"]: r for r in map(json.loads, replies.read_text().splitlines()[1:])}
    def answer(newer, older):
        r = known.get(hashlib.sha256(f"{newer}\0{older}".encode()).hexdigest()[:16], {})
        quote = newer[slice(*r["quote"])] if "quote" in r else None
        return {"quote": quote, "reason": "As it was read.", "relation": r.get("relation", "coexist"), "kind": r.get("kind"),
                "confidence": r.get("confidence", "high")}
    def brain(body):
        asked, kind = body["messages"][-1]["content"], body["response_format"]["json_schema"]["name"]
        text = {m: json.loads(t)["text"] for m, t in re.findall(r"^(M\d+) (\{.*\})$", asked, re.M)}
        pairs = re.findall(r"(P\d+): newer (M\d+), older (M\d+)", asked)
        return json.dumps({p: answer(text[new], text[old]) for p, new, old in pairs} if kind == "judge" else {"edges": []})
    return brain


@pytest.mark.slow
def test_with_a_capable_readers_answers_most_of_what_changed_is_done_and_nothing_harmful(shared):
    stories = load_stories(shared / "stories" / "dev-2.jsonl")
    with FaultyServer(brain=capable_reader(Path(__file__).parent.parent / "fixtures" / "capable_reader.jsonl")) as server:
        asks = {"llm_provider": "lmstudio", "llm_base_url": server.url, "llm_model": "reader"}
        r, _ = evaluate_stories(stories, load_settings({"max_change": 1.0} | asks, env={}))
    before, after = r.right["all"]
    assert server.calls > len(stories) and r.wrongly == 0 and r.hidden.value >= 0.99
    assert r.done.value >= 0.74 and r.found.value >= 0.81
    assert after.value - before.value >= 0.05 and r.wrong[1].value <= 0.06 < r.wrong[0].value
    assert r.told.value >= 0.9 and r.not_told.value >= 0.94


def test_what_the_labels_imply_holds_for_every_copy():
    assert closure({("a", "b"): "duplicate", ("b", "c"): "supersede"})["a", "c"] == {"supersede"}
    assert closure({("a", "b"): "supersede", ("b", "a"): "supersede"}).keys() == {("a", "b"), ("b", "a")}


@pytest.mark.parametrize(("change", "said"), [
    ({"now": 3}, "now: a time such as"), ({"told": "x"}, "told: Input should be a valid list"),
    ({"pairs": [{"older": "m1", "newer": "m2", "relation": "kills"}]}, "relation: Input should be 'supersede', 'partial'"),
    ({"questions": [{"q": "x", "kind": "y", "current": ["["]}]}, "current.0: Input should be a valid regular expression")])
def test_a_row_that_cannot_be_read_is_named(tmp_path, change, said):
    row = json.loads(fixture("stories").read_text().splitlines()[0]) | change
    (tmp_path / "s.jsonl").write_text(json.dumps(row))
    told = gnc("evaluate", "stories", "--data", tmp_path / "s.jsonl")
    assert told.code == 2 and said in told.err and "line 1" in told.err


def test_a_locked_story_is_counted_and_not_shown(tmp_path):
    rows = [json.loads(line) | {"split": "locked"} for line in fixture("stories").read_text().splitlines()]
    for row in rows:
        for q in row["questions"]: q["current"] = ["nothing says this"]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    told = gnc("--json", "evaluate", "stories", "--data", tmp_path / "s.jsonl", "--failures", 9)
    assert told.json["failures"] == [] and told.json["right"]["all"][1]["k"] == 0
