"""What goes wrong on the way: broken streams, refusals, redirects, too small a context, bad certificates."""
import json
import os
import shutil
import subprocess
import time
import unittest

from remote_case import Remote, main
from server import bytes_of


class Faults(Remote):
    def test_broken_streams_go_on(self):
        for kind in ("llama", "vllm", "sglang"):
            for fault in ("break_after", "error_after"):
                s = self.serve(kind, [{"text": "It doubles the number x.", fault: 9}, {"text": " and ends", fault: 4}, " here."])
                run, events = self.ask(s, "--ephemeral")
                text = self.answer(events)
                self.assertTrue(text.startswith("It doub") and text.endswith(" here."), (kind, fault, text, run.stderr))
                first, second = s.requests[0]["prompt"], s.requests[1]["prompt"]
                self.assertEqual(second[:len(first)], first)
                self.assertEqual(bytes_of(second[len(first):]).decode(), text[:len(second) - len(first)])

    def test_endless_breaking_ends_in_a_sentence(self):
        s = self.serve("llama", [{"text": "", "break_after": 1}] * 20)
        run, events = self.ask(s)
        self.assertEqual(self.of(events, "turn_end")[0]["status"], "failed")
        self.assertEqual(len(self.of(events, "error")), 1, run.stdout)
        self.assertLessEqual(len(s.requests), 7)

    def test_statuses(self):
        rows = [(401, "wants a key"), (403, "refuses"), (404, "/completion"), (413, "size"), (500, "500")]
        for status, words in rows:
            s = self.serve("llama", ["x"])
            s.faults["/completion"] = lambda h, status=status, s=s: s.fail(h, status, "because of \x1b[31mthis")
            run, events = self.ask(s)
            errors = self.of(events, "error")
            self.assertEqual(len(errors), 1, (status, run.stdout[-500:]))
            self.assertIn(words, errors[0]["text"])
            self.assertNotIn("\x1b", errors[0]["text"])
            again = self.serve("llama", ["Intact."])
            _, events = self.ask(again, "--resume", text="Again?")
            self.assertEqual(self.answer(events), "Intact.")

    def test_retry_after_and_loading(self):
        for status, headers in ((429, [("Retry-After", "1")]), (503, []), (502, [])):
            s = self.serve("llama", ["There."])
            s.faults["/completion"] = [lambda h: s.fail(h, status, "Loading model", headers)] * 2
            begun = time.monotonic()
            _, events = self.ask(s, "--ephemeral")
            self.assertEqual(self.answer(events), "There.")
            if status == 429:
                self.assertGreaterEqual(time.monotonic() - begun, 2)
        s = self.serve("llama", ["x"])
        s.faults["/completion"] = lambda h: s.fail(h, 429, "slow down", [("Retry-After", "3600")])
        _, events = self.ask(s, "--ephemeral")
        self.assertIn("3600 s", self.of(events, "error")[0]["text"])

    def test_what_is_refused(self):
        def far(h):
            s.send(h, 307, {}, [("Location", f"{other.url}/completion")])

        def packed(h):
            s.send(h, 200, b"\x1f\x8b" * 100, [("Content-Encoding", "gzip")])

        def long_line(h):
            h.send_response(200)
            h.send_header("Connection", "close")
            h.end_headers()
            h.close_connection = True
            try:
                for _ in range(1600):
                    h.wfile.write(b"x" * 65536)
            except OSError:
                s.cut += 1

        other = self.serve("llama", ["Never."])
        for fault, words in ((far, "another server"), (packed, "compressed"), (long_line, "8 MiB")):
            s = self.serve("llama", ["x"], key="sk-secret")
            s.faults["/completion"] = fault
            run, events = self.ask(s, "--ephemeral", env={"KVIST_API_KEY": "sk-secret"})
            errors = self.of(events, "error")
            self.assertTrue(errors and words in errors[0]["text"], (words, run.stdout[-600:]))
        self.assertEqual(other.paths, [])

    def test_redirect_within_the_server(self):
        s = self.serve("llama", ["There."])
        s.faults["/completion"] = [lambda h: s.send(h, 307, {}, [("Location", "/completion")])]
        _, events = self.ask(s, "--ephemeral")
        self.assertEqual(self.answer(events), "There.")

    def test_the_context_is_smaller_than_told(self):
        s = self.serve("llama", ["x"])
        s.faults["/completion"] = lambda h: s.fail(h, 400, "request (5000 tokens) exceeds the available context size (4096 tokens)",
                                                   kind="exceed_context_size_error")
        _, events = self.ask(s, "--ephemeral")
        self.assertIn("4096", self.of(events, "error")[0]["text"])
        self.assertIn("/compact", self.of(events, "error")[0]["text"])

    def test_what_does_not_fit(self):
        """One sentence each, by what helps: the prompt alone, one message, all of them; a session that was refused goes on smaller."""
        for kind in ("llama", "vllm", "chat"):
            run = self.kvist("-p", "x", "--endpoint", self.serve(kind, n_ctx=300).url, "--ephemeral")
            self.assertEqual(run.returncode, 4, run.stderr)
            self.assertIn("has no room for kvist's own prompt and AGENTS.md; serve the model with a larger one", run.stderr, kind)
            s = self.serve(kind, ["Known.", "Small.", "Again."], n_ctx=16384)
            self.ask(s, "--ephemeral")  # its probe is behind it
            s.requests.clear()
            run, events = self.ask(s, text="word " * 20000)
            self.assertRegex(self.of(events, "error")[0]["text"], "a text of [0-9]+ tokens is larger than the endpoint's whole context of 16384", kind)
            self.assertEqual(s.requests, [])
            path = {"llama": "/completion", "vllm": "/v1/completions", "chat": "/v1/chat/completions"}[kind]
            s.faults[path] = [lambda h: s.fail(h, 400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens")]
            run = self.kvist("--linear", "--resume", "--endpoint", s.url, "--context", "off", stdin="What is twice?\n/compact\nAnd now?\n")
            self.assertIn("maximum context length is 4096 tokens. However, you requested 5000 tokens; /compact starts a smaller session", run.stdout + run.stderr, kind)
            self.assertIn("Small.", run.stdout, (kind, run.stderr))

    def test_waiting_is_told(self):
        """Once a request, by a notice while it is waited for."""
        for kind, path in (("llama", "/completion"), ("chat", "/v1/chat/completions")):
            s = self.serve(kind, ["There."])
            s.faults[path] = [lambda h: s.fail(h, 503, "Loading model")] * 4
            run, events = self.ask(s, "--ephemeral", "--endpoint-wait", "70")
            self.assertEqual(self.answer(events), "There.")
            told = [e["text"] for e in self.of(events, "notice") if "is not ready (503): Loading model (asked again, for at most 600 s)" in e["text"]]
            self.assertEqual(len(told), 1, (kind, run.stdout))

    def test_a_template_that_writes_its_history_otherwise(self):
        """Its own template is taken apart; where a history comes out differently that is said, and kvist keeps to what was sent."""
        s = self.serve("llama", ["One.", "Two."])
        whole = s.render
        s.render = lambda data: ("" if len(data["messages"]) < 3 else "<|im_start|>system\nA long one.<|im_end|>\n") + whole(data)
        run, events = self.ask(s)
        self.assertTrue(any("its template writes a history differently" in e["text"] for e in self.of(events, "notice")), self.of(events, "notice"))
        self.ask(s, "--resume", text="More?")
        self.assertEqual(s.requests[1]["prompt"][:len(s.requests[0]["prompt"])], s.requests[0]["prompt"])
        self.assertIn("template", self.kvist("doctor", "--endpoint", s.url).stdout)

    def test_a_truncated_context_is_told_once(self):
        s = self.serve("llama", [{"text": "One.", "truncated": True}, {"text": "Two.", "truncated": True}, "Three."])
        run = self.kvist("--linear", "--endpoint", s.url, "--context", "off", stdin="One?\nTwo?\nThree?\n")
        for words in ("One.", "Two.", "Three."):
            self.assertIn(words, run.stdout, run.stderr)
        self.assertEqual((run.stdout + run.stderr).count("left a part of what it was sent out"), 1, run.stdout)
        log = [json.loads(line) for line in self.kvist("log", "export", self.last_session()).stdout.splitlines()]
        # What such a server holds is not known: nothing is predicted behind it.
        self.assertEqual([r["predicted"] > 0 for r in self.of(log, "request")], [False, False, False])

    def test_no_server(self):
        s = self.serve("llama")
        s.close()
        self.servers.pop()
        run = self.kvist("-p", "x", "--endpoint", "http://127.0.0.1:1", "--endpoint-wait", "1", "--ephemeral")
        self.assertIn("nothing answers at http://127.0.0.1:1", run.stderr)
        self.assertNotEqual(run.returncode, 0)

    def fifty_turns(self, latency, break_every):
        s = self.serve("llama", [f"Answer {i}." for i in range(50)])
        s.latency, s.break_every = latency, break_every
        run = self.kvist("--linear", "--endpoint", s.url, "--context", "off", stdin="".join(f"Question {i}?\n" for i in range(50)))
        for i in range(50):
            self.assertIn(f"Answer {i}.", run.stdout)
        return s

    def test_latency_and_broken_connections(self):
        """50 turns with breaks between: each comes to its end."""
        self.fifty_turns(0.002, 37)

    @unittest.skipUnless(os.environ.get("KVIST_TEST_LONG"), "waits longer than it computes: scripts/test all")
    def test_a_far_server_and_broken_connections(self):
        """50 turns, 200 ms to each answer, each hundredth connection broken."""
        begun = time.monotonic()
        s = self.fifty_turns(0.2, 100)
        print(f"{s.n_connections} connections, {s.n_connections // 100} of them broken, {time.monotonic() - begun:.0f} s")
        self.assertGreater(s.n_connections, 100)  # else none was broken

    def certificate(self, name, *, for_whom="IP:127.0.0.1", by=None, days=("-days", "9999")):
        """A file with a certificate and its key, signed by itself or by the one in the file `by`."""
        def path(kind):
            return os.path.join(self.folder, f"{name}.{kind}")

        def openssl(*words):
            subprocess.run(["openssl", *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        with open(path("ext"), "w") as f:
            f.write(f"subjectAltName={for_whom}\nbasicConstraints=CA:{'FALSE' if by else 'TRUE'}\n")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", path("key"), "-out", path("csr"), "-subj", f"/CN={name}")
        signer = ["-CA", by, "-CAkey", by, "-CAcreateserial"] if by else ["-signkey", path("key")]
        openssl("x509", "-req", "-in", path("csr"), "-extfile", path("ext"), *days, "-out", path("crt"), *signer)
        with open(path("pem"), "w") as out:
            for kind in ("crt", "key"):
                with open(path(kind)) as f:
                    out.write(f.read())
        return path("pem")

    @unittest.skipUnless(shutil.which("openssl"), "there is no program openssl")
    def test_bad_certificates_are_refused(self):
        ours = self.certificate("ours")
        trust = {"SSL_CERT_FILE": ours}
        for name, of, env, words in (
                ("self", {}, trust, "self-signed|self signed"),
                ("elsewhere", {"by": ours, "for_whom": "DNS:elsewhere.example"}, trust, "name"),
                ("old", {"by": ours, "days": ("-days", "-1")}, trust, "expired")):
            s = self.serve("llama", ["It doubles x."], certificate=self.certificate(name, **of))
            run, _ = self.ask(s, "--ephemeral", env=env)
            self.assertNotEqual(run.returncode, 0)
            self.assertRegex(run.stdout + run.stderr, f"the certificate of {s.url} is refused, and nothing was sent: .*({words})")
            self.assertEqual(s.requests, [])
        s = self.serve("llama", ["It doubles x."], certificate=self.certificate("good", by=ours))
        run, _ = self.ask(s, "--ephemeral", env={"SSL_CERT_FILE": "/nowhere/at-all.crt"})
        self.assertNotEqual(run.returncode, 0)
        self.assertIn(f"the certificate of {s.url} cannot be checked, and nothing was sent: ", run.stdout + run.stderr)
        self.assertEqual(s.requests, [])
        run, events = self.ask(s, "--ephemeral", env=trust)
        self.assertIn("It doubles x.", self.answer(events), run.stderr)


if __name__ == "__main__":
    main()
