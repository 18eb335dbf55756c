"""Of what was found, what answers first: weights that were fitted on labelled stories."""
from __future__ import annotations
import json, math, re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
import numpy as np
from ..core.memory import Memory
from ..similarity.lexical import FUNCTION_WORDS
from ..supersession.blockers import closed
from ..text.factuality import is_fragment, stance
from .rank import _roots, _told, about_the_past

_NUMBERS = {w: str(n % 13) for n, w in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve "
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split())}
_NAME = re.compile(r"\b(?:[A-Za-z]*\d[\w.:/-]*|[A-Z][\w-]*)")
_START = re.compile(r"(?:\A|[.!?:;]\s+)\W*\w+")


@lru_cache(maxsize=2**12)
def names_of(text: str) -> frozenset[str]:
    "What tells one thing from its siblings: words with a digit, or with a capital letter inside of a sentence."
    text = re.sub(r"[A-Za-z]+", lambda m: _NUMBERS.get(m[0].lower(), m[0]), text[:4000])
    starts = {m.end() for m in _START.finditer(text)}
    found = (m[0] for m in _NAME.finditer(text) if m.end() not in starts or re.search(r"\d", m[0]))
    return frozenset(w.lower().strip(".:-/") for w in found) - FUNCTION_WORDS


def _shape(name: str) -> str:
    return re.sub(r"[a-z]+", lambda m: "a" if len(m[0]) == 1 else "w", re.sub(r"\d+", "9", name))


_YES = re.compile(r"(?i)\A\W*(?:(?:and|so|but) )?(?:is|are|was|were|do|does|did|can|may|must|has|have|had|will|would|should|am)\b")
_WHEN = re.compile(r"(?i)\bwhen\b|\bwhat (?:day|date|time)\b")
_WHY = re.compile(r"(?i)\bwhy\b|\breason\b")
_DATED = re.compile(r"(?i)\d|day\b|week|month")
_BECAUSE = re.compile(r"(?i)\bbecause|since\b|so that|reason")
_BLOCKED = re.compile(r"(?i)\bblock|stuck|waiting|broken|wrong|problem|fail")
_CHANGE = re.compile(r"(?i)\b(?:now|instead|no longer|not any ?more|back|after all|moved|renamed|from today|again|cancel\w*|"
                     r"dropped|solved|fixed|done|gone)\b")


@dataclass(frozen=True)
class Asking:
    "What a question is after."
    words: frozenset[str]
    names: frozenset[str]
    past: bool
    yes: bool
    when: bool
    why: bool
    blocked: bool

    @classmethod
    def of(cls, query: str) -> Asking:
        yes = bool(_YES.match(query))
        return cls(_roots(query), names_of(query), about_the_past(query) and not yes, yes, bool(_WHEN.search(query)),
                   bool(_WHY.search(query)), bool(_BLOCKED.search(query)))


@dataclass(frozen=True)
class _Read:
    title: frozenset[str]
    all: frozenset[str]
    lines: tuple[frozenset[str], ...]
    names: frozenset[str]
    said: frozenset[str]
    head: frozenset[str]
    stance: bool
    closed: bool


@lru_cache(maxsize=2**12)
def _read(m: Memory) -> _Read:
    said = frozenset(w.lower().strip(".:-/") for w in re.findall(r"[\w.:/-]+", re.sub(r"[A-Za-z]+", lambda x: _NUMBERS.get(x[0].lower(), x[0]), m.text[:4000])))
    lines = [_roots(m.summary), *(_roots(line) for line, _ in _told(m.content[:4000]))]
    return _Read(_roots(m.summary), _roots(m.text[:20_000]), tuple(lines), names_of(f"{m.summary}. {m.content}"), said,
                 names_of(m.summary), bool(stance(m.summary)) or "?" in m.summary or is_fragment(m), closed(m))


HITS = ("cosine", "cover", "title", "line", "rarest", "length", "names", "unnamed", "other", "open", "progress", "decision", "blocker",
        "blocked", "when", "why", "summary", "closed", "recent")
PAIRS = ("cosine", "of older title", "of newer title", "of older", "of newer", "rarest", "rarest in titles", "other", "shared", "nearest", "follows", "namespace",
         "blocker", "progress", "change", "newer open", "older open", "days")


def hit_features(q: Asking, found: Sequence[Memory], cosine: np.ndarray, summaries: Sequence[bool]) -> np.ndarray:
    read, n = [*map(_read, found)], len(found)
    rare = _rarity(read)
    whole = sum(map(rare, q.words)) or 1.0
    when = np.argsort(np.argsort([m.event_time.timestamp() for m in found], kind="stable"), kind="stable") / max(1, n - 1)
    rows = []
    for m, r, c, s, at in zip(found, read, cosine.tolist(), summaries, when.tolist()):
        hit = q.words & r.all
        share = lambda words: sum(map(rare, q.words & words)) / whole
        has = q.names & r.said
        other = any(_shape(x) == _shape(y) for x in q.names - has for y in r.head - q.names)
        rows.append([c, share(r.all), share(r.title), max(map(share, r.lines), default=0.0), max(map(rare, hit), default=0.0) / math.log(n + 1),
                     math.log(1 + len(m.text)), len(has) / len(q.names) if q.names else 0.0, float(bool(q.names) and not has), float(other),
                     float(r.stance), float(m.namespace == "progress"), float(m.namespace == "decisions"),
                     float(m.namespace == "blockers" and not q.blocked), float(m.namespace == "blockers" and q.blocked),
                     float(q.when and bool(_DATED.search(m.text))), float(q.why and bool(_BECAUSE.search(m.text))), float(s), float(r.closed), at])
    return np.array(rows).reshape(n, len(HITS))


