"""What is promised, what is built, and what shows it: the table of tests/promises.yml."""
from collections import Counter
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
SYSTEMS = {"C": "design card", "G": "git-notes-memory", "S": "subcog", "M": "MycelicMemory"}


def load(path=ROOT / "tests" / "promises.yml"):
    "The rows, in order."
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def is_shown(row): return not isinstance(row["shown_by"], str)


def table(rows):
    "One line a promise."
    t = Table("", "promise")
    t.add_column("shown by", overflow="fold")
    for r in rows: t.add_row(r["id"], r["promise"], "\n".join(r["shown_by"]) if is_shown(r) else f"[dim]{r['shown_by']}[/dim]")
    return t


def counts(rows):
    "How many of each system's are shown."
    all_, done = Counter(r["id"][0] for r in rows), Counter(r["id"][0] for r in rows if is_shown(r))
    parts = [f"{name} {done[k]} of {all_[k]}" for k, name in SYSTEMS.items()]
    return f"Shown: {', '.join(parts)}; together {done.total()} of {all_.total()}."


def main():
    "Print it."
    rows, console = load(), Console()
    console.print(table(rows))
    console.print(counts(rows), highlight=False)


if __name__ == "__main__": main()
