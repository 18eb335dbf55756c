"""Which pairs get judged: what the candidates find, and what finding them costs.

    python benchmarks/bench_candidates.py [n]              n = 10,000 memories for the cost
    python benchmarks/bench_candidates.py --pairs FILE     recall on documents of another file, each source a pool of its own

Recall is the share of true pairs whose older one is among the candidates of the newer: on the sample's story, on the development half of the
fixture with the sample beside it, and on a file of pairs. Where MEMORY_EMBEDDING_MODEL_DIR names weights, the model's vectors are asked too;
the cost of fusing is measured with a random projection in their place. Compare within a run, not across machines.
"""
from __future__ import annotations
import json, os, resource, subprocess, sys, time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
KS = (1, 2, 3, 5, 10, 20)


def memory(d: dict):
    "A document of a file of pairs."
    from git_notes_consolidation.core.memory import Memory, as_utc
    when = as_utc(datetime.fromisoformat((d.get("date") or "2000-01-01").replace("Z", "+00:00")))
    return Memory(d["id"], "0" * 40, d.get("namespace", "decisions"), d["title"][:100], d["text"], when)


def sample() -> tuple[list, list[tuple[int, int]]]:
    "The sample, each text once, and what its story says about it."
    from git_notes_consolidation.core.memory import sample_memories
    ms = sample_memories()
    once = list({m.text: m for m in reversed(ms)}.values())[::-1]
    row = {m.text: i for i, m in enumerate(once)}
    story = map(json.loads, (ROOT / "tests" / "fixtures" / "sample_story.jsonl").read_text(encoding="utf-8").splitlines())
    told = [(row[ms[s["newer"]].text], row[ms[s["older"]].text]) for s in story if s["kind"] in ("restated", "supersedes", "resolved", "changed")]
    return once, [p for p in told if p[0] != p[1]]


def fixture() -> tuple[list, list[tuple[int, int]]]:
    "The development half, in one pool with the sample."
    rows = [r for r in read(ROOT / "git_notes_consolidation" / "data" / "supersession.jsonl") if r["split"] == "dev"]
    return pooled(rows, sample()[0])


def read(path: Path) -> list[dict]: return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def pooled(rows: Sequence[dict], more: Sequence = ()) -> tuple[list, list[tuple[int, int]]]:
    "All documents of some pairs, and the positive pairs as rows."
    docs = {r[k]["id"]: memory(r[k]) for r in rows for k in ("older", "newer")}
    at = {i: n for n, i in enumerate(docs)}
    return [*docs.values(), *more], [(at[r["newer"]["id"]], at[r["older"]["id"]]) for r in rows if r["label"] in ("full", "partial")]


def halves(memories: Sequence) -> dict[str, list]:
    "The searches that are compared, and their fusions."
    from git_notes_consolidation.similarity.neighbours import SearchVectors
    from git_notes_consolidation.similarity.lexical import LexicalEmbedder
    lexical = LexicalEmbedder()
    words, titles = (SearchVectors(lexical.embed([getattr(m, part) for m in memories]), lexical.floor) for part in ("text", "summary"))
    out = {"lexical": [words], "its titles alone": [titles], "lexical + titles": [words, titles]}
    if (weights := os.environ.get("MEMORY_EMBEDDING_MODEL_DIR")):
        from git_notes_consolidation.similarity.minilm import MiniLMEmbedder
        embedder = MiniLMEmbedder(weights)
        model = SearchVectors(embedder.embed([m.text for m in memories]), embedder.floor)
        out |= {"MiniLM": [model], "MiniLM + lexical": [model, words]}
    return out


def named(memories: Sequence) -> set[tuple[int, int]]:
    "Pairs in which the newer names the older by an id or by its title."
    from git_notes_consolidation.consolidation.candidates import _named, _titled
    order = sorted(range(len(memories)), key=lambda i: (memories[i].timestamp, i))
    found = [memories[i] for i in order]
    return {(order[a], order[b]) for pairs in (_named(found), _titled(found)) for a, b in pairs}


