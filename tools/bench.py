"""All benchmarks, one after another: `make bench`."""
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "benchmarks"

if __name__ == "__main__":
    for script in sorted(HERE.glob("bench_*.py")):
        print(f"\n== {script.stem}\n", flush=True)
        subprocess.run([sys.executable, str(script)], check=True)
