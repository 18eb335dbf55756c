"""The quick computation says what the exact one says, for any configuration and any memories; and a file of settings is changed only where it is meant."""
import math
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_notes_consolidation.similarity.clusters import cluster_memories
from git_notes_consolidation.similarity.linkage import dendrogram, flat_clusters
from git_notes_consolidation.core.settings import (
    DECAYS, NAMESPACE_IMPORTANCE, PRESETS, ConfigError, RetentionConfig, SubconsciousnessConfig)
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.similarity.lexical import LexicalEmbedder
from git_notes_consolidation.core.models import MemoryMetadata, MemoryTier
from git_notes_consolidation.core.memory import mem, sample_memories
from git_notes_consolidation.retention.tiers import days_in_tiers, retention_frame, weights
from git_notes_consolidation.core.saving import Draft
from git_notes_consolidation.research.tuning import (
    Prepared, answer, by_namespace, cluster_sizes, counts, days_by_namespace, scores, tiers, transitions,
    merge_heights)

pd = pytest.importorskip("pandas", reason="pandas is not installed")
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
NAMES = [t.value for t in MemoryTier]
SPACES = [*NAMESPACE_IMPORTANCE, "my-own"]
ages = st.floats(-20, 2000) | st.integers(0, 60)  # Whole days meet the grace period to the day
memories = st.lists(st.builds(lambda d, ns, i, status: mem("x", days_ago=d, namespace=ns, importance=i, status=status, now=NOW), ages, st.sampled_from(SPACES),
                              st.none() | st.floats(0, 1), st.sampled_from(["active", "resolved", "archived"])), max_size=12)
known = st.fixed_dictionaries({
    "activation_count": st.integers(0, 60), "last_accessed": st.none() | ages.map(lambda d: NOW - timedelta(days=d)),
    "superseded_by": st.sampled_from([None, None, "mem_new"]), "superseded_kind": st.sampled_from([None, "full", "partial"]),
    "duplicate_of": st.sampled_from([None, None, None, "mem_first"]), "merged_into": st.sampled_from([None, None, None, "mem_both"]),
    "consolidated_into": st.sampled_from([None, "sum_x"]), "tier": st.sampled_from(list(MemoryTier))})


@st.composite
def configs(draw):
    hot, warm, low = sorted(draw(st.lists(st.floats(0.01, 0.99), min_size=3, max_size=3, unique=True)), reverse=True)
    made = RetentionConfig(hot_threshold=hot, warm_threshold=warm, archive_threshold=low, **weights(*draw(st.tuples(*[st.floats(0, 1)] * 3))),
                           retention_half_life_days=draw(st.floats(0.5, 500)), importance_half_life_days=draw(st.floats(1, 2000) | st.just(math.inf)),
                           grace_days=draw(st.sampled_from([0.0, 7.0, 30.0])), superseded_factor=draw(st.floats(0, 1)), partial_factor=draw(st.floats(0, 1)),
                           supersession_rule=draw(st.booleans()),
                           decay=draw(st.sampled_from(DECAYS)), decay_exponent=draw(st.floats(0.05, 3)))
    return draw(st.just(made) | st.sampled_from([RetentionConfig.preset(name) for name in PRESETS]))


@pytest.mark.slow
@given(memories, st.lists(known, min_size=12, max_size=12), configs())
def test_tiers_and_scores_are_those_of_the_frame(group, facts, config):
    table = {m.id: MemoryMetadata(m.id, **k) for m, k in zip(group[1:], facts)}  # Of the first nothing is known
    frame, p = retention_frame(group, table, config, NOW), Prepared.of(group, table, NOW)
    assert scores(p, config).tolist() == frame["overall"].tolist()
    assert [NAMES[t] for t in tiers(p, config)] == frame["tier"].tolist()


@pytest.mark.parametrize("fact, status, rank", [
    ({}, "active", 0), ({"superseded_kind": "partial"}, "active", 1), ({"superseded_kind": "partial"}, "archived", 2), ({}, "archived", 2),
    ({"superseded_kind": "full"}, "active", 3), ({"duplicate_of": "mem_first"}, "active", 3), ({"merged_into": "mem_both"}, "active", 3)], ids=str)
def test_each_rule(fact, status, rank):
    "A memory that by its score alone would be hot."
    m, config = mem("x", days_ago=30, status=status, now=NOW), RetentionConfig(partial_factor=1.0, superseded_factor=1.0)
    k = MemoryMetadata(m.id, activation_count=20, superseded_by="mem_new" if "superseded_kind" in fact else None, **fact)
    assert tiers(Prepared.of([m], {m.id: k}, NOW), config).tolist() == [rank]


