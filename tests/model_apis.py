"""Stand-ins for models' APIs, for the real clients of agents: each request is kept, each answer is "done", or what a test says or makes of the request."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from messages_api import MESSAGE, block_of, events_of

USED = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


def events(*said): return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in said)


def responses(text):
    "OpenAI's Responses API, which Codex speaks."
    item = {"type": "message", "role": "assistant", "id": "m", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}
    whole = {"id": "r", "object": "response", "status": "completed", "output": [item], "usage": USED}
    return events({"type": "response.created", "response": whole | {"status": "in_progress", "output": []}},
                  {"type": "response.output_item.done", "output_index": 0, "item": item}, {"type": "response.completed", "response": whole})


def generated(text):
    "Google's streamGenerateContent, which Gemini CLI speaks."
    said = {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
    return f"data: {json.dumps(said)}\n\n"


def completion(text):
    "OpenAI's chat completions, as Copilot CLI speaks to a provider of one's own."
    part = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = part | {"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]}
    last = part | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
    return f"data: {json.dumps(said)}\n\ndata: {json.dumps(last)}\n\ndata: [DONE]\n\n"


def messages(text):
    "Anthropic's Messages API, which Claude Code speaks."
    head = MESSAGE | {"id": "msg_0", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}
    return events(*({"type": kind} | rest for kind, rest in events_of(block_of(text, 0), head)))


ANSWERS = {"/messages": messages, "/responses": responses, "streamGenerateContent": generated, "/chat/completions": completion}


class ModelAPI:
    "On a free port of this machine, as a context."
    def __init__(self):
        self.bodies, self.said, outer = [], "done", self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_): pass
            def do_GET(self): self.whole("application/json", "{}")

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
                make = next((f for part, f in ANSWERS.items() if part in self.path), None)
                if make is None or "count_tokens" in self.path: return self.whole("application/json", "{}")
                outer.bodies.append(body)
                self.whole("text/event-stream", make(outer.said(body) if callable(outer.said) else outer.said))

            def whole(self, kind, text):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
