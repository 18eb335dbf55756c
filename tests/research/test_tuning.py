"""A file of settings is changed only where it is meant, and a preset goes through the panel unchanged."""
import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from git_notes_consolidation.core.loading import Draft, load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.settings import ConfigError, SubconsciousnessConfig
from git_notes_consolidation.research.lab import Corpus
from git_notes_consolidation.research.tuning import answer

pytest.importorskip("pandas", reason="pandas is not installed")


def corpus(*memories, **more): return Corpus("made", memories, SAMPLE_NOW, **more)


def test_of_one_memory():
    said = answer(corpus(mem("x")), SubconsciousnessConfig(), ["hot"])
    assert (said.counts["hot"], dict(said.moves), said.sizes) == (1, {}, [1])


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
