"""Whole pieces of work: sessions of strong models, several calls in a message, repairs that begin where the model doubts."""
import json
import os
import signal
import subprocess
import threading

from remote_case import DATA, KVIST, PATIENCE, Remote, call, main
from server import bytes_of


class Work(Remote):
    def test_chat_endpoint(self):
        s = self.serve("chat", [
            {"reasoning_content": "Let me look.", "calls": [{"name": "read", "arguments": {"path": "src/one.c"}}]},
            {"reasoning": "Clear now.", "text": "It doubles x."}], model="big-70b")
        run, events = self.ask(s, "--ephemeral")
        self.assertEqual([e["name"] for e in self.of(events, "tool_call")], ["read"])
        self.assertIn("It doubles x.", self.answer(events))
        notice = self.of(events, "notice")[0]["text"]
        self.assertIn("asked by messages (chat)", notice)
        self.assertIn("estimates", notice)
        second = s.requests[1]["messages"]
        self.assertEqual([m["role"] for m in second][-2:], ["assistant", "user"])
        self.assertIn('<tool_call>\n{"name": "read"', second[-2]["content"])
        self.assertNotIn("Let me look", json.dumps(second))
        self.assertIn("return 2 * x", second[-1]["content"])
        self.assertEqual(self.of(events, "request")[0]["cached"], 640)

    def test_a_strong_model_at_work(self):
        """Sessions as strong models write them, by hand: two calls in a message, an edit by exact text that misses once, a check, a second turn."""
        blocks = "<<<<<<< OLD\n{}\n=======\n{}\n>>>>>>> NEW\n"
        missed, meant = blocks.format("    return x * 2;", "    return 2 * x + 1;"), blocks.format("    return 2 * x;", "    return 2 * x + 1;")
        test = "#!/bin/sh\ngrep -q 'x + 1' src/one.c && echo fine\n"
        for kind in ("llama", "vllm", "chat"):
            self.put("src/one.c", "/* Doubles a number. */\nint twice(int x)\n{\n    return 2 * x;\n}\n")
            if os.path.exists(os.path.join(self.tree, "check.sh")):
                os.remove(os.path.join(self.tree, "check.sh"))

            def says(text, *calls):
                if kind == "chat":
                    return {"text": text, "calls": [{"name": n, "arguments": dict(a, **({"content": p} if p is not None else {}))} for n, p, a in calls]}
                return {"text": text + ("\n" if text and calls else "") + "\n".join(call(n, p, **a) for n, p, a in calls)}
            script = [
                says("I look at both first.", ("read", None, {"path": "src/one.c"}), ("search", None, {"pattern": "twice"})),
                says("Now the change.", ("edit", missed, {"path": "src/one.c"})),
                says("That line reads otherwise.", ("edit", meant, {"path": "src/one.c"})),
                says("", ("write", test, {"path": "check.sh"})),
                says("", ("shell", None, {"command": "sh check.sh"})),
                says("`twice` gives one more now, and check.sh says so."),
                says("", ("read", None, {"path": "check.sh"})),
                says("It looks for the new line of `twice`.")]
            s = self.serve(kind, script, model="big-70b")
            run, events = self.ask(s, "--mode", "all", "--agent", "strong", text="Let twice give one more, and write a script that checks it.")
            self.assertEqual(run.returncode, 0, (kind, run.stderr))
            calls = [e["name"] for e in self.of(events, "tool_call") if e["arguments"].get("command", "sh check.sh") == "sh check.sh"]  # not the compiler's
            self.assertEqual(calls, ["read", "search", "edit", "edit", "write", "shell"], (kind, run.stderr))
            self.assertEqual([e["status"] for e in self.of(events, "tool_result") if e["name"] == "edit"], ["failed", "ok"], (kind, run.stdout))
            with open(os.path.join(self.tree, "src/one.c")) as f:
                self.assertIn("    return 2 * x + 1;\n", f.read())
            self.assertIn("check.sh says so", self.answer(events))
            self.assertEqual(self.of(events, "outcome")[-1]["state"], "done", self.of(events, "outcome"))
            run, events = self.ask(s, "--resume", text="How does it check that?")
            self.assertIn("the new line", self.answer(events), (kind, run.stderr))
            if kind != "chat":  # nothing was rendered again, over both turns
                for a, b in zip(s.requests, s.requests[1:]):
                    self.assertEqual(b["prompt"][:len(a["prompt"])], a["prompt"], kind)

    def several(self, kind, calls, *words, agent="strong", **how):
        """A message with several calls, then an answer -> the server and the events of the turn."""
        shapes = {"calls": [{"name": n, "arguments": dict(a, **({"content": p} if p is not None else {}))} for n, p, a in calls]}
        if kind != "chat":
            shapes = {"text": "\n".join(call(n, p, **a) for n, p, a in calls)}
        s = self.serve(kind, [dict(shapes, **how), "All done."])
        run, events = self.ask(s, "--agent", agent, *words, text="What do both files say?")
        self.assertEqual(self.answer(events)[-9:], "All done.", (kind, run.stdout[-3000:], run.stderr))
        return s, [(e["name"], e["status"]) for e in self.of(events, "tool_result")], events

    def asked_last(self, s):
        r = s.requests[-1]
        return bytes_of(r["prompt"]).decode() if "prompt" in r else "".join(m["content"] for m in r["messages"])

    def test_several_calls_of_a_message(self):
        """Read, made and answered in their order, whatever way their parts come in."""
        calls = [("write", "one", {"path": "a.txt"}), ("write", "two", {"path": "b.txt"}), ("shell", None, {"command": "cat a.txt b.txt"})]
        ways = [("llama", {}), ("vllm", {}), ("sglang", {})] + [("chat", {w: True} if w else {}) for w in (None, "by_turns", "at_once", "one_index")]
        for kind, how in ways:
            for name in ("a.txt", "b.txt"):
                if os.path.exists(os.path.join(self.tree, name)):
                    os.remove(os.path.join(self.tree, name))
            s, results, events = self.several(kind, calls, "--mode", "all", **how)
            self.assertEqual(results, [("write", "ok"), ("write", "ok"), ("shell", "ok")], (kind, how))
            seen = self.asked_last(s)
            self.assertLess(seen.index("a.txt", seen.rindex("both files say")), seen.rindex("one\ntwo\n"), (kind, how))
            self.assertEqual(len(s.requests), 2, (kind, how))
            if kind != "chat":  # each result is a message of its own, and nothing was rendered again
                self.assertEqual(seen[len(bytes_of(s.requests[0]["prompt"])):].count("<|im_start|>"), 4, (kind, seen[-800:]))
                self.assertEqual(s.requests[1]["prompt"][:len(s.requests[0]["prompt"])], s.requests[0]["prompt"])

    def test_several_calls_where_one_is_refused(self):
        """Nobody can be asked: the first is refused, and the others, which were written as if it had been made, are not."""
        calls = [("read", None, {"path": "src/one.c"}), ("write", "one\n", {"path": "a.txt"}), ("read", None, {"path": "a.txt"})]
        for kind in ("llama", "chat"):
            s, results, events = self.several(kind, calls, "--mode", "ask")
            self.assertEqual(results, [("read", "ok"), ("write", "denied")], kind)
            self.assertIn("Not made: the person said no to the call before it.", self.asked_last(s))
            self.assertFalse(os.path.exists(os.path.join(self.tree, "a.txt")))

    def test_several_calls_of_a_small_model(self):
        """It would go on with what it thinks the result is: the first call ends the message."""
        calls = [("read", None, {"path": "src/one.c"}), ("search", None, {"query": "twice"})]
        for kind in ("llama", "chat"):
            s, results, events = self.several(kind, calls, "--mode", "all", agent="small")
            self.assertEqual(results, [("read", "ok")], kind)

    def test_behind_calls_prose_ends_the_message(self):
        text = call("read", path="src/one.c") + "\n" + call("search", query="twice") + "\nThe result says that it is fine.\n" + call("read", path="check.sh")
        s = self.serve("llama", [text, "All done."])
        run, events = self.ask(s, "--mode", "all", "--agent", "strong")
        self.assertEqual([(e["name"], e["status"]) for e in self.of(events, "tool_result")], [("read", "ok"), ("search", "ok")], run.stdout[-3000:])
        self.assertNotIn("it is fine", self.asked_last(s))

    def put_failing(self):
        self.put("add.sh", "add() {\n    echo $(($1 - $2))\n}\n")
        self.put("test_add.sh", '. ./add.sh\n[ "$(add 2 3)" = 5 ]\n')

    def repair_begun(self, s):
        """A model that copies what is there, so that it is asked what it doubts: the program, running."""
        self.put_failing()
        s.answers = ['The sign is wrong.\n{"name": "rewrite", "arguments": {"path": "add.sh", "name": "add"}}\n```sh\nadd() {\n    echo $(($1 - $2))\n}\n```\n']
        return subprocess.Popen([KVIST, "-p", "test_add.sh fails; fix it", "--json", "--endpoint", s.url, "--mode", "all", "--tries", "1"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", env=self.env, cwd=self.tree)

    def repair(self, kind, *words, tells=True):
        """A test that fails, a model that copies what is there, and what it doubts in it: -> the server, events, the file behind it."""
        self.put_failing()
        copy = '{"name": "rewrite", "arguments": {"path": "add.sh", "name": "add"}}\n```sh\nadd() {\n    echo $(($1 - $2))\n}\n```\n'
        line = [] if "--tries" in words else ["The sign is wrong.\n"]  # a candidate begins with one of its own
        s = self.serve(kind, ["The sign is wrong.\n" + copy, *line, " - $2))\n}\n```\n", *line, " $2))\n}\n```\n", "Fixed.", "Fixed.", "Fixed."])
        s.doubts, s.tells_scores = {"1": ("3", -2.0), "-": ("+", 0.5)}, tells
        run, events = self.ask(s, "--mode", "all", *words, text="test_add.sh fails; fix it")
        with open(os.path.join(self.tree, "add.sh")) as f:
            return s, run, events, f.read()

    def test_further_attempts_begin_at_doubts(self):
        """The least certain token of the old text first; a request of its own tells them, and what stands in front is read or found only."""
        for kind in ("llama", "vllm", "sglang"):
            for words in (("--tries", "1"), ()):
                s, run, events, text = self.repair(kind, *words)
                self.assertEqual(text, "add() {\n    echo $(($1 + $2))\n}\n", (kind, words, run.stdout, run.stderr))
                self.assertEqual(len(s.scored), 1, (kind, words))
                read, scored = s.scored[0]
                if kind == "vllm":
                    self.assertTrue(bytes_of(read).endswith(b"add() {\n    echo $(($1 - $2))\n}"), read)
                else:  # the fence and the definition's first line are read, its body is scored
                    self.assertTrue(bytes_of(read).endswith(b"add() "), bytes_of(read)[-40:])
                    self.assertEqual(bytes_of(scored), b"{\n    echo $(($1 - $2))\n}")
                begun = [bytes_of(r["prompt"]) for r in s.requests]
                self.assertTrue(any(b.endswith(b"echo $(($3") for b in begun) and any(b.endswith(b"echo $(($1 +") for b in begun), (kind, words))
                for r in self.of(events, "request"):  # one more: behind a call, as ever; -1: vLLM tells it too late for a busy machine
                    self.assertTrue(r["cached"] == -1 or r["cached"] - r["predicted"] in (0, 1), (kind, words, r))

    def test_doubts_that_are_waited_for_are_given_up(self):
        """The request that asks for them is one whole answer: Ctrl+C closes its connection, and the session stands."""
        for kind in ("llama", "vllm", "sglang"):
            s = self.serve(kind)
            is_asked, is_closed = threading.Event(), threading.Event()

            def hang(h, data):
                is_asked.set()
                while h.connection.recv(1):
                    pass
                is_closed.set()

            s.scores_hang = hang
            run = self.repair_begun(s)
            self.assertTrue(is_asked.wait(PATIENCE), kind)
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=PATIENCE)
            self.assertTrue(is_closed.wait(PATIENCE), kind)
            events = [json.loads(line) for line in out.splitlines()]
            self.assertEqual(self.of(events, "turn_end")[-1]["status"], "interrupted", (kind, err))
            s.scores_hang = None
            s.answers = ["Intact."]
            run, events = self.ask(s, "--resume", "--context", "off", text="And now?")
            self.assertIn("Intact.", self.answer(events), (kind, run.stderr))

    def test_an_engine_that_tells_no_doubts(self):
        """Said once, and attempts go on without."""
        for kind in ("llama", "vllm", "sglang"):
            s, run, events, text = self.repair(kind, "--tries", "1", tells=False)
            self.assertEqual(run.stderr.count("does not say what its model doubts") + run.stdout.count("does not say what its model doubts"), 1, (kind, run.stdout, run.stderr))
            self.assertEqual(s.scored[1:], [], kind)
            self.assertGreater(len(s.requests), 2)

    def test_what_was_said_elsewhere_is_read_by_a_model_of_this_machine(self):
        small = os.environ.get("KVIST_SHORT_MODEL") or os.path.join(DATA, "models", "SmolLM2-135M-Instruct.Q4_1.gguf")  # what it says means nothing
        if not os.path.exists(small):
            self.skipTest(small + " is not there; kvist model get fetches it")
        text = "`twice` doubles x: größer, 二倍."
        for s in (self.serve("chat", [{"calls": [{"name": "read", "arguments": {"path": "src/one.c"}}]}, {"text": text}], model="big-70b"),
                  self.serve("llama", [{"text": text}])):
            _, events = self.ask(s)
            session = events[0]["id"]
            run = self.kvist("what-if", session, "--kv-budget", "1750", "--model", small, "--json")
            self.assertEqual(run.returncode, 0, run.stderr)
            found = [json.loads(line) for line in run.stdout.splitlines()]
            self.assertIn("computed elsewhere", self.of(found, "what_if")[0]["missing"])
            turn = self.of(found, "what_if_turn")[0]
            self.assertEqual([side["side"] for side in turn["sides"]], ["changed"])
            self.assertGreater(turn["sides"][0]["nll"], 0)
            self.assertGreaterEqual(turn["bytes"], len(text.encode()))
            self.assertIn("nats a byte", self.of(found, "what_if_end")[0]["text"])
            run = self.kvist("what-if", session, "--model", small, "--free")
            self.assertEqual((run.returncode, "token by token" in run.stderr), (2, True), run.stderr)
            run = self.kvist("replay", self.of(found, "what_if")[0]["session"], "--text", "120x40")
            self.assertIn("nats a byte", run.stdout, run.stderr)

    def test_chat_that_breaks_off_keeps_what_came(self):
        s = self.serve("chat", [{"text": "It doubles x, and", "break_after": 9}, "More."])
        run = self.kvist("--linear", "--endpoint", s.url, stdin="What is twice?\ngo on\n")
        self.assertIn("It doub", run.stdout)
        self.assertEqual(len(s.requests), 2)
        self.assertIn("It doub", json.dumps(s.requests[1]["messages"]))


if __name__ == "__main__":
    main()
