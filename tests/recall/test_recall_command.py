"""`gnc recall`, for people and for programs, and as a process that loads little."""
import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from calls import gnc, gnc_process, new_repo
from helpers import refs

from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.store.git import open_repo, tips


@pytest.fixture
def home(story_after, tmp_path): return shutil.copytree(story_after, tmp_path / "repo")


NOW = ("--now", SAMPLE_NOW.isoformat())


@pytest.mark.slow
def test_the_command(home):
    told = gnc("recall", "We build on", "--mode", "deep", repo=home)
    assert told.code == 0 and "We build on FastAPI" in told.out and "ADR-000: We build on Flask" not in told.out
    data = gnc("recall", "We build on", "--limit", "3", "--mode", "exhaustive", "--json", repo=home).json
    assert (len(data["results"]), data["mode"], data["as_of"]) == (3, "exhaustive", None)
    assert {"id", "summary", "score", "similarity", "tier", "kind", "superseded_by", "stands_for", "retention", "timestamp"} <= data["results"][0].keys()
    past = gnc("recall", "What did we build on before?", repo=home)
    assert "→ replaced by" in past.out and "We build on Flask" in past.out
    then = gnc("recall", "We build on", "--as-of", "2026-02-01", "--json", "--no-count", repo=home).json
    assert {"ADR-000: We build on Flask"} <= {r["summary"] for r in then["results"]} and all(r["timestamp"] < "2026-02-02" for r in then["results"])


@pytest.mark.parametrize("args, word", [(["--mode", "all"], "--mode all"), (["--as-of", "lately"], "--as-of"), (["--limit", "0"], "limit")])
def test_wrong_usage(home, args, word):
    told = gnc("recall", "retries", *args, repo=home)
    assert told.code == 2 and word in told.err


HEAVY = "sklearn scipy openai onnxruntime tokenizers huggingface_hub pandas plotly anyio".split()
OURS = tuple(f"git_notes_consolidation.{m}" for m in (
    "consolidation.service consolidation.relate supersession.judge evaluation.pairs llm.client store.audit apps.fleet.sweep "
    "temporal.resolve").split())


def loaded(code, *args, watch=HEAVY):
    "Which of the watched packages, and of our own that read the notes, a program loads."
    code += f"\nimport json, sys; print(json.dumps([m for m in sys.modules if m in {[*watch, *OURS]!r}]))"
    return json.loads(subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=True).stdout.splitlines()[-1])


@pytest.mark.slow
def test_the_process_loads_little(home):
    gnc("recall", "retries", "--no-count", repo=home)
    # All of them, as the program does
    code = "import sys\nfrom git_notes_consolidation.apps.cli import program as commands\nassert commands.main(sys.argv[1:]) == 0"
    assert loaded(code, "--repo", home, *NOW, "recall", "retries") == []
    code = "import sys\nfrom git_notes_consolidation import get_recall_service\nassert get_recall_service(sys.argv[1]).search('retries', mode='exhaustive')"
    assert loaded(code, home, watch=[*HEAVY, "pydantic", "typer", "rich"]) == []


@pytest.mark.slow
def test_a_process_without_the_extra(home):
    code = (f"import sys\nfor n in {HEAVY!r}: sys.modules[n] = None\n"
            "from git_notes_consolidation.apps.entry import main; main()")
    for drop in (False, True):
        if drop: shutil.rmtree(home / ".memory")  # The notes have to be read again
        done = subprocess.run([sys.executable, "-c", code, "--repo", str(home), *NOW, "recall", "retries", "--json"], capture_output=True, text=True)
        assert done.returncode == 0 and json.loads(done.stdout)["results"], done.stderr


@pytest.mark.slow
def test_as_a_process(home):
    told = gnc_process("--repo", home, *NOW, "recall", "*", "--limit", "2", "--json")
    assert told.code == 0 and len(told.json["results"]) == 2 and told.err == ""
    assert datetime.fromisoformat(told.json["results"][0]["timestamp"]).tzinfo == UTC and tips(open_repo(home)) == refs(home)


def test_a_cache_that_leads_elsewhere_is_refused(tmp_path):
    home = new_repo(tmp_path / "repo", [mem("One thing")])
    (tmp_path / "elsewhere").mkdir()
    (home / ".memory").symlink_to(tmp_path / "elsewhere")
    done = gnc("recall", "one", repo=home)
    assert done.code == 1 and "is a link" in done.err and not any((tmp_path / "elsewhere").iterdir())


def test_all_blockers_are_listed_with_the_summary_of_some(sample):
    _, after = sample
    for more in ((), ("--mode", "exhaustive")):
        said = gnc("recall", "*", "--namespace", "blockers", "--no-count", "--json", *more, repo=after)
        assert said.code == 0 and {r["namespace"] for r in said.json["results"]} == {"blockers"}, said.err
