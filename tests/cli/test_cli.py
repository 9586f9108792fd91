#!/usr/bin/env python3
"""The command line as scripts and users rely on it: the real binary, on a scripted engine where a model would answer.

usage: test_cli.py KVIST SHARED
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

KVIST, SHARED = sys.argv[1], sys.argv[2]
DATA = os.path.join(os.environ.get("KVIST_HOME") or "", "data") if os.environ.get("KVIST_HOME") else os.path.join(
    os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share"), "kvist")
SMALL = os.path.join(DATA, "models", "SmolLM2-135M-Instruct.Q4_1.gguf")

SCRIPT = """
budget 700
answer <<END
<tools>{"name": "read", "arguments": {"path": "src/one.c"}}</tools>
END
answer The function `twice` doubles a number.
answer <<END
<tools>{"name": "write", "arguments": {"path": "new.txt"}}</tools>
```
hello
```
END
answer Done.
answer Nothing more.
"""


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kvist-cli-")
        self.tree = os.path.join(self.folder, "tree")
        os.makedirs(os.path.join(self.tree, "src"))
        with open(os.path.join(self.tree, "src", "one.c"), "w") as f:
            f.write("/* Doubles a number. */\nint twice(int x)\n{\n    return 2 * x;\n}\n")
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-C", self.tree]
        subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "one"], check=True)
        self.script = os.path.join(self.folder, "script")
        with open(self.script, "w") as f:
            f.write(SCRIPT)
        self.env = dict(os.environ, KVIST_HOME=os.path.join(self.folder, "home"), KVIST_GRAMMAR_PATH=os.path.join(DATA, "grammars"))
        self.env.pop("KVIST_MODEL", None)

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_kvist(self, *words, stdin=""):
        return subprocess.run([KVIST, *words], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=self.env, cwd=self.tree, timeout=120)

    def ask(self, text, *words):
        """One request on the scripted engine; its events."""
        run = self.run_kvist("-p", text, "--json", "--fake-script", self.script, *words)
        return run, [json.loads(line) for line in run.stdout.splitlines()]


class Usage(Case):
    def test_every_command_explains_itself(self):
        for command in ([], ["log"], ["replay"], ["model"], ["eval"], ["bench"], ["code"], ["grammar"], ["doctor"]):
            run = self.run_kvist(*command, "--help")
            self.assertEqual(run.returncode, 0, command)
            self.assertRegex(run.stdout, r"^usage:\s+kvist")

    def test_version(self):
        run = self.run_kvist("--version")
        self.assertEqual((run.returncode, run.stdout.split()[0]), (0, "kvist"))

    def test_wrong_usage_is_2_and_says_what(self):
        for words, part in ((["--frobnicate"], "--frobnicate"), (["-p"], "-p"), (["--mode", "wild", "-p", "x"], "wild"),
                            (["--kv-budget", "lots", "-p", "x", "--fake-script", self.script], "lots"), (["eval"], "eval")):
            run = self.run_kvist(*words)
            self.assertEqual(run.returncode, 2, (words, run.stderr))
            self.assertIn(part, run.stderr + run.stdout)

    def test_no_terminal_names_p(self):
        run = self.run_kvist("--fake-script", self.script)
        self.assertEqual(run.returncode, 2)
        self.assertIn("-p", run.stderr)

    def test_a_missing_model_says_what_to_do(self):
        run = self.run_kvist("-p", "hello")
        self.assertEqual(run.returncode, 1)
        self.assertIn("scripts/run", run.stderr)
        run = self.run_kvist("-p", "hello", "--model", "no/such.gguf")
        self.assertEqual(run.returncode, 1)
        self.assertIn("no/such.gguf", run.stderr)

    def test_doctor_tells_facts(self):
        run = self.run_kvist("doctor", "--json")
        facts = json.loads(run.stdout)
        for key in ("cpu", "memory", "gpu", "model", "grammars", "sandbox", "terminal"):
            self.assertTrue(facts[key])


class Requests(Case):
    def test_events_have_their_contract(self):
        run, events = self.ask("What doubles?", "--mode", "plan")
        self.assertEqual(run.returncode, 0, run.stderr)
        kinds = [event["event"] for event in events]
        self.assertEqual(kinds[0], "session")
        self.assertEqual(kinds[-1], "end")
        for kind in ("user", "prefill", "token", "tool_call", "tool_result", "answer", "ledger"):
            self.assertIn(kind, kinds)
        call = next(e for e in events if e["event"] == "tool_call")
        self.assertEqual((call["name"], call["arguments"]), ("read", {"path": "src/one.c"}))
        result = next(e for e in events if e["event"] == "tool_result")
        self.assertEqual(result["status"], "ok")
        self.assertIn("int twice", result["text"])
        places = [item for e in events if e["event"] == "places" for item in e["items"]]
        self.assertTrue(any(p.get("path") == "src/one.c" and p.get("line") in (1, 2) for p in places), places)
        ledger = [e for e in events if e["event"] == "ledger"][-1]
        for field in ("turn", "new", "reused", "evicted", "promoted", "active", "host", "budget", "n", "ctx"):
            self.assertIn(field, ledger)
        self.assertEqual(events[-1]["turns"], 1)

    def test_export_prints_the_bytes_of_json(self):
        run, events = self.ask("What doubles?", "--mode", "plan")
        session = events[0]["id"]
        export = self.run_kvist("log", "export", session)
        self.assertEqual(export.returncode, 0, export.stderr)
        self.assertEqual(export.stdout, run.stdout)

    def test_headless_ask_denies_and_names_the_flag(self):
        self.ask("What doubles?", "--mode", "plan")
        with open(self.script, "w") as f:
            f.write(SCRIPT.split("doubles a number.\n", 1)[1])
        run, events = self.ask("Write new.txt", "--mode", "ask")
        self.assertEqual(run.returncode, 1)
        self.assertIn("--mode", run.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.tree, "new.txt")))

    def test_edits_mode_writes_and_undo_takes_back(self):
        with open(self.script, "w") as f:
            f.write(SCRIPT.split("doubles a number.\n", 1)[1])
        run, events = self.ask("Write new.txt", "--mode", "edits")
        self.assertEqual(run.returncode, 0, run.stderr)
        path = os.path.join(self.tree, "new.txt")
        with open(path) as f:
            self.assertEqual(f.read(), "hello\n")
        run, events = self.ask("/undo", "--mode", "edits", "--resume", events[0]["id"])
        self.assertFalse(os.path.exists(path), run.stderr)

    def test_log_lists_shows_searches_and_deletes(self):
        _, events = self.ask("What doubles?", "--mode", "plan")
        session = events[0]["id"]
        self.assertIn(session[:8], self.run_kvist("log", "list").stdout)
        self.assertIn("twice", self.run_kvist("log", "show", session).stdout)
        self.assertIn(session[:8], self.run_kvist("log", "search", "doubles").stdout)
        self.assertEqual(self.run_kvist("log", "delete", session).returncode, 0)
        self.assertNotIn(session[:8], self.run_kvist("log", "list").stdout)
        self.assertEqual(self.run_kvist("log", "show", session).returncode, 1)

    def test_replay_shows_the_turn_as_text(self):
        _, events = self.ask("What doubles?", "--mode", "plan")
        run = self.run_kvist("replay", events[0]["id"], "--text", "120x40")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("What doubles?", run.stdout)
        self.assertIn("rows", run.stdout)

    def test_a_folder_that_is_no_git_tree_works(self):
        plain = os.path.join(self.folder, "plain")
        os.mkdir(plain)
        run, events = self.ask("Anything", "--mode", "plan", "--dir", plain)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_killed_at_any_moment_nothing_is_lost(self):
        for delay in (0.02, 0.05, 0.1, 0.2):
            process = subprocess.Popen([KVIST, "-p", "What doubles?", "--json", "--mode", "plan", "--fake-script", self.script],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env, cwd=self.tree)
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.wait()
        listed = self.run_kvist("log", "list")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        run, _ = self.ask("What doubles?", "--mode", "plan")
        self.assertEqual(run.returncode, 0, run.stderr)


class Engine(Case):
    def setUp(self):
        super().setUp()
        if not os.path.exists(SMALL):
            self.skipTest(f"{SMALL} is absent: scripts/fetch small")

    def test_eval_tokens_and_logprobs(self):
        run = self.run_kvist("eval", "tokens", "--model", SMALL, stdin='{"text":"int main(void)","parse_special":false}\n')
        ids = json.loads(run.stdout)
        self.assertTrue(ids and all(isinstance(i, int) for i in ids))
        run = self.run_kvist("eval", "logprobs", "--model", SMALL, "--top", "3", "--threads", "1", stdin=json.dumps({"ids": ids}) + "\n")
        row = json.loads(run.stdout)
        self.assertEqual(len(row["top"]), len(ids))
        self.assertTrue(all(len(position) == 3 for position in row["top"]))
        again = self.run_kvist("eval", "logprobs", "--model", SMALL, "--top", "3", "--threads", "2", stdin=json.dumps({"ids": ids}) + "\n")
        self.assertEqual(run.stdout, again.stdout)
        budget = self.run_kvist("eval", "logprobs", "--model", SMALL, "--top", "3", "--kv-budget", "4096", stdin=json.dumps({"ids": ids}) + "\n")
        self.assertEqual(run.stdout, budget.stdout)

    def test_bad_models_get_a_sentence(self):
        with open(SMALL, "rb") as f:
            head = f.read(1 << 20)
        for name, content in (("cut.gguf", head), ("foreign.gguf", b"\x7fELF" + bytes(4096)), ("empty.gguf", b"")):
            path = os.path.join(self.folder, name)
            with open(path, "wb") as f:
                f.write(content)
            run = self.run_kvist("model", "check", path)
            self.assertEqual(run.returncode, 1, name)
            self.assertIn(name, run.stderr)

    def test_resume_computes_nothing(self):
        words = ("--model", SMALL, "--json", "--max-tokens", "8", "--mode", "plan", "--context", "off")
        first = self.run_kvist("-p", "Say hello", *words)
        self.assertEqual(first.returncode, 0, first.stderr)
        events = [json.loads(line) for line in first.stdout.splitlines()]
        n = [e for e in events if e["event"] == "ledger"][-1]["n"]
        second = self.run_kvist("-p", "And again", "--resume", events[0]["id"], *words)
        self.assertEqual(second.returncode, 0, second.stderr)
        ledger = [json.loads(line) for line in second.stdout.splitlines() if '"event":"ledger"' in line][-1]
        self.assertEqual(ledger["reused"], n)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
