"""The embedders against each other: MEMORY_EMBEDDING_MODEL_DIR=DIR python benchmarks/bench_embedding.py [n]

DIR holds MiniLM's model.onnx and tokenizer.json, and perhaps model_qint8.onnx (`gnc models pull --dir DIR`, tools/export_minilm.py). Every row runs in a
process of its own, one after the other. The texts are the sample's memories. Loading is not in the rates; memory is the whole process's. Compare within a run.
"""
from __future__ import annotations
import json, os, resource, subprocess, sys, time
import numpy as np

HOME = os.environ.get("MEMORY_EMBEDDING_MODEL_DIR", "")


def embedder(job: str):
    from git_notes_consolidation.similarity.lexical import LexicalEmbedder
    from git_notes_consolidation.similarity.minilm import MiniLMEmbedder
    if job == "lexical": return LexicalEmbedder()
    return MiniLMEmbedder(HOME, int8="int8" in job, threads=1 if "one" in job else 2)


def padded(texts: list[str], e) -> np.ndarray:
    "The usual way: sorted by length, 32 in a batch, padded to the longest."
    session, cut = e._model
    ids = [cut.marked(t) for t in texts]
    order, X = sorted(range(len(ids)), key=lambda i: len(ids[i])), np.zeros((len(ids), 384), np.float32)
    for b in range(0, len(order), 32):
        batch = order[b:b + 32]
        block = np.zeros((len(batch), max(len(ids[i]) for i in batch)), np.int64)
        for row, i in zip(block, batch): row[:len(ids[i])] = ids[i]
        mask = np.arange(block.shape[1]) < np.array([[len(ids[i])] for i in batch])
        hidden, = session.run(None, {"input_ids": block, "attention_mask": mask.astype(np.int64), "token_type_ids": np.zeros_like(block)})
        X[batch] = (hidden * mask[..., None]).sum(1)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def child(job: str, n: int) -> None:
    "Embed with one of them, and print what it took."
    from git_notes_consolidation.core.memory import sample_memories
    texts = [m.text for m in sample_memories()] * (n // 400 + 1)
    e = embedder(job)
    start = time.perf_counter()
    e.embed(["Retry failed uploads"])
    load = time.perf_counter() - start
    wall, cpu = time.perf_counter(), time.process_time()
    X = padded(texts[:n], e) if "padded" in job else e.embed(texts[:n])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    kind = "int8" if "int8" in job else "float32"
    mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
    print(json.dumps({"wall": n / wall, "cpu": n / cpu, "load": load, "mb": mb,
                      "moved": float(np.abs(X - embedder(f"{kind}, one").embed(texts[:n])).max()) if "padded" in job else 0.0}))


def measure(job: str, n: int) -> dict:
    return json.loads(subprocess.run([sys.executable, __file__, "--child", job, str(n)], capture_output=True, text=True, check=True).stdout)


def main(n: int) -> int:
    from git_notes_consolidation.similarity.embedder import EmbeddingError
    from git_notes_consolidation.similarity.minilm import minilm_files
    kinds = []
    for int8 in (False, True):
        try: minilm_files(HOME or None, int8); kinds.append("int8" if int8 else "float32")
        except (EmbeddingError, NotImplementedError) as e: print(f"{'int8' if int8 else 'float32'} left out: {e}")
    print(f"\n{n:,} texts of the sample\n\n{'':42}{'texts a CPU-s':>14}{'ratio':>8}{'a second':>10}{'load s':>8}{'peak MB':>9}   a component moves by")
    jobs = ["lexical", *(f"{k}, {how}" for k in kinds for how in ("one thread", "two threads", "padded batches of 32, one thread"))]
    rows = {job: measure(job, n * 10 if job == "lexical" else n) for job in jobs}
    reference = next((rows[j]["cpu"] for j in jobs if j != "lexical"), rows["lexical"]["cpu"])
    for job, r in rows.items():
        print(f"{job:42}{r['cpu']:14,.0f}{r['cpu'] / reference:7.1f}x{r['wall']:10,.0f}{r['load']:8.2f}{r['mb']:9.0f}   {r['moved'] or 0:.3f}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]: child(sys.argv[2], int(sys.argv[3]))
    else: sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
