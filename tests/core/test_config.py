"""Settings from files: YAML and TOML say the same, both designs' tables are understood, and nonsense is refused with its remedy."""
import json
import subprocess

import pytest
import yaml
from calls import COMMAND, gnc, new_repo
from helpers import rows_of, story
from hypothesis import given, strategies as st

from git_notes_consolidation.session import fast_start as starting
from git_notes_consolidation.core.loading import _FIELDS, load_settings, variable_name
from git_notes_consolidation.core.settings import ConfigError, RETIRED, SubconsciousnessConfig
from git_notes_consolidation.core.startup import from_yaml

ROWS = rows_of(__name__)
DESIGN = {  # Every key of design 4's file, with its own value there
    "enabled": True,
    "similarity": {"threshold": 0.85, "max_candidates": 5},
    "classification": {"confidence_threshold": 0.8, "fallback_action": "COEXIST", "require_human_review": False},
    "operations": {"enable_merge": True, "enable_supersede": True, "enable_delete": False, "archive_superseded": True},
    "merge": {"preserve_sources": True, "recompute_embedding": True, "inherit_max_importance": True},
    "supersession": {"maintain_chains": True, "index_valid_until": True},
    "audit": {"log_all_operations": True, "store_before_state": True, "store_after_state": True, "retention_days": 90}}
MEANT = {"similarity.threshold": ("write_threshold", 0.7), "classification.confidence_threshold": ("write_confidence", 0.65),
         "audit.retention_days": ("log_retention_days", 7)}
def toml(tables, path=""):
    "Tables of plain values as TOML."
    rows = [f"{k} = {json.dumps(v)}" for k, v in tables.items() if not isinstance(v, dict)]
    return "\n".join([*([f"[{path}]"] if path and rows else []), *rows, *(toml(v, f"{path}.{k}".strip(".")) for k, v in tables.items() if isinstance(v, dict))])


def load(folder, d, form="yaml", env=()):
    path = folder / f"gnc.{form}"
    path.write_text(toml(d) if form == "toml" else yaml.safe_dump(d))
    return load_settings(env=dict(env), file=path)


def set_in(s): return {k: getattr(s.config, k) for k, origin in s.origins.items() if origin != "default"}
def at(path, value):
    "A value at the end of a path of tables."
    for name in reversed(path.split(".")): value = {name: value}
    return {"consolidation": value}


both_forms = pytest.mark.parametrize("form", ["yaml", "toml"])


@both_forms
def test_the_file_of_design_four_is_read_as_it_stands(tmp_path, form):
    s = load(tmp_path, {"consolidation": DESIGN}, form)
    want = {"consolidation_enabled": True, "write_threshold": 0.85, "write_confidence": 0.8, "log_retention_days": 90}
    assert set_in(s) == want and {s.origins[k] for k in want} == {str(tmp_path / f"gnc.{form}")} and not s.remarks


@both_forms
@pytest.mark.parametrize("path", MEANT)
def test_each_key_is_its_setting(tmp_path, path, form):
    name, value = MEANT[path]
    assert value != getattr(SubconsciousnessConfig(), name)
    assert set_in(load(tmp_path, at(path, value), form)) == set_in(load(tmp_path, {name: value}, form)) == {name: value}
    assert load(tmp_path, at(path, value), form, {variable_name(name): str(getattr(SubconsciousnessConfig(), name))}).origins[name] == variable_name(name)
    with pytest.raises(ConfigError, match=f"gnc.{form}: {name} is given twice"): load(tmp_path, at(path, value) | {name: value}, form)


@pytest.mark.parametrize("name", RETIRED)
def test_a_retired_name_is_accepted_everywhere_with_one_remark(tmp_path, name):
    always, instead = RETIRED[name]
    for s in (load_settings({name: "7 "}, env={}), load_settings(env={variable_name(name): "7 "}), load(tmp_path, {name: "7 "})):
        assert s.config == SubconsciousnessConfig() and [r.endswith(f"{name} is passed over: {instead}") for r in s.remarks] == [True]
    assert not load_settings({name: always.upper()}, env={}).remarks


