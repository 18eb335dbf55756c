"""What is promised, what is built, and what shows it: the table of tests/promises.yml."""
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent


def load(path=ROOT / "tests" / "promises.yml"): return yaml.safe_load(path.read_text(encoding="utf-8"))
def is_shown(row): return not isinstance(row["shown_by"], str)


def main():
    "Print a line for each promise, and how many are shown."
    rows, table = load(), Table("", "promise")
    table.add_column("shown by", overflow="fold")
    for r in rows: table.add_row(r["id"], r["promise"], "\n".join(r["shown_by"]) if is_shown(r) else f"[dim]{r['shown_by']}[/dim]")
    Console().print(table, f"{sum(map(is_shown, rows))} of {len(rows)} are shown.")


if __name__ == "__main__": main()
