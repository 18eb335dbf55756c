"""Memories in any number, with the statistics of a real corpus: for benchmarks.

The numbers below were counted in the notes that the main plugin's own project kept (zircote/git-notes-memory-manager, December 2025: 6,299 records,
4,271 memories, 1,491 texts, 87 commits). No text of it is here: words are drawn from an invented vocabulary and from the sample's sentences.

    python benchmarks/generate.py 100000 DIR                a new repository DIR that holds them
"""
import bisect
import itertools
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from git_notes_consolidation.core.memory import SAMPLE_NOW, Memory, mem, sample_memories
from git_notes_consolidation.store.git import MEM, Repo, commit_stream, git, open_repo
from git_notes_consolidation.store.reader import note_text

NAMESPACES = {"progress": 2186, "patterns": 932, "learnings": 633, "decisions": 469, "blockers": 48, "research": 3}
QUANTILES = (0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1)
BODY = (12, 119, 157, 198, 205, 214, 709, 1006, 1594, 3022)  # Characters of a text's body, at these quantiles
TITLE = (3, 11, 14, 27, 54, 100, 100, 100, 100, 100)
ONCE = 0.67  # Of all texts, how many are there once
AGAIN = 1.0  # Spread of the logarithm of how often the others are
NEARBY = 115  # Median number of memories between a text and a repeat of it, of the spread
APART = 1.1
SESSION, SESSION_SPREAD = 14, 1.58  # Memories of one commit: median, and the spread of the logarithm; their mean is 49
BURST, QUICK, PAUSE, PAUSE_SPREAD = 10, 0.045, 52, 1.1  # A capture hook writes so many, so many seconds apart, and rests so long
TOPIC = 0.45  # Of all texts, how many are about what another is about
REPLACES = 0.01  # Of all texts, how many replace one by name


def quantile(rng: random.Random, at: Sequence[int]) -> int:
    "A number with these quantiles."
    p = rng.random()
    i = min(bisect.bisect_right(QUANTILES, p), len(at) - 1)
    low, high = QUANTILES[i - 1], QUANTILES[i]
    return round(at[i - 1] + (at[i] - at[i - 1]) * (p - low) / (high - low))


def counts(rng: random.Random, n: int, repeats: float) -> Iterator[int]:
    "How often each text is there, n in all; a share of them repeats."
    extra = repeats / (1 - repeats)  # To a text
    more = min(1 - ONCE, extra / 1.5)
    while n:
        k = 1 if rng.random() >= more else 1 + max(1, round(rng.lognormvariate(0, AGAIN) * extra / more / 1.65))
        yield (k := min(k, n))
        n -= k


def order(rng: random.Random, n: int, repeats: float) -> list[int]:
    "Which text stands at each place; a repeat is seldom far from the first."
    if not n: return []
    places, often = [], list(counts(rng, n, repeats))
    for text, k in enumerate(often):
        at = rng.uniform(0, n)
        places += [(at + (rng.lognormvariate(0, APART) * NEARBY if i else 0), text) for i in range(k)]
    number: dict[int, int] = {}
    return [number.setdefault(text, len(number)) for _, text in sorted(places)]


def moments(rng: random.Random, n: int, days: float) -> list[float]:
    "Seconds before the end: sessions, in each of them bursts, in each burst a memory every few hundredths of a second."
    ago: list[float] = []
    while len(ago) < n:
        at, left = rng.uniform(0, 86400 * days), min(n - len(ago), 1 + round(rng.lognormvariate(0, SESSION_SPREAD) * SESSION))
        for _ in range(left):
            at -= QUICK * rng.uniform(0.5, 1.5) if rng.random() > 1 / BURST else rng.lognormvariate(0, PAUSE_SPREAD) * PAUSE
            ago.append(at)
    return sorted((max(a, 0.0) for a in ago), reverse=True)