@both_forms
@pytest.mark.parametrize("path, value, said", ROWS["a key or a value that is none"], ids=str)
def test_a_key_or_a_value_that_is_none(tmp_path, path, value, said, form):
    with pytest.raises(ConfigError) as e: load(tmp_path, at(path, value), form)
    assert f"gnc.{form}" in str(e.value) and said in str(e.value)


USERS = sorted(n for n, f in _FIELDS.items() if "file" not in f.metadata)  # What only the user sets


@both_forms
@pytest.mark.parametrize("name", USERS)
def test_what_is_the_users_alone_is_ignored_in_a_file_and_said(tmp_path, name, form):
    for d in ({name: "x"}, {"consolidation": {name: "x"}}, at(f"similarity.{name}", "x")):
        s = load(tmp_path, d, form)
        assert s.config == SubconsciousnessConfig() and s.origins[name] == "default"
        assert [f"{name} is ignored" in r and variable_name(name) in r for r in s.remarks] == [True]


@pytest.mark.parametrize("name", sorted(_FIELDS.keys() - USERS))
def test_a_file_sets_what_does_no_harm_and_only_so_far(tmp_path, name):
    least, most, but = _FIELDS[name].metadata["file"]
    default = getattr(SubconsciousnessConfig, name)
    assert default not in but and (type(default) not in (int, float) or least <= default <= most)
    same = load(tmp_path, {name: "auto" if default is None else default}, "toml")
    assert getattr(same.config, name) == default and not same.remarks and same.origins[name] != "default"
    for limit, beyond in ((least, least / 2 if _FIELDS[name].type == "float" else least - 1), (most, most * 2)):
        if limit in (float("inf"), float("-inf")): continue
        s = load(tmp_path, {name: beyond, "max_cluster_size": most} if name == "min_cluster_size" else {name: beyond}, "toml")
        assert getattr(s.config, name) == limit and f"{name} = " in s.remarks[0] and variable_name(name) in s.remarks[0]
        assert getattr(load(tmp_path, {}, "toml", {variable_name(name): str(beyond)}).config, name) == beyond
    for value in but:
        s = load(tmp_path, {name: value}, "toml")
        assert getattr(s.config, name) == default and f"{name} is ignored" in s.remarks[0]


def test_a_hostile_file_is_told_by_config_and_doctor_and_by_nothing_else(tmp_path):
    home = new_repo(tmp_path, story())
    (home / "gnc.toml").write_text("".join(f"{n} = 100000\n" for n in USERS) + "max_change = 1.0\nsummaries_token_budget = 1000000\n")
    quiet = gnc("consolidate", "--dry-run", repo=home)
    assert quiet.code == 0 and "MEMORY_WORKERS" not in quiet.out + quiet.err
    told = " ".join(gnc("config", repo=home).out.split())
    assert all(f"{n} is ignored" in told for n in USERS) and "max_change = 1 counts as 0.1" in told and "set MEMORY_WORKERS" in told
    told = " ".join(gnc("doctor", repo=home).out.split())
    assert told.count("is ignored") == 1 and f"gnc config, which names {len(USERS) + 1} more" in told
    assert starting.settings_of({}, str(home), [])["summaries_token_budget"] == 8000


@pytest.mark.parametrize("said, want", [("strict", 0.95), ("Balanced", 0.85), (" loose ", 0.75), (0.5, 0.5), ("auto", None), ("0.9", 0.9)])
def test_a_threshold_may_be_named(tmp_path, said, want):
    assert load_settings({"write_threshold": said}, env={}).config.write_threshold == want
    assert load_settings(env={"MEMORY_CONSOLIDATION_WRITE_THRESHOLD": str(said)}).config.write_threshold == want
    assert [load(tmp_path, {"write_threshold": said}, form).config.write_threshold for form in ("yaml", "toml")] == [want, want]


SETTINGS = st.fixed_dictionaries({}, optional={
    "hot_threshold": st.floats(0.61, 0.99), "importance_half_life_days": st.one_of(st.just(float("inf")), st.floats(0.01, 1e9)),
    "grace_days": st.integers(0, 99), "hook_enabled": st.booleans(),
    "write_threshold": st.one_of(st.none(), st.floats(0.01, 0.99), st.sampled_from(["strict", "loose"])),
    "hook_schedule": st.sampled_from("off|no|1.0|~|010|2026-01-31|a: b|# x|'|null|é\U0001f600|- x|x\ny|.inf|&a|*a|!t".split("|")),
    "max_cluster_size": st.integers(3, 100)})


