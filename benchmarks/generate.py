"""Memories in any number, made of the sample's sentences: for benchmarks."""
import random
from datetime import timedelta

from git_notes_consolidation.models import SAMPLE_NOW, Memory, mem, sample_memories


def generate(n: int, repeats: float = 0.2, seed: int = 7) -> list[Memory]:
    "n memories over a year in ten namespaces; a share of them repeats of earlier ones to the letter, every hundredth supersedes one by name."
    rng, sample = random.Random(seed), sample_memories()
    sentences = sorted({s.strip() for m in sample for s in m.content.replace("\n", " ").split(". ") if 40 < len(s) < 200})
    out: list[Memory] = []
    for i in range(n):
        when = SAMPLE_NOW - timedelta(days=365 * (n - i) / n)
        if out and rng.random() < repeats:
            old = rng.choice(out)
            out.append(mem(old.summary, old.content, namespace=old.namespace, now=when))
            continue
        base = rng.choice(sample)
        body = ". ".join(rng.sample(sentences, rng.randint(2, 5))) + f". Ticket TW-{10_000 + i}, build {rng.randint(1, 9)}.{rng.randint(0, 99)}."
        if i % 100 == 99: body = f"Supersedes ADR-{rng.randrange(1, i)}. {body}"
        out.append(mem(f"ADR-{i}: {base.summary}"[:100], body, namespace=base.namespace, now=when))
    return out
