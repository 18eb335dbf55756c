"""A file of settings is changed only where it is meant, and a preset goes through the panel unchanged."""
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.saving import Draft
from git_notes_consolidation.core.settings import PRESETS, ConfigError, RetentionConfig, SubconsciousnessConfig
from git_notes_consolidation.research.corpus import Corpus
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


# The panel


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("begun", ["", "retention_preset: subcog\n", "retention_preset: mycelic\nhot_threshold: 0.8\n", "decay: act-r\ndecay_exponent: 0.6\n"])
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_goes_through_the_panel_into_the_file_unchanged(begun, name, tmp_path):
    "Its weights need not add up to 1, and a file that begins with another preset must be told what that one would say otherwise."
    pytest.importorskip("ipywidgets")
    from git_notes_consolidation.research.tuning_desk import Panel
    file = tmp_path / "gnc.yaml"
    file.write_text(begun)
    base = load_settings(env={}, file=file).config
    panel = Panel(corpus(mem("Use FastAPI", days_ago=40), config=base, folder=str(tmp_path)))
    panel.presets.value = name if base.retention != RetentionConfig.preset(name) else panel.presets.value
    assert panel.config.retention == RetentionConfig.preset(name)
    panel.keeper.look()
    panel.keeper.write()
    assert load_settings(env={}, file=file).config.retention == RetentionConfig.preset(name)