@pytest.mark.slow
@given(memories, st.lists(known, min_size=12, max_size=12), configs(), configs())
def test_what_is_counted_is_what_the_frames_count(group, facts, one, two):
    table = {m.id: MemoryMetadata(m.id, **k) for m, k in zip(group, facts)}
    p, a, b = Prepared.of(group, table, NOW), *(retention_frame(group, table, c, NOW) for c in (one, two))
    x, y = tiers(p, one), tiers(p, two)
    pairs = [(u, v) for u, v in zip(a["tier"], b["tier"]) if u != v]
    assert transitions(x, y) == {pair: pairs.count(pair) for pair in pairs} and counts(x) == {t: (a["tier"] == t).sum() for t in NAMES}
    assert by_namespace(p, y) == {n: {t: int(((b["namespace"] == n) & (b["tier"] == t)).sum()) for t in NAMES} for n in {m.namespace for m in group}}


@given(configs())
def test_the_days_are_those_of_days_in_tiers(config):
    assert days_by_namespace(SPACES[::3], config, NOW) == {n: days_in_tiers(n, config) for n in SPACES[::3]}


# Clusters from one tree


SAMPLE = sample_memories()
X = LexicalEmbedder().embed([m.text for m in SAMPLE])
WALL = merge_heights(dendrogram(X))


@pytest.mark.parametrize("threshold", [0.05, 0.1, 0.17, 0.25, 0.33, 0.5, 0.7, 0.95])
def test_a_cut_of_the_tree_is_the_clustering(threshold):
    assert sorted(cluster_sizes(WALL, threshold, 2, 10**6)) == sorted(np.bincount(flat_clusters(X, 1 - threshold)).tolist())


@pytest.mark.parametrize("least, most", [(2, 2), (2, 5), (3, 20), (4, 4), (7, 30)])
@pytest.mark.parametrize("threshold", [0.1, 0.2, 0.25, 0.4])
def test_with_both_limits_it_is_what_a_run_would_make(threshold, least, most):
    config = SubconsciousnessConfig(consolidation_threshold=threshold, min_cluster_size=least, max_cluster_size=most)
    found = cluster_memories(SAMPLE, {m.id: x for m, x in zip(SAMPLE, X)}, config)
    by_size = sorted(cluster_sizes(WALL, threshold, least, most), reverse=True)
    assert [n for n in by_size if n >= least] == [n for n in sorted((len(c.memory_ids) for c in found), reverse=True) if n >= least]
    assert sum(by_size) == len(SAMPLE)


def test_of_nothing_and_of_one():
    assert cluster_sizes(np.zeros(0), 0.5, 3, 20) == [1]
    one = [mem("x", now=NOW)]
    said = answer(Prepared.of(one, {}, NOW), SubconsciousnessConfig(), np.zeros(1, np.int8), np.zeros(0), 0.25)
    assert (said.counts["hot"], said.moves, said.sizes) == (1, {}, [1])


# The file


KEPT = "# why we forget early\nretention:\n  recency_half_life_days: 14  # two sprints\nembedder: minilm   # here\n"
values = st.fixed_dictionaries({}, optional={
    "retention_half_life_days": st.floats(0.01, 1e9), "importance_half_life_days": st.floats(0.01, 1e9) | st.just(math.inf),
    "grace_days": st.floats(0, 400), "hot_threshold": st.floats(0.61, 0.99), "consolidation_threshold": st.none() | st.floats(0.01, 0.99),
    "max_cluster_size": st.integers(3, 500), "summaries_token_budget": st.integers(0, 8_000)})
FILES = {"gnc.yaml": ["", KEPT, "{hot_threshold: 0.9, retention: {recency_half_life_days: 14}}", "consolidation:\n  cluster_threshold: 0.5\n",
                      "hot_threshold: 0.9", "\ufeffgrace_days: 3\r\nembedder: minilm\r\n", "consolidation_threshold:\nmin_cluster_size: 3\n"],
         "gnc.toml": ["", "embedder = 'minilm' # here\n[retention]\nrecency_half_life_days = 14 # two sprints", "hot_threshold=0.9",
                      "[consolidation]\ncluster_threshold = 0.5\n[context]\nbase_token_budget = 100\n"]}
files = st.sampled_from([(name, text) for name, texts in FILES.items() for text in texts])


