"""`make relay`: a language model made of whoever answers, at an address of this machine.

Each question becomes FOLDER/NAME.txt: the instructions, the question, the schema of the reply. It waits until the answer stands in FOLDER/NAME.reply,
written by a person, an agent or a program (an empty file is none yet). With `--answer COMMAND` the command gets the question on its standard input, and
what it prints is the answer: so any model with a program of its own stands behind it, such as `--answer 'llm -m MODEL'`. What was answered once is not
asked again. All of it is a project's memory: the folder is yours alone.
"""
import argparse
import hashlib
import json
import shlex
import subprocess
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HOSTS = ("127.0.0.1", "localhost")


def told(body):
    "A request as text."
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    parts = [m["content"] for m in body["messages"]]
    return "\n\n".join(parts + ([f"Reply with one JSON value of this schema:\n{json.dumps(schema)}"] if schema else [])) + "\n"


def answer(body, folder, command, patience):
    "The reply to a request, or none where nobody gave one."
    text = told(body)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    asked, reply = folder / f"{name}.txt", folder / f"{name}.reply"
    def given(): return reply.read_text(encoding="utf-8") if reply.exists() else ""
    if not given().strip():
        asked.write_text(text, encoding="utf-8")
        print(f"? {asked}", flush=True)
        if command:
            done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", timeout=patience)  # nosec B603 # the user's own words
            if done.returncode or not done.stdout.strip(): return print(f"! {done.stderr[-500:] or 'it printed nothing'}", flush=True)
            half = reply.with_suffix(".part")
            half.write_text(done.stdout, encoding="utf-8")
            half.rename(reply)
    until, said = time.monotonic() + patience, None
    while not said or said != given():  # Whoever writes it is done when it stays as it is
        if time.monotonic() > until: return None
        said = given().strip() and given()
        time.sleep(0.2)
    return said


def handler(folder, command, patience):
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_): pass

        def do_GET(self): self.send(200, {"object": "list", "data": [{"id": "relay", "object": "model"}]})

        def do_POST(self):
            # A page in a browser may not ask: it says where it is from
            host, kind = self.headers.get("host", "").rpartition(":")[0], self.headers.get("content-type", "")
            if host not in HOSTS or "origin" in self.headers or not kind.startswith("application/json"):
                return self.send(403, {"error": {"message": "only programs of this machine are answered"}})
            try: said = answer(json.loads(self.rfile.read(int(self.headers.get("content-length") or 0))), folder, command, patience)
            except (ValueError, KeyError, TypeError, AttributeError): return self.send(400, {"error": {"message": "this is no chat request"}})
            except (OSError, subprocess.TimeoutExpired) as e: said = print(f"! {e}", flush=True)
            if said is None: return self.send(503, {"error": {"message": "nobody answered"}})
            message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
            self.send(200, {"id": "relay", "object": "chat.completion", "model": "relay", "choices": [message]})

        def send(self, status, body):
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
    return Handler


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder", type=Path, nargs="?", default=Path(".relay"))
    a.add_argument("--answer", default="", metavar="COMMAND", help="gets each question on its standard input")
    a.add_argument("--port", type=int, default=8643)
    a.add_argument("--patience", type=float, default=900, help="seconds for an answer")
    args = a.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    args.folder.chmod(0o700)
    server = ThreadingHTTPServer(("127.0.0.1", args.port), handler(args.folder, shlex.split(args.answer), args.patience))
    print(f"The relay listens at http://127.0.0.1:{server.server_port}/v1 and keeps questions in {args.folder}. Ctrl-C ends it. In another terminal:\n"
          f"  export MEMORY_CONSOLIDATION_LLM_BASE_URL=http://127.0.0.1:{server.server_port}/v1 MEMORY_CONSOLIDATION_LLM_MODEL=relay\n"
          f"  export MEMORY_CONSOLIDATION_LLM_TIMEOUT_S={args.patience:g}\n"
          "  gnc consolidate --llm lmstudio --dry-run", flush=True)
    try: server.serve_forever()
    except KeyboardInterrupt: print()


if __name__ == "__main__": main()
