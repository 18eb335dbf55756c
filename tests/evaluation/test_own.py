"""Functions of the user's own: the page's examples score what the page shows, what wins runs in gnc, and no repository gets its code run."""
import json
import re
from hashlib import sha256

import numpy as np
import pytest
from calls import gnc, new_repo
from git_notes_consolidation import compare
from git_notes_consolidation.core.own import OwnError
from git_notes_consolidation.evaluation.compare import Counted, lines_of
from git_notes_consolidation.evaluation.scoring import fixture
from helpers import ROOT, story
from hypothesis import given, strategies as st

PAGE = json.loads((ROOT / "nbs" / "research" / "15_your-own.ipynb").read_text(encoding="utf-8"))["cells"]
CODE = ["".join(c["source"]) for c in PAGE if c["cell_type"] == "code"]
SHOWN = "\n".join("".join(o.get("data", {}).get("text/plain", ())) for c in PAGE for o in c.get("outputs", ()))


@pytest.fixture
def mine(tmp_path):
    "The page's examples, as its reader would put them into a file."
    path = tmp_path / "elsewhere" / "mine.py"
    path.parent.mkdir()
    path.write_text("import re, zlib\nfrom collections import Counter\n\n" + "\n\n".join(c for c in CODE if c.startswith("def my_")))
    return path


@pytest.mark.parametrize("what, own", [
    pytest.param("supersession", ["judge"]), pytest.param("retention", ["decay"], marks=pytest.mark.slow),
    pytest.param("recall", ["ranker", "embedder"], marks=pytest.mark.slow), pytest.param("summaries", ["summarizer"], marks=pytest.mark.slow)])
def test_the_pages_examples_score_what_the_page_shows(mine, tmp_path, monkeypatch, what, own):
    monkeypatch.chdir(mine.parent)
    typed = [x for k in own for x in (f"--{k}", f"mine.py:my_{k}")]
    told = gnc("research", "evaluate", what, *typed, "--save", "results.json")
    assert (told.code, told.err) == (0, ""), told.err
    for k in own:
        rows = re.findall(rf"^mine\.py:my_{k} \(yours\) +(.*?) *$", told.out, re.M)
        shown = re.findall(rf"^  my_{k} \(yours\) +(.*?) *$", SHOWN, re.M)
        assert rows and {" ".join(r.split()) for r in rows} <= {" ".join(r.split()) for r in shown}, (k, rows)
    saved = json.loads((mine.parent / "results.json").read_text())
    assert saved["date"] and {x["role"] for x in saved["results"]} == {"yours", "package", "baseline"}
    for d in saved["data"].values():
        name, _, ending = d["file"].partition(".")
        assert d["sha256"] == sha256(fixture(name, ending).read_bytes()).hexdigest()[:16]


def test_eighty_columns_are_enough(mine):
    told = gnc("research", "evaluate", "supersession", "--judge", f"{mine}:my_judge", width=80)
    assert all(len(line.rstrip()) <= 80 for line in told.out.splitlines()) and "newest wins" in told.out


@pytest.mark.parametrize("body, said", [
    ("return 'replaces'", "returned str 'replaces'; a judge returns one of duplicate, supersede, merge, coexist, a probability"),
    ("return 2", "returned int 2"), ("return {}", "returned dict {}"), ("return older.title", "failed in line 1 of wrong.py: AttributeError"),
    ("return float('nan')", "returned float nan")])
def test_a_wrong_judge_is_told_by_name(tmp_path, body, said):
    path = tmp_path / "wrong.py"
    path.write_text(f"def judge(older, newer): {body}")
    told = gnc("research", "evaluate", "supersession", "--judge", f"{path}:judge")
    assert told.code == 2 and not told.out and f"{path}:judge {said}" in told.err and told.err.count("\n") == 1


@pytest.mark.parametrize("args, said", [
    (("supersession", "--judge", "toy"), "name it as file.py:function"), (("supersession", "--judge", "mine:judge"), "no module mine; of a file"),
    (("supersession", "--judge", "no.py:judge"), "cannot be imported: FileNotFoundError"), (("retention", "--judge", "m.py:j"), "does not go with retention"),
    (("temporal", "--judge", "m.py:j"), "does not go with temporal"), (("supersession", "--against", "nobody"), "choose from judge_pair"),
    (("summaries", "--data", "x"), "does not go with summaries")])