def recalls(pools: Iterable[tuple[list, list[tuple[int, int]]]]) -> tuple[dict[str, list[float]], int]:
    "By search: recall with the k nearest of the namespace and half as many of the others, then with 10, 5 and those named."
    from git_notes_consolidation.similarity.neighbours import fused_older
    hits: dict[str, list[list[bool]]] = defaultdict(list)
    for memories, true in pools:
        ages, spaces, by_name = [m.timestamp.timestamp() for m in memories], [m.namespace for m in memories], named(memories)
        for name, asked in halves(memories).items():
            found = [fused_older(asked, ages, spaces, k, -(-k // 2), {"progress": ["blockers"]}, depth=max(20, k)) for k in KS]
            pairs = [set(zip(f.newer.tolist(), f.older.tolist())) for f in found]
            hits[name] += [[p in there for there in pairs] + [p in pairs[KS.index(10)] | by_name] for p in true]
    return {name: np.mean(rows, axis=0).tolist() for name, rows in hits.items()}, len(next(iter(hits.values()), []))


def table(title: str, pools: Iterable[tuple[list, list[tuple[int, int]]]]) -> None:
    found, n = recalls(pools)
    print(f"\n{title}: {n} true pairs\n\n| search |" + "".join(f" {k} |" for k in KS) + " 10, and named |\n|---|" + "---|" * (len(KS) + 1))
    for name, row in found.items(): print(f"| {name} |" + "".join(f" {x:.3f} |" for x in row), flush=True)


def vectors(n: int) -> tuple[list, np.ndarray]:
    from generate import generate
    from git_notes_consolidation.similarity.lexical import LexicalEmbedder
    memories = generate(n, repeats=0)
    return memories, LexicalEmbedder().embed([m.text for m in memories])


def child(job: str, n: int) -> None:
    "One job in a process of its own: its seconds, those of the product of all rows with all rows, its pairs, and the memory of the process."
    from git_notes_consolidation.similarity.neighbours import SearchVectors, fused_older
    from git_notes_consolidation.similarity.lexical import LexicalEmbedder
    from git_notes_consolidation.similarity.embedder import round_vectors
    memories, L = vectors(n)
    model = round_vectors(L @ np.random.default_rng(0).normal(size=(L.shape[1], 384)))
    begin = time.perf_counter()
    for a in range(0, n, 1024): L[a:a + 1024] @ L.T
    product, before = time.perf_counter() - begin, peak()
    asked = {"lexical": [SearchVectors(L, LexicalEmbedder.floor)], "fused": [SearchVectors(model, 0.2), SearchVectors(L, LexicalEmbedder.floor)]}
    begin = time.perf_counter()
    if job in asked: pairs = len(fused_older(asked[job], np.arange(n), [m.namespace for m in memories], kin={"progress": ["blockers"]}).newer)
    else: pairs = len(named(memories))
    print(json.dumps({"seconds": time.perf_counter() - begin, "product": product, "pairs": pairs, "before": before, "peak": peak()}))


def peak() -> float: return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)


def cost(n: int) -> None:
    print(f"\n{n:,} memories, 1,024 lexical dimensions and 384 of a stand-in for a model\n")
    print("| | s | of one product of all rows | pairs a memory | peak MB before | peak MB |\n|---|---|---|---|---|---|")
    for job in ("lexical", "fused", "named"):
        done = subprocess.run([sys.executable, __file__, "--child", job, str(n)], capture_output=True, text=True, check=True)
        r = json.loads(done.stdout)
        print(f"| {job} | {r['seconds']:.2f} | {r['seconds'] / r['product']:.1f} | {r['pairs'] / n:.1f} | {r['before']:.0f} | {r['peak']:.0f} |", flush=True)


def main(args: list[str]) -> None:
    if args[:1] == ["--child"]: return child(args[1], int(args[2]))
    if args[:1] == ["--pairs"]:
        by: dict[str, list[dict]] = defaultdict(list)
        for r in read(Path(args[1])): by[r["source"]].append(r)
        for source, rows in sorted(by.items()): table(source, [pooled(rows)])
        return table("all but RFCs", [pooled(rows) for source, rows in sorted(by.items()) if source != "rfc"])
    table("The sample", [sample()])
    table("The fixture's development half", [fixture()])
    cost(int(args[0]) if args else 10_000)


if __name__ == "__main__": main(sys.argv[1:])
