#!/usr/bin/env python3
"""A call whose end is missing is another call: "rm -rf build" may be the begin of "rm -rf build/tmp", and half of a file in place of the
whole one loses the rest. An answer that was cut, by our limit of tokens or a server's own, is told and nothing of such a call is done."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.abspath(sys.argv[2]), "tests", "remote"))
from kit import Hostile, call, main  # noqa: E402
from server import Server  # noqa: E402

LINES = "".join(f"line {i} of it\n" for i in range(120))
COMMAND = "mkdir -p gone; touch gone/x"  # the last word is cut


class Cut(Hostile):
    def setUp(self):
        super().setUp()
        self.env = {k: v for k, v in self.env.items() if "proxy" not in k.lower()}

    def told(self, events):
        return [e for e in events if e["event"] == "notice" and "inside of a call" in e["text"]]

    def test_by_our_limit_of_tokens(self):
        body = "int twice(int x)\n{\n" + "".join(f"    x += {i};\n" for i in range(60)) + "    return x;\n}"
        script = call("read", path="src/one.c") + call("rewrite", body, path="src/one.c", name="twice") + \
            call("write", LINES[:-1], path="new.txt") + "answer Done.\n"
        before = self.get("src/one.c")
        _, events, results = self.ask(script, "edits", "Go.", "--max-tokens", "300")
        self.assertEqual([r["name"] for r in results], ["read"])
        self.assertEqual((self.get("src/one.c"), self.has("new.txt")), (before, False))
        self.assertTrue(self.told(events))
        _, events, results = self.ask(script, "edits", "Go.", "--max-tokens", "4000")  # the control: the same answer, whole
        self.assertEqual([r["status"] for r in results], ["ok", "ok", "ok"], results)
        self.assertIn(body.encode(), self.get("src/one.c"))
        self.assertEqual(self.get("new.txt").decode(), LINES)
        self.assertFalse(self.told(events))

    def test_a_command(self):
        script = call("shell", command="echo " + "x" * 400 + " > x; " + COMMAND) + "answer Done.\n"
        _, events, results = self.ask(script, "all", "Go.", "--max-tokens", "80")
        self.assertEqual(results, [])
        self.assertTrue(self.told(events))
        self.assertFalse(self.has("x"))

    def serve(self, pieces):
        s = Server("chat", [])
        first = [lambda h: s.chunks(h, pieces, {})]
        s.faults["/v1/chat/completions"] = first + [lambda h: s.chunks(h, [self.text("Done."), self.end("stop"), "[DONE]"], {})] * 3
        self.addCleanup(s.close)
        return s

    def text(self, text):
        return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}

    def begin(self, arguments):
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c0", "type": "function", "function": {
            "name": "shell", "arguments": arguments}}]}, "finish_reason": None}]}

    def end(self, reason):
        return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}

    def test_by_a_servers_limit(self):
        half, whole = json.dumps({"command": COMMAND})[:-8], json.dumps({"command": COMMAND})
        written = '<tools>{"name": "shell", "arguments": ' + whole + "}</tools>"
        for name, pieces, n in (
                ("whole", [self.begin(whole), self.end("tool_calls"), "[DONE]"], 1),  # the controls
                ("as text, whole", [self.text(written), self.end("stop"), "[DONE]"], 1),
                ("length", [self.begin(half), self.end("length"), "[DONE]"], 0),
                ("length behind whole arguments", [self.begin(whole[:-1]), self.end("length"), "[DONE]"], 0),
                ("no reason", [self.begin(half), "[DONE]"], 0),
                ("as text", [self.text(written[:-20]), self.end("length"), "[DONE]"], 0)):
            with self.subTest(name=name):
                s = self.serve(pieces)
                run = self.kvist("-p", "Go.", "--json", "--mode", "all", "--endpoint", s.url, "--ephemeral")
                events = [json.loads(line) for line in run.stdout.splitlines()]
                results = [e for e in events if e["event"] == "tool_result"]
                self.assertEqual(len(results), n, (results, run.stderr))
                self.assertEqual(bool(self.told(events)), not n)
                for told in self.told(events):
                    self.assertIn("the server ended it", told["text"])

    def test_what_a_server_is_asked_for(self):
        """As many tokens as the person allowed, so that the limit that cuts is the one that is named."""
        for given, asked in (([], 4096), (["--max-tokens", "9000"], 9000), (["--max-tokens", "70"], 70)):
            s = Server("chat", ["Fine."])
            self.addCleanup(s.close)
            self.kvist("-p", "Go.", "--json", "--mode", "plan", "--endpoint", s.url, "--ephemeral", "--ctx", "16384", *given)
            self.assertEqual([r["max_tokens"] for r in s.requests if "max_tokens" in r][-1], asked)


main()
