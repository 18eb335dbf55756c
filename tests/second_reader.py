"""For tests: notes, names and records read a second time, by code that shares nothing with the package."""
import base64
import hashlib
import json
import re
from collections import defaultdict
from datetime import datetime, timezone
from itertools import accumulate
from typing import NamedTuple

import yaml

KEYS = tuple(f"{k}:".encode() for k in "type timestamp summary spec phase tags status relates_to importance valid_from escape".split())


class Said(NamedTuple):
    "A memory as its note says it."
    stamp: str
    summary: str
    escaped: bool
    body: str = ""


def name(prefix, *parts):
    raw = json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()
    return prefix + "_" + base64.b32encode(hashlib.sha256(raw).digest())[:26].decode().lower()


def time_of(text):
    t = datetime.fromisoformat(text.strip())
    return t.replace(tzinfo=timezone.utc) if t.tzinfo is None else t.astimezone(timezone.utc)


def heads(lines):
    "Numbers of the opening and the closing line of everything that looks like front matter."
    out, start = [], None
    for i, line in enumerate(lines):
        if line.removeprefix(b"\xef\xbb\xbf").rstrip(b" \t\r") != b"---": continue
        if i + 1 < len(lines) and lines[i + 1].startswith(KEYS): start = i
        elif start is not None: out.append((start, i)); start = None
    return out


def too_deep(raw, most=200):
    return raw.count(b"[") + raw.count(b"{") > most or any(x.count(b"- ") + x.count(b"? ") + x.count(b": ") > most for x in raw.split(b"\n"))


def by_hand(text):
    "A field a line, with what is indented below it."
    out, key = {}, ""
    for line in text.split("\n"):
        head, colon, rest = line.partition(":")
        if colon and re.fullmatch(r"\w+", head): key, out[head] = head, rest
        elif key and line[:1] in (" ", "\t") and line.strip(): out[key] += f" {line}"
        else: key = ""
    return {k: "" if (said := " ".join(v.split())) in ("''", '""') else said for k, v in out.items()}


def front(raw):
    "What the front matter says; none where it says nothing."
    if too_deep(raw): return None
    text = raw.decode(errors="replace")
    try: d = yaml.load(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (yaml.YAMLError, ValueError, RecursionError): d = {}
    d = d if isinstance(d, dict) else {}
    if not (isinstance(d.get("summary"), str) and d["summary"]): d = {**by_hand(text), **d, "summary": by_hand(text).get("summary")}
    stamp, summary = (v.encode("utf-8", "replace").decode() if isinstance(v := d.get(k), str) else None for k in ("timestamp", "summary"))
    try: return None if summary is None or not time_of(stamp or "") else Said(stamp, summary, d.get("escape") == "\\")
    except (ValueError, OverflowError): return None


def note_memories(data):
    "The memories in a note, and the bytes at which something is odd."
    lines = data.split(b"\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    fronts = [(a, b, front(b"\n".join(lines[a + 1:b]))) for a, b in heads(lines)]
    found, odd = [x for x in fronts if x[2]], [starts[a] for a, _, said in fronts if not said]
    if data[:starts[found[0][0]] if found else None].strip(): odd.append(0)
    try: data.decode()
    except UnicodeDecodeError as e: odd.append(e.start)
    ends = [a for a, _, _ in found[1:]] + [len(lines)]
    texts = [data[starts[b + 1]:starts[end]].decode(errors="replace").removeprefix("\n").rstrip("\n") for (_, b, _), end in zip(found, ends)]
    return [said._replace(body=re.sub(r"(?m)^([^\S\n]*)\\(?=\\*---[^\S\n]*$)", r"\1", text) if said.escaped else text)
            for (_, _, said), text in zip(found, texts)], sorted(odd)


def fold(records):
    "Kind to subject to the record that holds, and the runs taken back; of sound records in any order."
    runs, back, held = {r["id"]: r for r in records if r["kind"] in ("run", "undo")}, set(), defaultdict(dict)
    for r in sorted(runs.values(), key=lambda r: (r["seq"], r["id"]), reverse=True):
        if r["kind"] == "undo" and r["id"] not in back: back |= {t for t in r["targets"] if t in runs and runs[t]["seq"] < r["seq"]}
    def decides(r, who):
        if r["kind"] == "review": return "holds" in r and (r.get("by") == "agent") == (who == "agent")
        return r["kind"] == "edge" and r.get("by") == who and (who == "agent" or r.get("live", True))
    counted = [r for r in records if "run" in r and r["run"] in runs and r["seq"] == runs[r["run"]]["seq"] and r["run"] not in back]
    settled = {r["subject"] for r in counted if decides(r, "person")}
    for r in sorted(counted, key=lambda r: (r["seq"], r["id"])):
        if not (decides(r, "agent") and r["subject"] in settled): held[r["kind"]][r.get("subject") or r["memory"]] = r
    return {kind: {i: r for i, r in of.items() if r.get("live", True)} for kind, of in held.items()}, back
