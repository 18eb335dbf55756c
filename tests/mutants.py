"""Summaries made wrong in one place, in seven ways, and told again in other words without becoming wrong: a test for whoever verifies summaries.

Whether a verification finds errors can only be measured on errors that are known; whether it cries wolf, on summaries that say the same in other
words. research/04_evaluation and the tests of verification use these. Every function takes a text and a source of chance, and returns the text with
one place changed, or nothing when it holds no such place; a seed gives the same change every time.
"""
import random, re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from git_notes_consolidation.text.facts import Fact, find_facts, same_value
from git_notes_consolidation.core.models import MemorySummary
from git_notes_consolidation.text.words import split_sentences


# A value is not changed by writing it otherwise: sixty seconds for a minute would be no error.
def _put(text: str, fact: Fact, new: str) -> str | None:
    "The text with another value in one place, unless it is the same one."
    made = text[:fact.start] + new + text[fact.end:]
    said = next((f for f in find_facts(made) if f.start == fact.start), None)
    return None if said and same_value(fact, said) else made


# Which value of a kind is changed is left to chance, or a verifier could learn that it is always the first.
def _one(text: str, kind: str, chance: random.Random) -> Fact | None:
    found = [f for f in find_facts(text) if f.kind == kind]
    return chance.choice(found) if found else None


def _digits(said: str, new: Callable[[int], int], chance: random.Random) -> str:
    "One run of digits replaced by another, written as before."
    m = chance.choice(list(re.finditer(r"\d+(?:,\d{3})*", said)))
    n = str(max(new(int(m.group().replace(",", ""))), 0))
    written = f"{int(n):,}" if "," in m.group() else n.zfill(len(m.group()) if m.group()[0] == "0" else 0)
    return said[:m.start()] + written + said[m.end():]


_WORDS = "two three four five six seven eight nine ten eleven twelve".split()
_UNITS = [("ms", "s"), ("min", "h"), ("hours", "minutes"), ("days", "hours"), ("minutes", "seconds"),
          ("MB", "GB"), ("kB", "MB"), ("h", "min")]
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MONTHS = "January February March April May June July August September October November December".split()
_PARTS = "core worker shared common main utils legacy json store docs v2 handler base".split()


# A number gets a neighbour, a multiple or another unit: the slips of people and models.
def _number(text: str, chance: random.Random) -> str | None:
    if not (f := _one(text, "number", chance)): return None
    said = text[f.start:f.end]
    units = [(a, b) for a, b in _UNITS if re.search(rf"\d[ -]?{a}$", said)]
    if units and chance.random() < 0.3: return _put(text, f, re.sub(rf"{units[0][0]}$", units[0][1], said))
    def other(n: int) -> int:
        return chance.choice([n + 1, n - 1, n + chance.randint(2, 9), n * 2, n * 10, n * 3 + 1])
    if any(c.isdigit() for c in said): return _put(text, f, _digits(said, other, chance))
    first, *rest = said.split(" ")
    return (_put(text, f, " ".join([chance.choice([w for w in _WORDS if w != first.lower()]), *rest]))
            if first.lower() in _WORDS else None)


def _version(text: str, chance: random.Random) -> str | None:
    f = _one(text, "version", chance)
    return (_put(text, f, _digits(text[f.start:f.end], lambda n: n + chance.choice([1, 2, 7]), chance)) if f
            else None)


# Of a date one part is changed, so that the rest still tells which date is meant.
def _date(text: str, chance: random.Random) -> str | None:
    if not (f := _one(text, "date", chance)): return None
    said = text[f.start:f.end]
    named = [(n, names) for names in (_DAYS, _MONTHS) for n in names if n in said]
    if named and (chance.random() < 0.5 or not any(c.isdigit() for c in said)):
        return _put(text, f, said.replace(named[0][0],
                                          chance.choice([x for x in named[0][1] if x != named[0][0]])))
    return (_put(text, f, _digits(said, lambda n: n + chance.choice([-1, 1, 2]), chance))
            if any(c.isdigit() for c in said) else None)


# A path loses one of its words to another that a project could well have.
def _path(text: str, chance: random.Random) -> str | None:
    if not (f := _one(text, "path", chance)): return None
    words = list(re.finditer(r"[A-Za-z_]{2,}", text[f.start:f.end]))
    m = chance.choice(words) if words else None
    return (_put(text, f, text[f.start:f.start + m.start()] + chance.choice(_PARTS)
                 + text[f.start + m.end():f.end]) if m else None)