class Words:
    "A vocabulary of English and invented words, in which few are frequent."

    def __init__(self, rng: random.Random) -> None:
        plain = sorted({w for m in sample_memories() for w in m.content.split() if w.isalpha() and w.islower()})
        parts = [a + b for a in "b d f g k l m n p r s t v z br tr st kl".split() for b in "a e i o u ar en il on".split()]
        self.rng, self.plain = rng, rng.sample(plain, len(plain))
        self.own = ["".join(rng.choices(parts, k=rng.randint(2, 4))) for _ in range(12_000)]
        self.often = list(itertools.accumulate(1 / (i + 3) for i in range(len(self.plain))))

    def topic(self) -> list[str]: return self.rng.choices(self.own, k=14)

    def sentence(self, topic: list[str]) -> str:
        n = self.rng.randint(6, 16)
        words = self.rng.choices(self.plain, cum_weights=self.often, k=n)
        for i in range(0, n, 2): words[i] = self.rng.choice(topic)
        return " ".join(words).capitalize() + "."

    def text(self, topic: list[str], size: int) -> str:
        said = [self.sentence(topic)]
        while sum(map(len, said)) + len(said) < size: said.append(self.sentence(topic))
        return " ".join(said)[:max(size, 3)]


def generate(
    n: int,
    repeats: float = 0.8,  # Of all memories, how many say exactly what an earlier one says
    seed: int = 7,
    days: float = 365,  # From the first to the last
) -> list[Memory]:
    "n memories, the oldest first, the last within the day before the sample's now."
    rng = random.Random(seed)
    words, texts, topics = Words(rng), list[tuple[str, str, str]](), list[list[str]]()
    out, spaces = [], list(itertools.accumulate(NAMESPACES.values()))
    for text, ago in zip(order(rng, n, repeats), moments(rng, n, days)):
        if text == len(texts):
            if not topics or rng.random() >= TOPIC: topics.append(words.topic())
            topic = topics[-min(len(topics), 1 + int(rng.expovariate(0.1)))]
            body = f"{words.text(topic, quantile(rng, BODY))} Build {text}."
            if texts and rng.random() < REPLACES: body = f"Supersedes NOTE-{rng.randrange(text)}. {body}"
            texts.append((f"NOTE-{text} {words.text(topic, quantile(rng, TITLE))}"[:100], body, rng.choices(list(NAMESPACES), cum_weights=spaces)[0]))
        title, body, space = texts[text]
        out.append(mem(title, body, namespace=space, now=SAMPLE_NOW - timedelta(seconds=ago)))
    return out


def sessions(memories: Sequence[Memory]) -> list[list[Memory]]:
    "The memories of each commit: whatever twenty minutes' rest do not part."
    out: list[list[Memory]] = []
    for m in memories:
        if out and m.timestamp - out[-1][-1].timestamp < timedelta(minutes=20): out[-1].append(m)
        else: out.append([m])
    return out


def _file(path: str, text: str) -> bytes:
    raw = text.encode()
    return b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(raw), raw)


def add(repo: Repo, memories: Sequence[Memory]) -> None:
    "A commit for each session, and the plugin's notes on it: to a new repository, or on top of what is there."
    groups, notes = sessions(memories), defaultdict[str, list[tuple[str, str]]](list)
    there = git(repo.path, "for-each-ref", "--format=%(refname)").decode().split()
    def parent(ref: str) -> str: return f"{ref}^0" if ref in there else ""
    logs = ([_file("LOG.md", f"{g[-1].timestamp:%Y-%m-%d %H:%M}\n")] for g in groups)
    main = (commit_stream("refs/heads/main", g[-1].timestamp, f"Work of {g[-1].timestamp:%Y-%m-%d}", log, parent("refs/heads/main") if not i else "")
            for i, (g, log) in enumerate(zip(groups, logs)))
    git(repo.path, "fast-import", "--quiet", input=b"".join(main))
    commits = git(repo.path, "rev-list", "--first-parent", f"--max-count={len(groups)}", "refs/heads/main").decode().split()[::-1]
    for commit, g in zip(commits, groups):
        by: dict[str, list[str]] = defaultdict(list)
        for m in g: by[m.namespace].append(note_text(m))
        for space, said in by.items(): notes[f"{MEM}{space}"].append((commit, "\n".join(said)))
    when = max(m.timestamp for m in memories)
    stream = [commit_stream(ref, when, "Notes added by 'git notes append'", [_file(*row) for row in rows], parent(ref)) for ref, rows in sorted(notes.items())]
    git(repo.path, "fast-import", "--quiet", input=b"".join(stream))


def repository(home: Path, memories: Sequence[Memory]) -> Repo:
    "A new repository that holds them."
    home.mkdir(parents=True, exist_ok=True)
    git(home, "init", "-q", "-b", "main")
    add(open_repo(home), memories)
    return open_repo(home)


if __name__ == "__main__": repository(Path(sys.argv[2]), generate(int(sys.argv[1])))
