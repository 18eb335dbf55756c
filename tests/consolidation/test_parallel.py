"""Several processes: the same plan, whatever becomes of them."""
import os

import pytest
from helpers import replace_everywhere
from git_notes_consolidation.core import runtime as parallel
from git_notes_consolidation.consolidation import stores as service
from git_notes_consolidation.consolidation import scan as consolidation_scan
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.core.memory import SAMPLE_NOW, sample_memories
from calls import new_repo

HERE = os.getpid()


def dies_elsewhere(x, here=HERE):
    if os.getpid() != here: os._exit(9)
    return x + 1


@pytest.mark.slow
def test_a_process_that_is_killed_costs_time_only(): assert parallel.parallel_map(dies_elsewhere, [1, 2, 3], 2) == [2, 3, 4]


@pytest.mark.slow
def test_the_plan_is_the_same_on_any_number_of_processes(tmp_path, monkeypatch):
    replace_everywhere(monkeypatch, parallel, "MIN_SECONDS", 0.0)
    seen, spread = [], parallel.parallel_map
    def watched(f, shares, n):
        seen.append((n, len(shares)))
        return spread(f, shares, n)
    replace_everywhere(monkeypatch, parallel, "parallel_map", watched)
    home = new_repo(tmp_path / "year", sample_memories())
    services = [service.open_service(home, load_settings({"workers": n, "max_change": 1.0})) for n in (1, 2, 3)]
    plans = [s.plan(SAMPLE_NOW, consolidation_scan.Scope(), True).to_json() for s in services]
    assert plans[0] == plans[1] == plans[2] and {n for n, _ in seen} == {1, 2, 3} and all(k > 1 for n, k in seen if n > 1)
