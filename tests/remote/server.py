"""A server that says what a script tells it to, in the forms of llama-server, vLLM and chat completions.

Its vocabulary is the 256 bytes and five control tokens, so a letter of several bytes is several tokens. It keeps what it was asked
with last, as a llama-server with one slot does, and reports what of a request it found there. Each completion takes the next row of
`answers`: a text, or a dict with "text" and faults. What came in stands in `requests`.

llama-server's forms were checked against llama.cpp's source and a running server; vLLM's against its documentation and what is told
of a running one; SGLang's after its source (/generate, /tokenize of July 2026), the form of its refusals a guess; other chat endpoints' against the OpenAI API's documentation.
"""
import functools
import http.server
import itertools
import json
import re
import socket
import ssl
import struct
import threading
import time
import urllib.parse

BEGIN, END, BOS, THINK, THINK_END = 256, 257, 258, 259, 260
NAMES = {BEGIN: b"<|im_start|>", END: b"<|im_end|>", BOS: b"<s>", THINK: b"<think>", THINK_END: b"</think>"}
TEMPLATE = "<|im_start|>{role}\n{content}<|im_end|>\n"


def tokens_of(text, special):
    data, ids, at = text.encode(), [], 0
    while at < len(data):
        for i, name in NAMES.items():
            if special and data.startswith(name, at):
                ids.append(i)
                at += len(name)
                break
        else:
            ids.append(data[at])
            at += 1
    return ids


def bytes_of(ids):
    return b"".join(NAMES.get(i) or bytes([i]) for i in ids)


def common(a, b):
    n = 0
    while n < len(a) and n < len(b) and a[n] == b[n]:
        n += 1
    return n


