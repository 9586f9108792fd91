"""vLLM's forms over a real tokenizer and template, every answer the same words: what an agent sends, and what prefix caching finds of it.

    python tests/remote/serve_words.py FOLDER PORT        by hand; FOLDER: a tokenizer as Hugging Face's transformers loads it

Two agents that stand behind scripts/remote-proxy get the same answers at once, so their requests can be compared without a model's time.
Every block of 32 tokens that was asked once is found again, as by a vLLM whose memory is never short; the last token never is.
"""
import http.server
import json
import sys
import threading

BLOCK, ANSWER, N_CTX = 32, "I cannot tell that from what I see.", 32768


class Words:
    def __init__(self, folder):
        from transformers import AutoTokenizer
        self.tokenizer, self.held, self.lock = AutoTokenizer.from_pretrained(folder), [], threading.Lock()

    def ids(self, text):
        return self.tokenizer(text, add_special_tokens=False).input_ids

    def render(self, messages, is_open=True):
        return self.ids(self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=is_open))

    def ask(self, ids, answer):
        """Tokens that are found; from now on all of these are."""
        with self.lock:
            best = 0
            for held in self.held:
                n = 0
                while n < min(len(held), len(ids)) and held[n] == ids[n]:
                    n += 1
                best = max(best, n)
            self.held.append(ids + answer[:-1])
        return min(best, len(ids) - 1) // BLOCK * BLOCK

    def tokenize(self, data):
        ids = self.render(data["messages"], data.get("add_generation_prompt", True)) if "messages" in data else self.ids(data["prompt"])
        return {"count": len(ids), "max_model_len": N_CTX, "tokens": ids, "token_strs": self.tokenizer.convert_ids_to_tokens(ids)}

    def answer(self, ids):
        answer = self.ids(ANSWER) + [self.tokenizer.eos_token_id]
        usage = {"prompt_tokens": len(ids), "completion_tokens": len(answer), "total_tokens": len(ids) + len(answer),
                 "prompt_tokens_details": {"cached_tokens": self.ask(ids, answer)}}
        return answer, usage

    def stream(self, ids):
        answer, usage = self.answer(ids)
        told, events = "", []
        for n, i in enumerate(answer):
            is_last = n + 1 == len(answer)
            text = told if is_last else self.tokenizer.decode(answer[:n + 1])
            events.append({"model": "words", "choices": [{"index": 0, "text": text[len(told):], "token_ids": [i], "finish_reason": "stop" if is_last else None,
                                                          "prompt_token_ids": None if n else ids}]})
            told = text
        events.append({"model": "words", "choices": [], "usage": usage})
        return b"".join(b"data: " + json.dumps(e).encode() + b"\n\n" for e in events) + b"data: [DONE]\n\n"

    def chat(self, data):
        _, usage = self.answer(self.render(data["messages"]))
        return {"id": "a", "object": "chat.completion", "created": 1, "model": "words", "usage": usage,
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}]}


def main():
    words = Words(sys.argv[1])

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *a):
            pass

        def reply(self, body, kind="application/json"):
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            known = {"/version": {"version": "0.32.0"}, "/v1/models": {"data": [{"id": "words", "max_model_len": N_CTX}]},
                     "/metrics": f'vllm:cache_config_info{{block_size="{BLOCK}"}} 1.0\n'.encode()}
            self.reply(known[self.path]) if self.path in known else self.send_error(404)

        def do_POST(self):
            data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/tokenize":
                self.reply(words.tokenize(data))
            elif self.path == "/detokenize":
                self.reply({"prompt": words.tokenizer.decode(data["tokens"], skip_special_tokens=False, clean_up_tokenization_spaces=False)})
            elif self.path == "/v1/completions":
                self.reply(words.stream(data["prompt"]), "text/event-stream")
            elif self.path == "/v1/chat/completions":
                self.reply(words.chat(data))
            else:
                self.send_error(404)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
