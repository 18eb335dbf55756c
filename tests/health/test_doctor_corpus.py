"""The doctor looks at real notes, and at the plugin's own index."""
import shutil
import sqlite3
from contextlib import closing

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


@pytest.mark.slow
def test_the_plugins_index_of_a_small_project(shared, tmp_path):
    "As its capture left it and after a full reindex, which lost the memory behind a rule."
    import tarfile
    archive = shared / "corpus" / "plugin-sample.tar.gz"
    if not archive.exists(): pytest.skip(f"no {archive.name} in the shared data")
    with tarfile.open(archive) as t: t.extractall(tmp_path, filter="data")
    home = tmp_path / "repo"
    def index_after(name): shutil.copy(tmp_path / f"index_after_{name}.db", home / ".memory/index.db"); return [f.what for f in look(home) if f.area == "index"]
    assert index_after("capture") == ["33 rows, and every memory of the notes among them."]
    assert index_after("full_reindex") == ["1 memory of the notes not in the index, 1 of which the plugin's reader never finds."]
    with closing(sqlite3.connect(tmp_path / "index_after_capture.db")) as conn:
        rows = [(i.replace(c, c[:7]), c, *more) for i, c, *more in conn.execute("SELECT id, commit_sha, namespace, summary, content, timestamp FROM memories")]
    with closing(sqlite3.connect(home / ".memory/index.db")) as conn, conn:
        conn.execute("INSERT OR IGNORE INTO memories SELECT * FROM memories WHERE 0")
        conn.execute("ATTACH ? AS captured", (str(tmp_path / "index_after_capture.db"),))
        conn.execute("INSERT INTO memories SELECT * FROM captured.memories")
    assert rows and any("32 memories in the index under two names" in f.what for f in look(home))
