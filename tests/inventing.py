"""Secrets and personal data that never were: fixtures/secrets.jsonl holds shapes, and here they are filled in, the same way every time.

A shape is text with fields: `ghp_{alnum:36}` is followed by 36 letters and digits, drawn by a generator that is seeded with the row's id. So the file
itself holds nothing that a scanner of secrets could take for one, and nobody's secret can be in it.
"""
import base64
import json
import random
import re
import string
from pathlib import Path
from typing import NamedTuple

PERSONAL = {"email", "phone", "ip", "user", "card", "iban"}
LETTERS, HEX, UPPER = string.ascii_letters, "0123456789abcdef", string.ascii_uppercase + string.digits
ALPHABETS = {"alnum": LETTERS + string.digits, "letter": LETTERS, "digit": string.digits, "hex": HEX, "HEX": HEX.upper(), "hexup": HEX.upper(), "upper": UPPER,
             "lower": string.ascii_lowercase + string.digits, "b32": string.ascii_uppercase + "234567", "base": string.ascii_lowercase + "234567",
             "b64": LETTERS + string.digits + "+/", "url": LETTERS + string.digits + "_-", "bc": LETTERS + string.digits + "./", "dash": "-",
             "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", "bechlow": "qpzry9x8gf2tvdw0s3jn54khce6mua7l"}
WORDS = "amber basin cedar delta ember fjord gravel harbor iris juniper kelp lantern meadow nickel orchard pebble quartz ripple saddle timber".split()
NAMES = "ada bela chidi dorothea emre fumiko greta henrik imani jorge katya liang mirela nadia otto priya".split()


def luhn(digits): return sum(sum(divmod(2 * int(d), 10)) if i % 2 else int(d) for i, d in enumerate(reversed(digits))) % 10


def card(rng, head, length):
    body = head + "".join(rng.choices(string.digits, k=int(length) - len(head) - 1))
    return body + str(-luhn(body + "0") % 10)


def iban(rng, country, length):
    body = "".join(rng.choices(string.digits, k=int(length)))
    return f"{country}{98 - int(body + ''.join(str(ord(c) - 55) for c in country) + '00') % 97:02}{body}"


def drawn(rng, alphabet, n): return "".join(rng.choices(ALPHABETS[alphabet], k=n))


def base(text): return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def password(rng):
    word = rng.choice(WORDS)
    return rng.choice([f"{word.title()}{rng.randint(10, 9999)}{rng.choice('!#$%*?')}",
                       drawn(rng, "alnum", 8) + rng.choice("!#%*?+") + drawn(rng, "alnum", 6) + "7",
                       f"{word}-{rng.randint(1000, 99999)}-{rng.choice(WORDS).upper()}",
                       f"{rng.choice('!#%')}{word[:4]}{rng.randint(100, 999)}{word[::-1][:3].title()}"])


def field(name, rng):
    "What stands for one field of a shape."
    kind, *of = name.split(":")
    fours = lambda s, by: by.join(s[i:i + 4] for i in range(0, len(s), 4))
    made = {"word": lambda: rng.choice(WORDS), "name": lambda: rng.choice(NAMES), "pass": lambda: password(rng), "slash": lambda: "/", "none": str,
            "octet": lambda: str(rng.randint(11, 250)),
            "hex4": lambda: f"{rng.randint(4096, 65535):x}", "uuid": lambda: "-".join(drawn(rng, "hex", n) for n in (8, 4, 4, 4, 12)),
            "json64": lambda: base(json.dumps({"iat": rng.randint(10**9, 2 * 10**9), "url": rng.choice(WORDS), "org": rng.choice(WORDS)})),
            "jwt": lambda: ".".join((base('{"alg":"HS256","typ":"JWT"}'),
                                     base(json.dumps({"sub": rng.choice(NAMES), "exp": rng.randint(10**9, 2 * 10**9)})), drawn(rng, "url", 43))),
            "pem": lambda: "\n".join(drawn(rng, "b64", 64) for _ in range(int(of[0]) - 1)) + "\n" + drawn(rng, "b64", 40) + "==",
            "pemesc": lambda: "\\n".join(drawn(rng, "b64", 64) for _ in range(int(of[0]))), "card": lambda: card(rng, *of), "iban": lambda: iban(rng, *of),
            "card4": lambda: fours(card(rng, *of), " "), "cardd": lambda: fours(card(rng, *of), "-"), "iban4": lambda: fours(iban(rng, *of), " "),
            "pct": lambda: "".join(c if c.isalnum() else f"%{ord(c):02X}" for c in drawn(rng, "b64", int(of[0])))}
    return made[kind]() if kind in made else drawn(rng, kind, int(of[0]))


def filled(shape, rng): return re.sub(r"\{([a-zA-Z0-9]+(?::[\w:]+)?)\}", lambda m: field(m[1], rng) if m[1].partition(":")[0] in KNOWN else m[0], shape)


KNOWN = {*ALPHABETS, *"none word name pass slash octet hex4 uuid json64 jwt pem pemesc card iban card4 cardd iban4 pct".split()}


class Row(NamedTuple):
    "A labelled line."
    id: str
    kind: str
    half: str  # open or locked
    secret: str  # What must not come through; empty for an innocent line
    text: str

    @property
    def personal(self): return self.kind in PERSONAL


def rows(half=None):
    "The labelled lines of one half, or all."
    out = []
    for line in (Path(__file__).parent / "fixtures" / "secrets.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if half not in (None, row["half"]): continue
        rng = random.Random(row["id"])
        secret = filled(row["shape"], rng)
        out.append(Row(row["id"], row["kind"], row["half"], secret, filled(row["text"], rng).replace("§", secret)))
    return out


def leaks(secret, text):
    "Does a text still hold a secret, or twelve characters of it?"
    return any(secret[i:i + 12] in text for i in range(max(1, len(secret) - 11)))
