"""A stand-in for the Messages API, for the real client: it replies as a test has planned, streamed or whole, and keeps what it was sent."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MESSAGE = {"type": "message", "role": "assistant", "content": [], "stop_reason": None, "stop_sequence": None}


def block_of(reply, n):
    "A reply of a plan: a text, or the name of a tool and its input. A plan may also hold what makes one of the request."
    if isinstance(reply, str): return {"type": "text", "text": reply}
    tool, given = reply
    return {"type": "tool_use", "id": f"toolu_{n:024}", "name": tool, "input": given}


def events_of(block, head):
    "What is streamed."
    stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
    empty, delta = (({**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}) if stop == "tool_use"
                    else ({**block, "text": ""}, {"type": "text_delta", "text": block["text"]}))
    yield "message_start", {"message": head}
    yield "content_block_start", {"index": 0, "content_block": empty}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    yield "message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 9}}
    yield "message_stop", {}


class MessagesAPI:
    "On a free port of this machine, as a context."
    def __init__(self):
        self.plan, self.bodies, self._lock = [], [], threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_): pass

            def do_GET(self): self.whole({})
            do_HEAD = do_GET

            def do_POST(self):
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                body, path = json.loads(raw or b"{}"), self.path.partition("?")[0]
                if not path.endswith("/messages"): return self.whole({"input_tokens": max(1, len(raw) // 4)})
                block, n = block_of(outer.next_reply(body), len(outer.bodies)), len(outer.bodies)
                head = MESSAGE | {"id": f"msg_{n:024}", "model": body.get("model", ""), "usage": {"input_tokens": len(raw) // 4, "output_tokens": 9}}
                if not body.get("stream"):
                    stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
                    return self.whole(head | {"content": [block], "stop_reason": stop})
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for kind, rest in events_of(block, head):
                    self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind} | rest)}\n\n".encode())

            def whole(self, body):
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD": self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def next_reply(self, body):
        "Requests with tools are the conversation itself, and use up the plan."
        with self._lock:
            self.bodies.append(body)
            reply = self.plan.pop(0) if body.get("tools") and self.plan else "done"
            return reply(body) if callable(reply) else reply

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