_OFF = [(r"\bno longer\b", "still"), (r"\bnever\b", "always"), (r"\bwithout\b", "with"),
        (r"\bcannot\b|\bcan['’]t\b", "can"), (r"\b(\w+)n['’]t\b", r"\1"),
        (r"\b(is|are|was|were|must|do|does|did|will|would|should|has|have|had|could|may|need) not\b", r"\1"),
        (r"\bnot (?!only\b)", ""),
        (r"\bno (?=[a-z])(?!longer)", ""), (r"\bnothing\b", "something"), (r"\bnone of\b", "all of")]
_ON = re.compile(
    r"\b(?:is|are|was|were|must|will|should|can|could|has|have|may|would)\b(?! not|n['’]t)(?= [a-z])")


# A negation is taken away where there is one, and put in after an auxiliary verb.
def _negation(text: str, chance: random.Random) -> str | None:
    off = [(m, new) for pattern, new in _OFF for m in re.finditer(pattern, text, re.I)]
    on = list(_ON.finditer(text))
    if off and (not on or chance.random() < 0.6):
        m, new = chance.choice(off)
        return text[:m.start()] + m.expand(new) + text[m.end():]
    at = chance.choice(on).end() if on else 0
    return f"{text[:at]} {chance.choice(['not', 'never'])}{text[at:]}" if on else None


KINDS = ("number", "version", "negation", "path", "date", "dropped", "invented")


# A sentence with a value in it goes first: nobody misses one that states nothing.
def _dropped(text: str, chance: random.Random) -> str | None:
    found = split_sentences(text)
    s = (chance.choice([s for s in found if any(s.start <= f.start < s.end for f in find_facts(text))]
                       or list(found)) if len(found) > 1 else None)
    return (text[:s.start] + text[s.end:].lstrip()).strip() if s else None


def _invented(text: str, chance: random.Random, foreign: Sequence[str]) -> str | None:
    ends = [s.end for s in split_sentences(text) if text[s.end - 1] in ".!?"]
    at = chance.choice(ends) if ends and foreign else 0
    return f"{text[:at]} {chance.choice(foreign)}{text[at:]}" if at else None


def _mutate_text(text: str, kind: str, chance: random.Random, foreign: Sequence[str]) -> str | None:
    if kind == "invented": return _invented(text, chance, foreign)
    change = {"number": _number, "version": _version, "negation": _negation, "path": _path, "date": _date,
              "dropped": _dropped}[kind]
    return change(text, chance)


# A summary has many texts, and any of them can be the wrong one: each is changed in a copy of its own.
def _variants(s: MemorySummary, change: Callable[[str], str | None]) -> list[MemorySummary]:
    "A summary with one of its texts changed, for each of them that can be."
    out = ([replace(s, title=new) for new in [change(s.title)] if new]
           + [replace(s, summary=new) for new in [change(s.summary)] if new])
    out += [replace(s, key_facts=(*s.key_facts[:i], new, *s.key_facts[i + 1:])) for i,
            t in enumerate(s.key_facts) if (new := change(t))]
    for i, d in enumerate(s.decisions):
        others = ([replace(d, decision=new) for new in [change(d.decision)] if new]
                  + [replace(d, rationale=new) for new in [change(d.rationale)] if new])
        out += [replace(s, decisions=(*s.decisions[:i], x, *s.decisions[i + 1:])) for x in others]
    return out


# What the rest tells again is not missing when it goes.
def _shorter(s: MemorySummary) -> list[MemorySummary]:
    "A summary with a fact or decision less, where that says something the rest does not."
    def words(x: MemorySummary) -> set[str]:
        return set(re.findall(r"\w+",
                              " ".join([x.summary, *x.key_facts,
                                        *(f"{d.decision} {d.rationale}" for d in x.decisions)]).lower()))
    made = [replace(s, key_facts=s.key_facts[:i] + s.key_facts[i + 1:]) for i in range(len(s.key_facts))]
    made += [replace(s, decisions=s.decisions[:i] + s.decisions[i + 1:]) for i in range(len(s.decisions))]
    return [x for x in made if len(words(s) - words(x)) > 2]


# The seed is made of the kind and a number, so that the seven errors of one summary are independent.
def mutate(
    summary: MemorySummary | str,
    kind: str,  # One of `KINDS`
    seed: int | str,  # The same gives the same
    foreign: Sequence[str] = (),  # Sentences that other memories hold, for `invented`
) -> MemorySummary | str | None:  # None when it holds nothing of this kind
    "A summary made wrong in one place."
    chance = random.Random(f"{kind} {seed}")
    if isinstance(summary, str): return _mutate_text(summary, kind, chance, foreign)
    if kind == "dropped": made = _shorter(summary)
    else: made = _variants(summary, lambda text: _mutate_text(text, kind, chance, foreign))
    if kind == "invented" and foreign:
        made.append(replace(summary, key_facts=(*summary.key_facts, chance.choice(foreign))))
    return chance.choice(made) if made else None


