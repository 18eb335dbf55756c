"""Forecasts of what is needed: the histories that they are made of, and what must hold of them."""
import json
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from calls import gnc_process
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.evaluation.decay import file_touches, memory_touches, tuned
from git_notes_consolidation.retention.forecast import BadTable, MODELS, left_out, read_touches, snapshots, touches_of
from git_notes_consolidation.core.memory import mem
from git_notes_consolidation.store.events import Events
from git_notes_consolidation.store.git import open_repo
from helpers import ROOT, git
from histories import Step, write_history
from hypothesis import given, strategies as st

EVENTS = ROOT / "git_notes_consolidation" / "data" / "file_events.csv.gz"
rows = st.lists(st.tuples(st.integers(0, 5), st.floats(0, 400).map(lambda d: round(d, 2)), st.booleans()), min_size=1, max_size=60)


@pytest.fixture(scope="module")
def twelve(): return read_touches(EVENTS)


@pytest.fixture(scope="module")
def few(twelve):
    "Three small projects."
    return snapshots([h for h in twelve if h.name in ("hdbscan", "sqlite-utils", "llm")])


# Rows


def slow(history, every, horizon, start):
    "The same rows, one event at a time."
    out = []
    for item in sorted(set(history.item.tolist())):
        own = [(d, g) for i, d, g in zip(history.item.tolist(), history.day.tolist(), history.gone.tolist()) if i == item]
        at = start
        while at <= history.day[-1] - horizon + 1e-9:
            life = []
            for d, gone in own:
                if d <= at: life = [] if gone else [*life, d]
            past = [g for d, g in own if d <= at]
            if past and not past[-1]:
                out.append((item, at, at - life[0], at - life[-1], len(life) - 1, any(at < d <= at + horizon and not g for d, g in own)))
            at += every
    return out


@pytest.mark.slow
@given(rows)
def test_rows_are_what_was_known_on_the_day(made):
    history = touches_of("x", made)
    s = snapshots([history], every=20, horizon=25, start=30)
    want = slow(history, 20, 25, 30)
    got = list(zip(s.day.tolist(), s.first.tolist(), s.last.tolist(), s.count.tolist(), s.needed.tolist()))
    assert [g[0] for g in got] == [w[1] for w in want]
    for g, w in zip(got, want): assert g[1:3] == pytest.approx(w[2:4]) and g[3:] == w[4:]
    for r in range(len(s)): assert s.ages[s.row == r][[0, -1]] == pytest.approx([s.first[r], s.last[r]]) and (s.row == r).sum() == s.count[r] + 1


@given(rows, st.lists(st.tuples(st.integers(0, 5), st.floats(120.01, 400), st.booleans()), max_size=20))
def test_what_comes_later_changes_no_row_but_its_answer(made, more):
    "Whatever happens after a day, the row of that day knows nothing of it."
    early = [r for r in made if r[1] <= 120] + [(9, 0.0, False), (9, 500.0, False)]
    one, two = (snapshots([touches_of("x", x)], start=30) for x in (early, early + more))
    keep = [s.where(s.day <= 120) for s in (one, two)]
    for name in ("day", "first", "last", "count"):
        assert sorted(getattr(keep[0], name).tolist()) == sorted(getattr(keep[1], name).tolist())


HEAD = "repo,item,day,kind\n"


