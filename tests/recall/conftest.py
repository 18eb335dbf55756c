"""What the tests of recall share."""
import shutil

import pytest
from calls import new_repo, run

from git_notes_consolidation.core.memory import sample_memories


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    "The sample project before and after a run."
    before = new_repo(tmp_path_factory.mktemp("sample") / "before", sample_memories())
    after = shutil.copytree(before, before.parent / "after")
    run(after, max_change=1.0)
    return before, after
