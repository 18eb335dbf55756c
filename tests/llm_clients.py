"""For tests: a question, providers at an address, and who asks them."""
import json
import sqlite3
from contextlib import closing

from llm_servers import least

from git_notes_consolidation.llm.protocol import BadReply, Request
from git_notes_consolidation.llm.client import ask_all
from git_notes_consolidation.llm.providers import Provider

SCHEMA = {"type": "object", "additionalProperties": False, "required": ["id", "verdict", "why"],
          "properties": {"id": {"type": "string", "enum": ["M1", "M2"]}, "verdict": {"type": "string", "enum": ["duplicate", "coexist"]},
                         "why": {"type": "string"}}}
GOOD = json.dumps(least(SCHEMA))
NOW = 1_790_000_000.0
KEY = "sk-" + "Ab3" * 14  # in no company's books


def question(text="Do M1 and M2 say the same?", version="1", max_tokens=300):
    return Request("judge", ({"role": "system", "content": "Judge."}, {"role": "user", "content": text}), SCHEMA, max_tokens, version)


def parse(text):
    "The three strings, or `BadReply`."
    try: value = json.loads(text)
    except ValueError as e: raise BadReply(str(e)) from e
    if not isinstance(value, dict) or set(value) != set(SCHEMA["required"]): raise BadReply("other keys")
    for k, spec in SCHEMA["properties"].items():
        if not isinstance(value[k], str) or not value[k].isprintable() or value[k] not in spec.get("enum", [value[k]]): raise BadReply(f"{k} is {value[k]!r}")
    return value


def cloud(server, *models, name="openai", key=KEY):
    "A provider that costs something, wherever it really is."
    return Provider(name, getattr(server, "url", server), models or ("gpt-5-nano",), key, local=False)


def local(server, *models): return Provider("ollama", getattr(server, "url", server), models or ("llama3.2",), "", local=True)


def ask(client, *texts, parse=parse, **more):
    "One answer, or as many as there are texts."
    answers = ask_all(client, [(question(t, **more), parse) for t in texts or ("Do M1 and M2 say the same?",)])
    return answers if len(texts) > 1 else answers[0]


def held(path):
    "Everything in a SQLite file, as one text."
    with closing(sqlite3.connect(path)) as conn: return "\n".join(conn.iterdump())
