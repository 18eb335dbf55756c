"""The doctor looks at real notes, and at the plugin's own index."""

import pytest
from git_notes_consolidation.store.damage import shattered
from git_notes_consolidation.store.git import MEM, open_repo, read_notes, tips
from test_doctor import look


@pytest.mark.slow
def test_the_plugins_own_project(corpus_repo):
    "Figures of the released plugin's own parser on the same notes: 4,974 records, 69 of them without a timestamp, in 33 notes another number than here."
    found = look(corpus_repo)
    notes = read_notes(open_repo(corpus_repo), tips(open_repo(corpus_repo), MEM)).texts.values()
    assert next(f for f in found if f.area == "notes").what == "4271 memories in 6299 records of 317 notes."
    folders = {f.where.removeprefix(MEM): f.what.split(" notes")[0] for f in found if "folders" in f.what}
    assert folders == {"decisions": "67 of 67", "progress": "83 of 83"}
    total = next(f for f in found if f.area == "plugin" and "folders" not in f.what)
    assert total.what.startswith(f"Plugin 0.12 finds {4974 - 69} of 6299 records, and cuts 47 short")
    assert not any(map(shattered, notes)) and not any(f.level == "broken" for f in found)
