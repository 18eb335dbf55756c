"""What the tests of the store share."""

import pytest
from clones import A, C, learn, make


@pytest.fixture
def pair(tmp_path):
    "Two clones that have each made a run, with a remote that knows of neither."
    one, two = make(tmp_path, "one", "two")
    learn(one, "run_1"); learn(two, "run_2", C, A)
    return one, two