class Server:
    def __init__(self, kind="llama", answers=(), model="toy-1b", n_ctx=65536, models=None, key=None, latency=0.0, certificate=None):
        self.kind, self.answers, self.model, self.n_ctx, self.key, self.latency = kind, list(answers), model, n_ctx, key, latency
        self.models = models or [model]
        self.requests, self.paths, self.held, self.former, self.faults, self.lock = [], [], [], [], {}, threading.Lock()
        self.headers, self.cut = [], 0  # headers of each request; completions whose client went away
        self.build = "b1"
        self.break_every = 0            # every so many connections is closed without an answer
        self.n_connections = 0
        self.publisher = None
        self.block = 0                  # tokens that the cache keeps together; 0: as many as this engine does unasked
        self.slots = None  # what llama-server's /slots tells; None: it hides them
        self.moves, self.probes = False, []  # llama-server with n_cache_reuse; None: it tells nothing. Requests that do not stream
        self.doubts, self.scored = {}, []  # by letter: (what the model would rather say, by how many nats); (tokens read, text) of each request
        self.tells_scores = True
        self.scores_hang = None  # what happens to a request for them instead
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # as servers do; else every small write waits 40 ms for the one before to be acknowledged

            def log_message(self, *a):
                pass

            def do_GET(self):
                outer.handle(self, None)

            def do_POST(self):
                outer.handle(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

        class Threads(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *a):
                pass

        self.httpd = Threads(("127.0.0.1", 0), Handler)
        self.port = self.httpd.server_address[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"
        if certificate:  # and its key, in one file
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.httpd.socket = context.wrap_socket(self.httpd.socket, server_side=True)
        self.thread = threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()

    # --- answers of a whole ---

    def send(self, h, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        h.send_response(status)
        h.send_header("Content-Type", "application/json")
        h.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            h.send_header(name, value)
        h.end_headers()
        h.wfile.write(data)

    def fail(self, h, status, message="no", headers=(), kind="error"):
        self.send(h, status, {"error": {"code": status, "message": message, "type": kind}}, headers)

    def drop(self, h):
        """Closes the connection as a crash does."""
        h.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        h.close_connection = True
        h.connection.close()

    def handle(self, h, body):
        path = urllib.parse.urlsplit(h.path).path  # as a proxy it is given whole addresses
        if self.latency:
            time.sleep(self.latency)
        with self.lock:
            self.n_connections += 1
            breaks = self.break_every and self.n_connections % self.break_every == 0
            self.paths.append(path)
            self.headers.append(dict(h.headers))
            fault = self.faults.get(path)
            if isinstance(fault, list):
                fault = fault.pop(0) if fault else None
        if breaks:
            return self.drop(h)
        if fault:
            return fault(h)
        if self.key and h.headers.get("Authorization") != f"Bearer {self.key}":
            return self.fail(h, 401, f"Invalid API Key: {h.headers.get('Authorization')}")
        data = json.loads(body) if body else {}
        known = {"llama": self.llama, "vllm": self.vllm, "sglang": self.sglang, "sglang_chat": self.sglang_chat,
                 "chat": self.chat}[self.kind]
        if path == "/v1/models":
            meta = {"n_ctx_train": self.n_ctx, "n_params": 1_000_000_000}
            return self.send(h, 200, {"object": "list", "data": [{"id": m, "object": "model", "meta": meta,
                                                                  "max_model_len": self.n_ctx} for m in self.models]})
        if not known(h, path, data) and not self.chat(h, path, data):  # all of them take messages too
            self.fail(h, 404, "File Not Found")

    def render(self, data):
        text = "".join(TEMPLATE.format(role=m["role"], content=m["content"]) for m in data["messages"])
        return text + ("<|im_start|>assistant\n" if data.get("add_generation_prompt", True) else "")

    # --- scores of a text that stands already ---

    def best_two(self, i):
        """Log-probabilities of a token and of what would have been said best instead; where nothing is scripted it was sure."""
        instead, behind = self.doubts.get(chr(i), ("\n" if i != 10 else " ", 9.0))
        return [(i, -1.0), (ord(instead), -1.0 - behind)]

    def llama_scores(self, h, data):
        if self.scores_hang:
            return self.scores_hang(h, data)
        ids = data["prompt"]
        if not self.tells_scores:  # before its grammars knew tokens
            self.fail(h, 400, "Failed to parse grammar")
            return
        forced = [int(i) for i in re.findall(r"<\[(\d+)\]>", data["grammar"])]
        assert data["grammar"] == "root ::=" + "".join(f" <[{i}]>" for i in forced) and data["n_predict"] == len(forced), data
        cached = self.find(ids, 0)
        self.former.append(self.held)
        self.held = ids + forced[:-1]
        self.scored.append((ids, forced))
        self.send(h, 200, {"content": bytes_of(forced).decode(), "stop": True, "timings": {"cache_n": cached, "prompt_n": len(ids) - cached},
                           "tokens_evaluated": len(ids), "completion_probabilities": [
            dict(id=i, logprob=-1.0, top_logprobs=[{"id": k, "logprob": p} for k, p in sorted(self.best_two(i), key=lambda c: -c[1])]) for i in forced]})

    def vllm_scores(self, h, data):
        if self.scores_hang:
            return self.scores_hang(h, data)
        ids = data["prompt"]
        self.scored.append((ids, None))
        self.former.append(self.held)
        self.held = ids
        told = [None] + [{str(k): {"logprob": p, "rank": 1, "decoded_token": bytes_of([k]).decode(errors="replace")} for k, p in self.best_two(i)} for i in ids[1:]]
        self.send(h, 200, {"object": "text_completion", "model": self.model, "choices": [
            {"index": 0, "text": "a", "finish_reason": "length", "prompt_logprobs": told if self.tells_scores else None}],
            "usage": {"prompt_tokens": len(ids), "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}}})

    def sglang_scores(self, h, data):
        if self.scores_hang:
            return self.scores_hang(h, data)
        ids, start = data["input_ids"], data["logprob_start_len"]
        self.scored.append((ids[:start + 1], ids[start + 1:]))
        cached = min(self.find(ids, 0), start)
        self.former.append(self.held)
        self.held = ids
        meta = {"prompt_tokens": len(ids), "completion_tokens": 1, "cached_tokens": cached, "finish_reason": {"type": "length", "length": 1}}
        if self.tells_scores:
            meta["input_token_logprobs"] = [[None if k == 0 else -1.0, i, None] for k, i in enumerate(ids[start:])]
            meta["input_top_logprobs"] = [None if k == 0 else [[p, c, None] for c, p in self.best_two(i)] for k, i in enumerate(ids[start:])]
        self.send(h, 200, {"text": "a", "output_ids": [97], "meta_info": meta})

    # --- streams ---

    def chunks(self, h, pieces, row):
        """Sends pieces of an answer as a stream, in the way that the row of the script asks for."""
        h.send_response(200)
        h.send_header("Content-Type", "text/event-stream")
        h.send_header("Connection", "close")
        h.end_headers()
        h.close_connection = True
        end = "\r\n" if row.get("crlf") else "\n"
        data = b""
        for i, piece in enumerate(pieces):
            if row.get("comments"):
                data += (": keep-alive" + end + end).encode()
            data += b"data: " + (piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False)).encode() + (end * 2).encode()
            if not row.get("bytewise"):
                try:
                    h.wfile.write(data)
                    h.wfile.flush()
                except OSError:
                    self.cut += 1
                    return
                data = b""
            if row.get("slow"):
                time.sleep(row["slow"])
            if row.get("break_after") is not None and i + 1 >= row["break_after"]:
                time.sleep(0.2)  # what was sent arrives before the connection is gone
                return self.drop(h)
            if row.get("error_after") is not None and i + 1 >= row["error_after"]:
                h.wfile.write(b'data: {"error": {"code": 500, "message": "the device is lost", "type": "server_error"}}\n\n')
                return
        for i in range(len(data)):
            h.wfile.write(data[i:i + 1])
            h.wfile.flush()
            if i > len(data) - 400:
                time.sleep(row.get("pause_at_end", 0))
        while row.get("never_closes"):
            try:
                h.wfile.write(b": keep-alive\n\n")
                h.wfile.flush()
            except OSError:
                self.cut += 1
                return
            time.sleep(0.01)

    def next_row(self):
        with self.lock:
            row = self.answers.pop(0) if self.answers else "Done."
        return row if isinstance(row, dict) else {"text": row}

    def find(self, ids, least):
        """What of ids is held; behind a cut, where the server moves rows, stretches of at least `least` count too."""
        if self.kind in ("vllm", "sglang"):  # blocks of all requests stay
            return min(max(common(held, ids) for held in self.former + [self.held]), len(ids) - 1)
        cached = at = common(self.held, ids)
        while self.moves and least and at < len(self.held) and cached < len(ids):
            same = common(self.held[at:], ids[cached:])
            at += same if same >= least else 1
            cached += same if same >= least else 0
        return min(cached, len(ids) - 1)

    def publish(self, ids, answer, n_kept):
        """The blocks that this request fills, each named by what it holds; then all but the first n_kept go."""
        self.publisher.subscribed.wait(20)
        size, all_ids = self.block or 16, ids + answer[:-1]
        name, names, events = None, [], []
        for at in range(0, len(all_ids) - size + 1, size):
            names.append(hash((name, tuple(all_ids[at:at + size]))))
            events.append({"type": "BlockStored", "block_hashes": names[-1:], "parent_block_hash": name,
                           "token_ids": all_ids[at:at + size], "block_size": size, "lora_id": None, "medium": "GPU"})
            name = names[-1]
        if n_kept:
            events.append({"type": "BlockRemoved", "block_hashes": names[n_kept:], "medium": "GPU"})
        if self.publisher.late:
            threading.Timer(self.publisher.late, self.publisher.send, [events]).start()
        else:
            self.publisher.send(events)

    def begin(self, ids, row, least=0):
        """What of ids was held; from now on they are. Returns (cached, the answer's ids)."""
        cached = self.find(ids, least)
        if row.get("forgets"):
            cached = min(cached, row["forgets"])
        answer = tokens_of(row["text"], row.get("thinks", False)) + ([] if row.get("no_end") else [END])
        self.former.append(self.held)
        if self.publisher:
            self.publish(ids, answer, row.get("drops"))
        self.held = ids + answer[:-1]
        if row.get("drops"):
            self.held, self.former = self.held[:row["drops"] * self.block], []
        return cached, answer

    def llama(self, h, path, data):
        if path == "/props":
            self.send(h, 200, {"default_generation_settings": {"n_ctx": self.n_ctx}, "total_slots": 1, "model_path": "/m/" + self.model,
                               "model_alias": self.model, "chat_template": "<|im_start|>", "build_info": self.build})
        elif path == "/tokenize":
            ids = tokens_of(data["content"], data.get("parse_special", True))
            out = []
            for i in ids:
                piece = NAMES.get(i) or bytes([i])
                out.append({"id": i, "piece": piece.decode() if i < 128 or i > 255 else [i]} if data.get("with_pieces") else i)
            self.send(h, 200, {"tokens": out})
        elif path == "/detokenize":
            self.send(h, 200, {"content": bytes_of(data["tokens"]).decode(errors="replace")})
        elif path == "/slots" and self.slots is not None:
            self.send(h, 200, self.slots)
        elif path == "/apply-template":
            self.send(h, 200, {"prompt": self.render(data)})
        elif path == "/completion" and data.get("grammar", "").startswith("root ::= <["):
            self.llama_scores(h, data)
        elif path == "/completion" and not data.get("stream"):
            self.probes.append(data)
            ids = data["prompt"]
            cached = self.find(ids, data.get("n_cache_reuse", 0))
            self.held = ids
            self.send(h, 200, {"content": "a", "tokens": [97], "stop": True} if self.moves is None else {
                "content": "a", "stop": True, "timings": {"cache_n": cached, "prompt_n": 1}})
        elif path == "/completion":
            row = self.next_row()
            self.requests.append(data)
            ids = data["prompt"]
            if len(ids) >= self.n_ctx:
                self.fail(h, 400, f"request ({len(ids)} tokens) exceeds the available context size ({self.n_ctx} tokens)",
                          kind="exceed_context_size_error")
                return True
            if row.get("refuses_grammar") and data.get("grammar"):
                self.fail(h, 400, "Failed to parse grammar")
                self.answers.insert(0, row["text"])
                return True
            cached, answer = self.begin(ids, row, data.get("n_cache_reuse", 0))
            pieces = [{"index": 0, "content": "", "tokens": [-1], "stop": False, "prompt_progress": {
                "total": len(ids), "cache": cached, "processed": len(ids), "time_ms": 1}}]
            text, told = b"", 0
            for n, i in enumerate(answer):
                text += b"" if i == END else NAMES.get(i) or bytes([i])
                try:
                    whole = text.decode()
                except UnicodeDecodeError:
                    continue  # as llama-server: nothing is told of a letter's first tokens
                pieces.append({"index": 0, "content": whole[told:], "tokens": [i], "stop": False, "tokens_predicted": n + 1,
                               "tokens_evaluated": len(ids)})
                told = len(whole)
            if not row.get("no_final"):
                pieces.append({"index": 0, "content": "", "tokens": [], "stop": True, "model": row.get("model", self.model),
                               "tokens_predicted": len(answer), "tokens_evaluated": len(ids), "truncated": row.get("truncated", False),
                               "stop_type": "limit" if row.get("no_end") else "eos",
                               "timings": {"cache_n": cached, "prompt_n": len(ids) - cached, "predicted_n": len(answer)}})
            self.chunks(h, pieces, row)
        else:
            return False
        return True

    def vllm(self, h, path, data):
        if path == "/version":
            self.send(h, 200, {"version": "0.32.0"})
        elif path == "/tokenize":
            ids = tokens_of(self.render(data) if "messages" in data else data["prompt"], True)
            self.send(h, 200, {"count": len(ids), "max_model_len": self.n_ctx, "tokens": ids,
                               "token_strs": [spelled(i) for i in ids] if data.get("return_token_strs") else None})
        elif path == "/metrics" and self.block:
            self.send(h, 200, f'# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{{block_size="{self.block}",engine="0"}} 1.0\n'.encode())
        elif path == "/detokenize":
            self.send(h, 200, {"prompt": bytes_of(data["tokens"]).decode(errors="replace")})
        elif path == "/v1/completions" and data.get("prompt_logprobs"):
            self.vllm_scores(h, data)
        elif path == "/v1/completions":
            row = self.next_row()
            self.requests.append(data)
            if row.get("refuses_grammar") and "grammar" in data.get("structured_outputs", {}):
                self.fail(h, 400, "Invalid grammar specification.")
                self.answers.insert(0, row["text"])
                return True
            ids = data["prompt"]
            cached, answer = self.begin(ids, row)
            cached -= cached % (self.block or 16)
            pieces, text, told = [], b"", 0
            for n, i in enumerate(answer):
                text += NAMES.get(i) or bytes([i])
                whole = text.decode(errors="ignore")
                finish = "stop" if i == END else "length" if row.get("no_end") and n + 1 == len(answer) else None
                pieces.append({"object": "text_completion", "model": self.model, "choices": [
                    {"index": 0, "text": whole[told:], "token_ids": [i], "finish_reason": finish,
                     "prompt_token_ids": ids if n == 0 else None}]})
                told = len(whole)
            if not row.get("no_usage"):
                pieces.append({"object": "text_completion", "model": self.model, "choices": [], "usage": {
                    "prompt_tokens": len(ids), "completion_tokens": len(answer), "prompt_tokens_details": {"cached_tokens": cached}}})
            if not row.get("no_done"):
                pieces.append("[DONE]")
            self.chunks(h, pieces, row)
        else:
            return False
        return True

    def sglang(self, h, path, data):
        if path == "/tokenize" and ("messages" in data) == ("prompt" in data):
            self.fail(h, 400, "Exactly one of 'prompt' or 'messages' must be provided.")
        elif path == "/tokenize":  # no `add_generation_prompt`: what begins an answer stands there always
            ids = tokens_of(self.render({"messages": data["messages"]}) if "messages" in data else data["prompt"], True)
            self.send(h, 200, {"tokens": ids, "count": len(ids), "max_model_len": self.n_ctx})
        elif path == "/detokenize":
            ids = [i for i in data["tokens"] if i not in NAMES or not data.get("skip_special_tokens", True)]
            self.send(h, 200, {"text": bytes_of(ids).decode(errors="replace")})
        elif path == "/generate" and data.get("return_logprob"):
            self.sglang_scores(h, data)
        elif path == "/generate":
            row, ids = self.next_row(), data["input_ids"]
            self.requests.append(dict(data["sampling_params"], prompt=ids))
            if self.refuses(h, row, data["sampling_params"].get("ebnf")):
                return True
            cached, answer = self.begin(ids, row)
            cached -= cached % (self.block or 1)
            pieces, told, n_told = [], "", 0
            for n in range(1, len(answer) + 1):
                text = bytes_of(i for i in answer[:n] if i != END)
                whole = text.decode(errors="ignore")
                finish = {"type": "stop", "matched": END} if answer[n - 1] == END else \
                    {"type": "length", "length": n} if row.get("no_end") and n == len(answer) else None
                if row.get("several") and n % 3 and not finish:
                    continue
                piece = {"text": whole, "output_ids": answer[:n]}
                if row.get("incremental"):
                    piece = {"text": whole[len(told):], "output_ids": answer[n_told:n]}
                told, n_told = whole, n
                pieces.append(dict(piece, meta_info={"id": "a", "finish_reason": finish, "prompt_tokens": len(ids),
                                                     "completion_tokens": n, "cached_tokens": cached}))
            if not row.get("no_done"):
                pieces.append("[DONE]")
            self.chunks(h, pieces, row)
        else:
            return self.sglang_chat(h, path, data)
        return True

    def sglang_chat(self, h, path, data):
        """Before its /tokenize took messages."""
        if path == "/get_model_info":
            self.send(h, 200, {"model_path": "/m/" + self.model, "is_generation": True})
        elif path == "/get_server_info":
            self.send(h, 200, {"page_size": self.block or 1})
        else:
            return self.chat(h, path, data)
        return True

    def refuses(self, h, row, grammar):
        if not row.get("refuses_grammar") or not grammar:
            return False
        message = "Grammar backend does not take it"
        self.answers.insert(0, row["text"])
        if row["refuses_grammar"] == "in the stream":
            self.chunks(h, [{"error": {"message": message, "type": "BadRequestError", "code": 400}}], {})
        else:
            self.fail(h, 400, message)
        return True

    def chat(self, h, path, data):
        if path != "/v1/chat/completions":
            return False
        row = self.next_row()
        self.requests.append(data)
        if self.refuses(h, row, data.get("ebnf")):
            return True
        pieces = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}]
        for name in ("reasoning_content", "reasoning"):
            for c in row.get(name, ""):
                pieces.append({"choices": [{"index": 0, "delta": {name: c}, "finish_reason": None}]})
        for c in row.get("text", ""):
            pieces.append({"choices": [{"index": 0, "delta": {"content": c}, "finish_reason": None}]})
        def part(k, **function):
            known = {"id": f"c{k}", "type": "function"} if "name" in function else {}
            return dict(known, index=0 if row.get("one_index") else k, function=function)

        calls = [[part(k, name=call["name"], arguments="")] + [part(k, arguments=c) for c in json.dumps(call["arguments"])]
                 for k, call in enumerate(row.get("calls", []))]
        if row.get("by_turns"):  # a part of each call in every event
            events = [[p for p in parts if p] for parts in itertools.zip_longest(*calls)]
        elif row.get("at_once"):
            events = [[part(k, **call) for k, call in enumerate({"name": c["name"], "arguments": json.dumps(c["arguments"])} for c in row["calls"])]]
        else:
            events = [[p] for parts in calls for p in parts]
        for parts in events:
            pieces.append({"choices": [{"index": 0, "delta": {"tool_calls": parts}}]})
        pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if row.get("calls") else "stop"}]})
        pieces.append({"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 640}}})
        if not row.get("no_done"):
            pieces.append("[DONE]")
        self.chunks(h, pieces, row)
        return True


class Publisher:
    """What an engine says of its cache: ZeroMQ's PUB side (ZMTP 3.0, no security), and the few MessagePack values that events are of."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        self.listeners, self.number, self.subscribed = [], 0, threading.Event()
        self.late = 0  # seconds that an event comes behind its request
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
                peer.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48))
                for _ in range(64):
                    peer.recv(1)
                ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"
                peer.sendall(bytes([4, len(ready)]) + ready)
                while not peer.recv(4096).endswith(b"\x00\x01\x01"):  # what it subscribes to: all
                    pass
            except OSError:
                return
            self.listeners.append(peer)
            self.subscribed.set()

    def close(self):
        for one in [self.listener] + self.listeners:
            one.close()

    def send(self, events, number=None):
        parts = [b"", (self.number if number is None else number).to_bytes(8, "big"), packed([time.time(), events])]
        self.number += 1
        data = b""
        for i, part in enumerate(parts):
            more = i + 1 < len(parts)
            data += (bytes([more, len(part)]) if len(part) < 256 else bytes([2 + more]) + len(part).to_bytes(8, "big")) + part
        for peer in self.listeners:
            peer.sendall(data)


def packed(value):
    if value is None:
        return b"\xc0"
    if isinstance(value, int):
        return b"\xd3" + value.to_bytes(8, "big", signed=True)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"\xda" + len(value.encode()).to_bytes(2, "big") + value.encode()
    if isinstance(value, list):
        return b"\xdc" + len(value).to_bytes(2, "big") + b"".join(map(packed, value))
    return b"\xde" + len(value).to_bytes(2, "big") + b"".join(packed(k) + packed(v) for k, v in value.items())


@functools.lru_cache(maxsize=None)
def spelled(i):
    """A byte as byte-level BPE writes it (GPT-2's table)."""
    if i in NAMES:
        return NAMES[i].decode()
    plain = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    return chr(i) if i in plain else chr(256 + [b for b in range(256) if b not in plain].index(i))