def _rarity(read: Sequence[_Read]):
    n, having = len(read), Counter(w for r in read for w in r.all)
    return lambda w: max(0.0, math.log((n + 0.5) / (having[w] + 0.5)))


def pair_features(found: Sequence[Memory], C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (m, 2) older and newer; (m, k)
    read, n = [*map(_read, found)], len(found)
    rare, log = _rarity(read), math.log(n + 1)
    worth = lambda words: sum(map(rare, words))
    order = sorted(range(n), key=lambda i: (found[i].event_time, found[i].id))
    where = []; rows = []
    for k, i in enumerate(order):
        later = order[k + 1:]
        for j in later:
            a, b, c = read[i], read[j], C[i, j]
            both, heads = a.all & b.all, a.title & b.title
            other = any(_shape(x) == _shape(y) for x in a.head - b.names for y in b.head - a.names if not re.fullmatch(r"[\d.,:%-]+", x))
            rows.append([c, worth(heads) / (worth(a.title) + 0.1), worth(heads) / (worth(b.title) + 0.1),
                         worth(both) / (worth(a.all) + 0.1), worth(both) / (worth(b.all) + 0.1), max(map(rare, both), default=0.0) / log, max(map(rare, heads), default=0.0) / log,
                         float(other), float(bool(a.head & b.head)), 1 / (1 + sum(C[i, x] > c for x in later)),
                         1 / (1 + sum(C[x, j] > c for x in order[:order.index(j)])), float(found[i].namespace == found[j].namespace),
                         float(found[i].namespace == "blockers"), float(found[j].namespace == "progress"), float(bool(_CHANGE.search(found[j].text))),
                         float(b.stance), float(a.stance), math.log1p(max(0.0, (found[j].event_time - found[i].event_time).total_seconds() / 86400)) / 5])
            where.append((i, j))
    return np.array(where, np.intp).reshape(-1, 2), np.array(rows).reshape(-1, len(PAIRS))


SUMS = ("fit", "overtaken", "overtaken, past", "overtaken, yes or no", "overtakes", "overtakes, past", "overtakes, yes or no", "recent, past", "recent, yes or no", "recent, when")
NEAR = 2.5


def sum_features(q: Asking, fit: np.ndarray, recent: np.ndarray, where: np.ndarray, p: np.ndarray) -> np.ndarray:
    over, takes = np.zeros(len(fit)), np.zeros(len(fit))
    best = fit.max(initial=-99.0)
    if len(where):
        a, b = where.T
        np.maximum.at(over, a, p / (1 + np.exp(-(fit[b] - best + NEAR))))
        np.maximum.at(takes, b, p * np.exp(np.minimum(0.0, fit[a] - best)))
    low, past, yes, when = np.log(1 - np.minimum(over, 0.98)), float(q.past), float(q.yes and not q.past), float(q.when and not q.past)
    return np.column_stack([fit, low * (1 - past), low * past, low * yes, takes * (1 - past), takes * past, takes * yes, recent * past, recent * yes, recent * when])


@dataclass(frozen=True, eq=False)
class Weights:
    hits: np.ndarray
    pairs: np.ndarray  # the last is for none
    sums: np.ndarray


@cache
def weights_of(embedder: str) -> Weights:
    told = json.loads((Path(__file__).parent.parent / "data" / "ranker.json").read_text())
    w = told.get(embedder) or told["lexical"]
    return Weights(*(np.array([*w[k].values()]) for k in ("hits", "pairs", "sums")))


def fit_of(w: Weights, F): return F @ w.hits
def succession(w: Weights, P): return 1 / (1 + np.exp(-np.clip(P @ w.pairs[:-1] + w.pairs[-1], -30, 30)))


def features(pool, query, V):
    q, found = Asking.of(query), [r.memory for r in pool]
    C = (V @ V.T).astype(float)
    F = hit_features(q, found, np.array([r.similarity for r in pool]), [r.kind == "summary" for r in pool])
    where, P = pair_features(found, C)
    return q, F, where, P


def answering_order(pool, query, V, refused, embedder):
    "What was found, what answers first; what was replaced lends its place to what replaced it."
    from dataclasses import replace
    from ..core.models import EdgeType, MemoryEdge
    if not pool: return []
    w = weights_of(embedder.partition("/")[0])
    q, F, where, P = features(pool, query, V)
    fit, p = fit_of(w, F), succession(w, P)
    told = np.array([r.kind == "summary" for r in pool])
    if len(where):
        no = np.array([told[a] or told[b] or MemoryEdge(pool[b].id, pool[a].id, EdgeType.SUPERSEDES).id in refused for a, b in where])
        p = np.where(no, 0.0, p)
    z = sum_features(q, fit, F[:, HITS.index("recent")], where, p) @ w.sums
    at = {r.id: n for n, r in enumerate(pool)}
    if not q.past:
        for n in np.argsort(-z):  # the best first
            r, k = pool[n], int(n)
            seen = set()
            while (x := pool[k]).superseded_kind == "full" and x.superseded_by in at and k not in seen: seen.add(k); k = at[x.superseded_by]
            if k != n: z[k] = max(z[k], z[n] + 1e-6); z[n] = min(z[n], z[k]) - 20.0 if x is not r else z[n]
    order = np.argsort(-z, kind="stable")
    place = {int(n): k for k, n in enumerate(order)}
    newer = {}
    for (a, b), x in zip(where.tolist(), p.tolist()):
        if x >= 0.5 and place[b] < place[a] and x > newer.get(a, (0,))[0]: newer[a] = x, b
    return [replace(pool[n], newer=pool[newer[n][1]].id if n in newer else None) for n in order.tolist()]
