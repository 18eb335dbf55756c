"""A small language model with real weights, on this machine alone: `make model` serves it, `make recording` writes down what it says.

SmolLM2-135M-Instruct judges at chance, and that is what it is for: whatever it says, no memory may be the worse for it.
"""
import argparse
import json
import os
import signal
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "smollm2"
RECORDING = ROOT / "tests" / "fixtures" / "smollm2.jsonl"
NOTEBOOK = ROOT / "nbs" / "research" / "prompts.ipynb"


def weights():
    "The model's file; none where `make model` has not fetched it."
    return next((ROOT / ".model").rglob("SmolLM2*.gguf"), None)


@contextmanager
def served(port=0):
    "llama.cpp's own server for it, with one slot and one thread: with more threads on shared cores it crawls."
    import xllamacpp
    p = xllamacpp.CommonParams()
    p.model.path, p.model_alias, p.port = str(weights()), {NAME}, port
    p.n_parallel, p.n_ctx = 1, 8192
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    p.warmup = p.fit_params = False
    p.verbosity = 1  # Errors
    server = xllamacpp.Server(p)
    yield f"{server.listening_address}/v1"


def asked(url, into):
    "A function in a recording's place that asks the server, and writes down every reply, also one that no parser takes."
    from git_notes_consolidation.llm.protocol import Reply, arguments, read_reply, request_key
    known = {}

    def ask(request):
        if (key := request_key(request)) in known: return known[key]
        body = json.dumps(arguments(request, NAME, request.max_tokens)).encode()
        call = urllib.request.Request(f"{url}/chat/completions", body, {"content-type": "application/json"})
        with urllib.request.urlopen(call) as r: said = read_reply(json.load(r))  # nosec B310 # our own server, on loopback
        print(f"{request.task:8} {said}"[:160], file=sys.__stderr__, flush=True)
        if not isinstance(said, Reply): return None
        tokens_in, tokens_out = said.usage or (0, 0)
        line = {"key": key, "text": said.text, "provider": "lmstudio", "model": NAME, "tokens_in": tokens_in, "tokens_out": tokens_out}
        with open(into, "a", encoding="utf-8") as f: f.write(json.dumps(line) + "\n")
        known[key] = said.text
        return said.text

    return ask


def record(into, play):
    "Do something once with a served model, and keep its replies."
    sys.path.insert(0, str(ROOT / "tests"))
    from small_model import replies_from
    into.unlink(missing_ok=True)
    with served() as url, replies_from(asked(url, into)): play()
    lines = sorted(json.dumps(json.loads(line), sort_keys=True) for line in into.read_text(encoding="utf-8").splitlines())
    into.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def run_notebook():
    "The cells of the prompt bench, up to those that only a reader has replies to."
    from execnb.shell import CaptureShell
    os.chdir(NOTEBOOK.parent)
    cells, shell = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"], CaptureShell()
    for c in cells:
        if "".join(c["source"]).startswith("## All 150 pairs"): return
        if c["cell_type"] != "code": continue
        shell.run("".join(c["source"]))
        if shell.exc: raise shell.exc


def walk():
    import small_model
    small_model.walk()


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("what", choices=("serve", "record"))
    a.add_argument("--port", type=int, default=8642, help="where it listens; 0: wherever there is room")
    args = a.parse_args()
    if weights() is None: sys.exit("The model is not there yet: make model fetches it (93 MB).")
    if args.what == "record":
        record(RECORDING, walk)
        return record(NOTEBOOK.parent / "smollm2-replies.jsonl", run_notebook)
    with served(args.port) as url:
        print(f"SmolLM2-135M-Instruct listens at {url}. Ctrl-C ends it. In another terminal:\n"
              f"  export MEMORY_CONSOLIDATION_LLM_BASE_URL={url} MEMORY_CONSOLIDATION_LLM_MODEL={NAME}\n"
              "  gnc consolidate --llm lmstudio --dry-run\n"
              "  gnc evaluate supersession --llm lmstudio --limit 12", flush=True)
        try: sys.stdin.read() if not sys.stdin.isatty() else signal.pause()
        except KeyboardInterrupt: print()


if __name__ == "__main__": main()