def test_wrong_usage(tmp_path, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    told = gnc("research", "evaluate", *args)
    assert told.code == 2 and said in told.err and told.err.count("\n") == 1


@pytest.mark.parametrize("var, value, said", [
    ("MEMORY_DECAY", "toy", "decay must be one of exponential, power, act-r, or module:function of your own, called as decay(age_days, uses), not 'toy'"),
    ("MEMORY_CONSOLIDATION_EMBEDDER", "toy", "or module:function of your own, called as embedder(texts), not 'toy'"),
    ("MEMORY_JUDGE", "toy", "judge must be empty, or module:function"), ("MEMORY_RANKER", "toy", "ranker must be empty, or module:function")])
def test_an_unknown_name_says_what_is_allowed(tmp_path, monkeypatch, var, value, said):
    monkeypatch.setenv(var, value)
    told = gnc("status", repo=new_repo(tmp_path / "repo"))
    assert told.code == 2 and said in told.err


# What wins runs in gnc, for its user

ALWAYS = """
def judge(older, newer): return None
def decay(age_days, uses): return 0.0 if age_days > 30 else 1.0
def ranker(question, memories): return sorted(memories, key=lambda m: m.summary)
def embedder(texts): return [[len(t), t.count("e"), 1] for t in texts]
"""


@pytest.fixture
def repo(tmp_path): return new_repo(tmp_path / "repo", story())


@pytest.fixture
def always(tmp_path):
    path = tmp_path / "always.py"
    path.write_text(ALWAYS)
    return path


def test_a_judge_of_ones_own_decides_in_a_run(repo, always, monkeypatch):
    def superseded(): return gnc("consolidate", "--dry-run", "--json", repo=repo).json["result"]["supersessions_detected"]
    assert superseded() == 3
    monkeypatch.setenv("MEMORY_JUDGE", f"{always}:judge")
    assert superseded() == 0, "the rules' three are not what it finds"
    always.write_text("def judge(older, newer): return 'replaces'")
    monkeypatch.setenv("MEMORY_JUDGE", f"{always.rename(always.with_name('other.py'))}:judge")
    told = gnc("consolidate", "--full", repo=repo)
    assert told.code == 2 and "other.py:judge returned str 'replaces'" in told.err


def test_a_decay_of_ones_own_moves_the_tiers(repo, always, monkeypatch):
    def tiers():
        moved = gnc("consolidate", "--dry-run", "--json", repo=repo).json["result"]["tier_transitions"]
        return {(t["memory_id"], t["to_tier"]) for t in moved}
    default = tiers()
    monkeypatch.setenv("MEMORY_DECAY", f"{always}:decay")
    assert tiers() != default


def test_a_ranker_of_ones_own_orders_what_is_found(repo, always, monkeypatch):
    monkeypatch.setenv("MEMORY_RANKER", f"{always}:ranker")
    found = [r["summary"] for r in gnc("recall", "worker retries", "--json", repo=repo).json["results"]]
    assert len(found) > 2 and found == sorted(found)


def test_an_embedder_of_ones_own_is_asked(repo, always, monkeypatch):
    monkeypatch.setenv("MEMORY_CONSOLIDATION_EMBEDDER", f"{always}:embedder")
    assert gnc("recall", "worker retries", repo=repo).code == 0


# … and for nobody else

SETTINGS = {"judge": "MEMORY_JUDGE", "decay": "MEMORY_DECAY", "ranker": "MEMORY_RANKER", "embedder": "MEMORY_CONSOLIDATION_EMBEDDER"}


@pytest.mark.parametrize("form", ["toml", "yaml"])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_repository_that_names_code_is_not_obeyed(repo, tmp_path, name, form, monkeypatch):
    "Neither by a path nor by a module that it brings along; a person is told once."
    ran = tmp_path / "ran"
    (repo / "evil.py").write_text(f"open({str(ran)!r}, 'w')\ndef {name}(*a): return 1")
    monkeypatch.chdir(repo)
    for value in (f"{repo}/evil.py:{name}", f"evil.py:{name}", f"evil:{name}"):
        (repo / f"gnc.{form}").write_text(f'{name} {"=" if form == "toml" else ":"} "{value}"\n')
        for args in (("consolidate", "--dry-run"), ("recall", "worker retries"), ("status",)):
            assert gnc(*args, repo=repo).code == 0
        told = gnc("config", repo=repo, width=400)
        assert f"{name} is ignored, because the file may have come with a repository" in told.out + told.err
    assert not ran.exists()


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("value", ["evil:{}", "evil.py:{}"])
def test_a_module_that_lies_where_one_stands_is_not_taken_for_the_users(repo, tmp_path, name, value, monkeypatch):
    "`python -m` puts the current folder on the path, and the user's variable may name a module that is not installed here."
    ran = tmp_path / "ran"
    (repo / "evil.py").write_text(f"open({str(ran)!r}, 'w')\ndef {name}(*a): return 1")
    monkeypatch.chdir(repo)
    for place in ("", ".", str(repo)): monkeypatch.syspath_prepend(place)
    monkeypatch.setenv(SETTINGS[name], value.format(name))
    codes = [gnc(*args, repo=repo).code for args in (("consolidate", "--dry-run"), ("recall", "worker retries"))]
    assert 2 in codes and not ran.exists()


# How it is counted

COUNTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8)


@given(COUNTS, st.randoms(use_true_random=False))
def test_intervals_hold_their_value_and_differences_turn_round(counts, random):
    a = np.array([[[k, k + n]] for k, n in counts], float)
    b = np.array([[[min(k, random.randint(0, 5)), k + n]] for k, n in counts], float)
    found = {"a": Counted("yours", a), "b": Counted("package", b), "same": Counted("baseline", a)}
    x, y, same = lines_of("judges", found, {"precision": True}, "a", draws=200)
    assert x.difference is None
    for line in (x, y, same): assert line.value is None or line.value.low <= line.value.value <= line.value.high
    if same.difference: assert same.difference.value == 0 and same.difference.low <= 0 <= same.difference.high
    back, _, _ = lines_of("judges", found, {"precision": True}, "b", draws=200)
    assert (back.difference is None) == (y.difference is None)
    if y.difference: assert np.allclose(back.difference, [-y.difference[k] for k in (0, 2, 1)])


def test_the_same_twice_and_another_name_for_one_that_is_taken():
    mine = {"mine": lambda older, newer: 0.9}
    assert compare(judges=mine).lines == compare(judges=mine).lines
    with pytest.raises(OwnError, match="newest wins is the name of one that is compared with"):
        compare(judges={"newest wins": lambda older, newer: 1.0})
