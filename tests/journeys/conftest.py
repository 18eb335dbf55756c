"""Where a journey begins."""
import shutil
from datetime import datetime, timezone

import pytest
from person import Repo


BUILT = {"sample", "undecided", "two_dumps", "two_frameworks"}  # What takes long to build: who needs it runs in one process, with --dist loadgroup


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        for name in BUILT & {*getattr(item, "fixturenames", ())}: item.add_marker(pytest.mark.xdist_group(name))


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