@pytest.mark.parametrize("text", ["", f"{HEAD}x,1,nan,A\n", f"{HEAD}x,1,0,Z\n", "a,b\n1,2\n", f"{HEAD}x\n", f"{HEAD}x,1,\udcff,A\n"])
def test_a_bad_table_is_refused_with_its_line(text, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    if not text: assert read_touches(path) == []
    else:
        with pytest.raises(BadTable, match="t.csv"): read_touches(path)


# Models


# Experiments


@pytest.mark.slow
def test_a_left_out_project_teaches_nothing_about_itself(few):
    "Its chances do not change when its answers do."
    mine = few.repo == 0
    other = replace(few, needed=np.where(mine, ~few.needed, few.needed))
    for m in (MODELS[1], MODELS[-1]): assert np.allclose(left_out(m, few)[mine], left_out(m, other)[mine])


# One's own repository


@pytest.fixture(scope="module")
def grown(twelve, tmp_path_factory):
    "A real repository with the history of one of the projects, file for file and day for day."
    home = tmp_path_factory.mktemp("grown")
    git(home, "init", "-q", "-b", "main")
    h = next(h for h in twelve if h.name == "sqlite-utils")
    there, steps = set(), []
    for n, (item, day, gone) in enumerate(zip(h.item.tolist(), h.day.tolist(), h.gone.tolist())):
        if gone and item not in there: continue
        steps.append(Step(int(day), f"c{n}", {f"src/a file {item}.py": None if gone else str(n)}))
        there = there - {item} if gone else there | {item}
    write_history(open_repo(home), steps)
    return home, steps


def test_a_repository_gives_its_history_back(grown):
    home, steps = grown
    t = file_touches(open_repo(home))
    want = touches_of("x", [(next(iter(s.files)), s.day - steps[0].day, None in s.files.values()) for s in steps])
    assert len(t.day) == len(want.day) and sorted(t.day.tolist()) == sorted(want.day.tolist()) and t.gone.sum() == want.gone.sum()
    assert len(set(t.item.tolist())) == len(set(want.item.tolist()))


def test_a_log_with_odd_names(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    write_history(open_repo(tmp_path), [Step(0, "one", {"a b.py": "1", "ü\t.py": "1", '"q"\\.py': "1"}),
                                        Step(3, "two\n\nwith a body", {"a b.py": "2"}),
                                        Step(4, "three", {"ü\t.py": None})])
    t = file_touches(open_repo(tmp_path))
    assert (sorted(t.day.tolist()), t.gone.sum(), len(set(t.item.tolist()))) == ([0, 0, 0, 3, 4], 1, 3)


def run(home, *args): return gnc_process("--repo", str(home), *args)


@pytest.mark.slow
def test_tune_recommends_writes_and_is_read_back(grown):
    home, _ = grown
    told = json.loads(run(home, "--now", "2032-01-01", "tune", "--json").out)
    assert told["source"] == "files" and told["written"] is None and not (home / "gnc.yaml").exists()
    ours, designs = (told["measures"][k] for k in ("ACT-R of three numbers, fitted", "designs' score"))
    assert ours["auc"] >= designs["auc"] - 0.005 and told["settings"]["decay"] == "act-r"
    (home / "gnc.yaml").write_text("# mine\nhot_threshold: 0.7\n")
    done = run(home, "--now", "2032-01-01", "tune", "--write")
    assert done.code == 0 and "Written to" in done.out and "proxy" in done.out
    text = (home / "gnc.yaml").read_text()
    assert text.startswith("# mine\nhot_threshold: 0.7\n")
    assert "say so already" in run(home, "--now", "2032-01-01", "tune", "--write").out and (home / "gnc.yaml").read_text() == text
    config = load_settings(env={}, file=home / "gnc.yaml").config
    assert (config.decay, config.decay_exponent, config.hot_threshold) == ("act-r", told["settings"]["decay_exponent"], 0.7)


def test_reads_are_preferred_to_files():
    notes = [mem(f"Note {i}", days_ago=700) for i in range(40)]
    records = []
    for i, m in enumerate(notes):
        for k, d in enumerate(range(20, 700, 10 + i * i // 2), 1):
            at = (m.timestamp + timedelta(days=d)).isoformat()
            records.append(("meta", m.commit_sha, {"kind": "access", "memory": m.id, "clone": "a", "count": k, "at": at}))
    reads = snapshots([memory_touches(notes, Events(tuple(records), (), {}))])
    t = tuned(reads, snapshots([]))
    assert (t.source, t.rows) == ("reads", len(reads)) and 0 < t.needed < len(reads) and t.settings.get("decay") == "act-r"


@pytest.mark.slow
def test_evaluate_retention_as_a_command(tmp_path, few, twelve):
    path = tmp_path / "events.csv"
    names = ("hdbscan", "sqlite-utils")
    lines = [f"{h.name},{i},{d},{'D' if g else 'M'}" for h in twelve if h.name in names for i, d, g in zip(h.item.tolist(), h.day.tolist(), h.gone.tolist())]
    path.write_text("\n".join(["repo,item,day,kind", *lines]) + "\n")
    told = json.loads(gnc_process("evaluate", "retention", "--data", str(path), "--json").out)
    value = {x["name"]: x["value"]["value"] for x in told["results"]}
    assert value["none"] == 0.5 and value["the default score"] > 0.65 and value["ACT-R"] > 0.65
    bad = gnc_process("evaluate", "retention", "--data", str(tmp_path / "none.csv"))
    assert bad.code == 2 and "none.csv" in bad.err