@given(files, values)
def test_gnc_reads_back_what_was_meant_and_what_was_there(tmp_path_factory, file, wanted):
    path = tmp_path_factory.mktemp("home") / file[0]
    path.write_bytes(file[1].encode())
    before = load_settings(env={}, file=path)
    try: draft = Draft(path.parent, wanted)
    except ConfigError as e:
        assert "cannot be changed safely" in str(e) and path.read_bytes() == file[1].encode() and file[1].startswith("{")
        return
    assert path.read_bytes() == file[1].encode()  # Looking writes nothing
    assert draft.write() == path and [*path.parent.iterdir()] == [path]
    after = load_settings(env={}, file=path)
    assert after.config == replace(before.config, **wanted)
    default = SubconsciousnessConfig()
    new = {k for k in wanted if after.origins[k] != "default"} - {k for k, o in before.origins.items() if o != "default"}
    assert all(wanted[k] != getattr(default, k) for k in new), "only what differs from the defaults is written"
    assert Draft(path.parent, wanted).values == {} and Draft(path.parent, wanted).text == draft.text


def test_comments_and_order_stay(tmp_path):
    (tmp_path / "gnc.yaml").write_text(KEPT)
    Draft(tmp_path, {"retention_half_life_days": 21.0, "hot_threshold": 0.7}).write()
    assert (tmp_path / "gnc.yaml").read_text() == KEPT.replace("14", "21.0") + "hot_threshold: 0.7\n"


@pytest.mark.parametrize("text, wanted, said", [
    ("", {"warm_threshold": 0.7}, "must fall from hot to warm"), ("", {"max_cluster_size": 2}, "2 <= min_cluster_size <= max_cluster_size"),
    ("embeder: minilm\n", {"hot_threshold": 0.7}, "did you mean embedder"), ("", {"workers": 9}, "workers is ignored"),
    ("- a\n", {"hot_threshold": 0.7}, "has no settings"), ("grace_days: soon\n", {"hot_threshold": 0.7}, "grace_days must be a number")], ids=str)
def test_what_the_configuration_refuses_is_refused_with_its_words(tmp_path, text, wanted, said):
    if text: (tmp_path / "gnc.yaml").write_text(text)
    with pytest.raises(ConfigError, match=said): Draft(tmp_path, wanted)
    assert [p.read_text() for p in tmp_path.iterdir()] == ([text] if text else [])


def test_two_files_and_a_link(tmp_path):
    (tmp_path / "real.yaml").write_text("min_cluster_size: 2\n")
    (tmp_path / "gnc.yaml").symlink_to("real.yaml")
    Draft(tmp_path, {"hot_threshold": 0.7}).write()
    assert (tmp_path / "gnc.yaml").is_symlink() and (tmp_path / "real.yaml").read_text() == "min_cluster_size: 2\nhot_threshold: 0.7\n"
    (tmp_path / "gnc.toml").write_text("")
    with pytest.raises(ConfigError, match="only one of them can hold"): Draft(tmp_path, {"hot_threshold": 0.7})


def test_a_text_in_toml_that_looks_like_a_setting_is_left_alone(tmp_path):
    (tmp_path / "gnc.toml").write_text("hook_schedule = '''\nhot_threshold = 0.9\n'''\n")
    with pytest.raises(ConfigError, match="cannot be changed safely; set by hand: hot_threshold"): Draft(tmp_path, {"hot_threshold": 0.7})


# The panel


def test_columns_need_no_widgets():
    code = ("import sys, git_notes_consolidation.research.tuning, git_notes_consolidation.research.tuning_panel\n"
            "print([m for m in ('ipywidgets', 'plotly', 'scipy', 'pandas') if m in sys.modules])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("begun", ["", "retention_preset: subcog\n", "retention_preset: mycelic\nhot_threshold: 0.8\n", "decay: act-r\ndecay_exponent: 0.6\n"])
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_goes_through_the_panel_into_the_file_unchanged(begun, name, tmp_path):
    "Its weights need not add up to 1, and a file that begins with another preset must be told what that one would say otherwise."
    pytest.importorskip("ipywidgets")
    from git_notes_consolidation.research.tuning_panel import Panel
    file = tmp_path / "gnc.yaml"
    file.write_text(begun)
    base, memories = load_settings(env={}, file=file).config, [mem("Use FastAPI", days_ago=40)]
    panel = Panel(Prepared.of(memories, {}, NOW), base, np.zeros(0), 0.25, np.zeros(1, int), 0, str(tmp_path))
    panel.presets.value = name if base.retention != RetentionConfig.preset(name) else panel.presets.value
    assert panel.config.retention == RetentionConfig.preset(name)
    panel.keeper.look()
    panel.keeper.write()
    assert load_settings(env={}, file=file).config.retention == RetentionConfig.preset(name)