@pytest.mark.slow
@given(SETTINGS, st.booleans())
def test_what_is_written_in_yaml_is_what_is_meant(tmp_path_factory, d, flow):
    path = tmp_path_factory.mktemp("a") / "a.yaml"
    path.write_text(yaml.safe_dump(d, default_flow_style=flow, allow_unicode=True), encoding="utf-8")
    assert load_settings(env={}, file=path).config == load_settings({k: v for k, v in d.items() if v is not None}, env={}).config


@pytest.mark.slow
@given(st.text(st.sampled_from("ab:-?[]{},&*!|>%@#'\"\\ \n\t\r.0~<=\x00\x85\u2028\ufeff\U0001f600"), max_size=40))
def test_whatever_is_in_it_texts_come_out_or_a_refusal(text):
    def texts(x): return isinstance(x, str) or isinstance(x, list) or isinstance(x, dict) and all(isinstance(k, str) and texts(v) for k, v in x.items())
    try: assert texts(found := from_yaml(text)) and isinstance(found, dict)
    except ValueError as e: assert str(e)


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefghi", "bcdefghij"))
NONSENSE = [
    (b"- embedder\n", "has no settings", "write `name: value`"), (b"lexical", "has no settings", "write `name: value`"),
    (b"[" * 60_000, "is nested too deep", "no setting stands"), (b"{a: " * 15_000, "is nested too deep", "no setting stands"),
    (b"embedder: \xff\xfe", "is not UTF-8 from byte 10 on", "save it as UTF-8"),
    ("embedder: lexical".encode("utf-16"), "is not UTF-8", "save it as UTF-8"),
    (b"#" * 66_000, "has more than 65536 bytes", "is it the right file?"),
    (b"embedder: a: b", "is not YAML: mapping values are not allowed here", "line 1, column 12"),
    (b"embedder: !!python/name:os.system", "has an alias or a tag", "write the value without it"),
    (b"!!python/object/apply:os.system ['touch here']", "has an alias or a tag", "write the value without it"),
    (b"embedder: !mine lexical", "has an alias or a tag", "without it"), (LAUGHS.encode(), "has an alias or a tag", "without it"),
    (b"a: &a {b: *a}", "has an alias or a tag", "without it"), (b"? {a: 1}\n: 2", "is not YAML", "line 1"),
    (b"embedder: \x00", "is not YAML", "special characters"),
    (b"embedder: lexical\n---\nembedder: minilm", "is not YAML: expected a single document", "line 2"),
    (b"<<: {embedder: lexical}", "no setting '<<'", "gnc config"), (b"embeder: lexical", "no setting 'embeder'", "did you mean embedder?"),
    (b"hot_threshold: ~", "hot_threshold must be a number", "not '~'"), (b"hot_threshold: [0.7]", "hot_threshold must be a number", "['0.7']")]


@pytest.mark.parametrize("raw, what, remedy", NONSENSE, ids=[what for _, what, _ in NONSENSE])
def test_nonsense_is_refused_with_file_and_remedy(tmp_path, raw, what, remedy):
    (tmp_path / "odd.yaml").write_bytes(raw)
    with pytest.raises(ConfigError) as e: load_settings(env={}, file=tmp_path / "odd.yaml")
    assert str(tmp_path / "odd.yaml") in str(e.value) and what in str(e.value) and remedy in str(e.value) and len(str(e.value)) < 500 + len(str(tmp_path))


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("raw", [raw for raw, *_ in NONSENSE[:16]], ids=lambda raw: str(raw[:20]))
def test_a_session_starts_whatever_is_in_the_file(tmp_path, raw):
    home = new_repo(tmp_path)
    (home / "gnc.yaml").write_bytes(raw)
    why = []
    assert starting.settings_of({}, str(home), why) == starting.DEFAULTS and len(why) == 1
    done = subprocess.run([*COMMAND, "hook", "session-start"], input=json.dumps({"cwd": str(home)}), capture_output=True, encoding="utf-8")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"continue": True}) and done.stderr.startswith("gnc hook session-start: ")
    assert "gnc.yaml" in done.stderr