_OTHER = {"because": "since", "so that": "in order that", "uses": "relies on", "about": "roughly",
          "needs": "requires", "need": "require",
          "shows": "displays", "checks": "verifies", "kept": "retained", "removed": "taken out",
          "faster": "quicker", "start": "begin", "ask": "request",
          "people": "persons", "only": "solely", "found": "discovered", "before": "ahead of",
          "whole": "entire", "fixed": "repaired", "is not": "isn't",
          "isn't": "is not", "cannot": "can't", "does not": "doesn't", "do not": "don't", "and": "as well as"}
_SCALES = (("s", 1), ("seconds", 1), ("minutes", 60), ("hours", 3600), ("days", 86400))


# A unit is converted only where a whole number comes out: nobody writes 0.025 hours for ninety seconds.
def _respell(said: str, fact: Fact, chance: random.Random) -> str:
    "A number written otherwise, or as it was."
    n, _, unit = fact.value.partition(" ")
    if not re.fullmatch(r"[\d.]+", n): return said
    if unit == "s":
        fits = [f"{Fraction(n) / k} {name}" for name,
                k in _SCALES if (Fraction(n) / k).denominator == 1 and 1 <= Fraction(n) / k < 10**4]
        return chance.choice(fits) if fits else said
    if said in map(str, range(2, 13)): return _WORDS[int(said) - 2]
    return (n if said.lower() in _WORDS or "," in said else f"{said[:-1].strip()} percent"
            if said.endswith("%") else said)


# A range, a list or a fraction is left alone: "3-5 s" is no "3-5000 ms".
def _respelled(text: str, chance: random.Random) -> str:
    for f in reversed([f for f in find_facts(text) if f.kind == "number"]):
        alone = (not re.match(r"\s?[-–/]", text[f.end:f.end + 2])
                 and not re.search(r"(?:[-–/]|to )$", text[max(0, f.start - 3):f.start]))
        new = _respell(text[f.start:f.end], f, chance) if alone and chance.random() < 0.6 else ""
        if any(same_value(f, g) for g in find_facts(new)): text = text[:f.start] + new + text[f.end:]
    return text


_CLAUSE = re.compile(r",? (?:because|so that|which|since|while|although) [^,.;:`\d]{8,}(?=[.;]|$)")


# Words are exchanged outside of code, and only what states no value is left out.
def _reword(sentence: str, chance: random.Random) -> str:
    "Common words exchanged outside of code; a parenthesis or clause without a value left out."
    if chance.random() < 0.5:
        sentence = re.sub(r"\s\([^()]{3,80}\)", lambda m: m.group() if find_facts(m.group()) else "",
                          sentence)
    clause = _CLAUSE.search(sentence)
    if clause and clause.start() > 25 and not find_facts(clause.group()) and chance.random() < 0.5:
        sentence = sentence[:clause.start()] + sentence[clause.end():]
    for old in chance.sample(sorted(_OTHER), 10):
        m = re.search(rf"(?<![\w`'-]){old}(?![\w`'-])", sentence)
        inside = (m and any(f.kind != "negation" and f.start < m.end() and m.start() < f.end
                            for f in find_facts(sentence)))
        if m and not inside and sentence[:m.start()].count("`") % 2 == 0:
            sentence = sentence[:m.start()] + _OTHER[old] + sentence[m.end():]
    return sentence


# Sentences may come in another order: a summary that tells them so is no less true.
def _retell(text: str, chance: random.Random) -> str:
    text = _respelled(text, chance)
    told = [_reword(text[s.start:s.end], chance) for s in split_sentences(text)] or [text]
    if chance.random() < 0.5: chance.shuffle(told)
    if len(told) > 1 and told[0].endswith(".") and chance.random() < 0.4:
        told[:2] = [f"{told[0][:-1]}, and {told[1]}"]
    if told[0][1:2].islower() and chance.random() < 0.3:
        told[0] = chance.choice(["In short, ", "Note that ", "The team found: "]) + told[0]
    return " ".join(told)


def retell(
    summary: MemorySummary | str,
    seed: int | str,  # The same gives the same
) -> MemorySummary | str:
    "A summary that says the same in other words."
    chance = random.Random(f"retell {seed}")
    def again(text: str) -> str: return _retell(text, chance) if text else text
    if isinstance(summary, str): return again(summary)
    return replace(summary, summary=again(summary.summary), key_facts=tuple(map(again, summary.key_facts)),
                   decisions=tuple(replace(d, decision=again(d.decision), rationale=again(d.rationale))
                                   for d in summary.decisions))
