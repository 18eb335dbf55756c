"""Where a journey begins."""
import shutil
from datetime import datetime, timezone

import pytest
from person import Repo


@pytest.fixture(autouse=True)
def nothing_of_mine(home): "No settings, keys or caches of whoever runs the tests."


@pytest.fixture
def repo(tmp_path, home): return Repo(tmp_path / "mine").commit()


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    "What `gnc demo` builds, and what it printed; not to be written to."
    place = Repo(tmp_path_factory.mktemp("sample") / "sample")
    shutil.rmtree(place.path)
    place.now = datetime(2026, 11, 1, 12, tzinfo=timezone.utc)
    place.printed = place.gnc("demo", place.path, cwd=place.path.parent)
    return place
