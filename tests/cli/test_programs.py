"""Requests of programs: a line each (--input jsonl), and answers that are held to a schema (--schema)."""
import json
import os
import signal
import subprocess

from cli_case import KVIST, PATIENCE, SMALL, Case, main


class Lines(Case):
    """Several requests of one run: --input jsonl."""

    def lines(self, text, *words):
        with open(self.script, "w") as f:
            f.write("answer One.\nanswer Two.\nanswer Three.\n")
        return self.run_kvist("-p", "-", "--input", "jsonl", "--fake-script", self.script, *words, stdin=text)

    def test_answers_stand_between_the_events_of_their_line(self):
        run = self.lines('{"text":"first","id":"a"}\n\n{"text":"/context"}\n{"text":"second","id":"b\\u0007"}', "--json")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        events = [json.loads(line) for line in run.stdout.splitlines()]
        found, at = [], None
        for e in events:
            if e["event"] == "input":
                at = [e["line"], e.get("id"), []]
            elif e["event"] == "input_end":
                self.assertEqual((e["line"], e.get("id")), (at[0], at[1]))
                found.append((*at, e["status"]))
                at = None
            elif at and e["event"] == "answer":
                at[2].append(e["text"])
        self.assertEqual(found, [(1, "a", ["One."], "done"), (3, None, [], "done"), (4, "b\x07", ["Two."], "done")])
        logged = self.run_kvist("log", "export", events[0]["id"]).stdout
        self.assertEqual(logged, "".join(line + "\n" for line in run.stdout.splitlines() if not line.startswith('{"event":"input')))

    def test_in_words_the_answers_stand_apart(self):
        run = self.lines('{"text":"first"}\n{"text":"second"}\n')
        self.assertEqual((run.returncode, run.stdout), (0, "One.\n\nTwo.\n"))
        self.assertEqual(run.stderr.count("session "), 1)

    def test_a_wrong_line_is_told_and_the_others_are_answered(self):
        for line, said in (("no json", "line 1"), ("[]", "is an object"), ("{}", "no text in it"), ('{"text":" "}', "empty"), ('{"text":1}', "a string"),
                           ('{"text":"a","text":"b"}', "twice"), ('{"text":"a","mode":"all"}', '"mode"'), ('{"text":"a\\u0000"}', "zero byte"),
                           ('{"text":"a"} x', "line 1")):
            run = self.lines(line + '\n{"text":"go on"}\n')
            self.assertEqual((run.returncode, run.stdout), (2, "\nOne.\n"), (line, run.stderr))
            self.assertIn("line 1 of the input: ", run.stderr)
            self.assertIn(said, run.stderr)
        run = self.lines('{"text":"' + "x" * (2 << 20) + '"}\n{"text":"never"}\n', "--json")
        self.assertEqual(run.returncode, 2)
        self.assertIn("more than 1 MiB", run.stdout)
        self.assertNotIn("never", run.stdout)
        run = self.lines('{"text":"a"}\n{"text":"b"}\nnot asked\n', "--max-turns", "2")
        self.assertEqual((run.returncode, run.stdout), (4, "One.\n\nTwo.\n"))
        self.assertIn("line 3 of the input: it and what follows was not asked", run.stderr)
        self.assertEqual(self.lines('{"text":"a"}\n{"text":"b"}\n', "--max-turns", "2").returncode, 0)
        self.assertEqual(self.lines(" \n\n").returncode, 2)
        self.assertEqual(self.run_kvist("log", "list").stdout.count("\n"), 11)  # no request, no session

    def test_what_goes_together(self):
        for words, said in ((("-p", "x", "--input", "jsonl"), "-p -"), (("--input", "jsonl"), "-p -"), (("-p", "-", "--input", "xml"), "is jsonl"),
                            (("-p", "-", "--max-turns", "2"), "--input jsonl"), (("-p", "-", "--input", "jsonl", "--max-turns", "-1"), "1 to")):
            run = self.run_kvist(*words, "--fake-script", self.script)
            self.assertEqual((run.returncode, run.stdout), (2, ""), words)
            self.assertIn(said, run.stderr)

    def test_a_program_may_hold_the_other_end(self):
        with open(self.script, "w") as f:
            f.write("answer One.\nanswer Two.\n")
        run = subprocess.Popen([KVIST, "-p", "-", "--input", "jsonl", "--json", "--fake-script", self.script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=self.env, cwd=self.tree)
        for text in ("One.", "Two."):
            run.stdin.write('{"text":"next"}\n')
            run.stdin.flush()
            said = []
            for line in run.stdout:
                said.append(json.loads(line))
                if said[-1]["event"] == "input_end":
                    break
            self.assertIn(text, [e.get("text") for e in said if e["event"] == "answer"])
        run.send_signal(signal.SIGINT)  # while it waits for a line
        run.wait(timeout=PATIENCE)
        out, err = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 130, err)


class Schema(Case):
    """--schema: the answer is JSON that fits, alone on stdout, or there is none."""

    def setUp(self):
        super().setUp()
        self.schema = os.path.join(self.folder, "schema.json")
        self.write({"type": "object", "properties": {"name": {"type": "string"}, "line": {"type": "integer", "minimum": 1}},
                    "required": ["name"], "additionalProperties": False})

    def write(self, schema):
        with open(self.schema, "w") as f:
            f.write(schema if isinstance(schema, str) else json.dumps(schema))

    def answers(self, *texts):
        with open(self.script, "w") as f:
            for text in texts:
                f.write(f"answer <<END\n{text}\nEND\n")

    def ask_json(self, *words):
        return self.run_kvist("-p", "Which function doubles?", "--schema", self.schema, "--fake-script", self.script, *words)

    def test_only_the_json_is_on_stdout(self):
        for text in ('{"name": "twice", "line": 2}', '{\n  "name":"twice",\n  "line": 2.0\n}', '```json\n{"name":"twice", "line": 2}\n```',
                     '<think>\nLet me see.\n</think>\n\n{"name":"twice", "line": 2}'):
            self.answers(text)
            run = self.ask_json()
            self.assertEqual((run.returncode, run.stdout.count("\n"), json.loads(run.stdout)), (0, 1, {"name": "twice", "line": 2}), run.stderr)

    def test_a_call_comes_first(self):
        self.answers('<tools>{"name": "read", "arguments": {"path": "src/one.c"}}</tools>', '{"name": "twice"}')
        run = self.ask_json()
        self.assertEqual((run.returncode, run.stdout), (0, '{"name": "twice"}\n'), run.stderr)
        self.assertIn("> read src/one.c", run.stderr)

    def test_what_does_not_fit_is_asked_once_more(self):
        self.answers("It is twice.", '{"name": "twice"}')
        run = self.ask_json()
        self.assertEqual((run.returncode, json.loads(run.stdout)), (0, {"name": "twice"}), run.stderr)
        self.assertIn("is not JSON of the schema", run.stderr)
        self.answers('{"name": "twice", "line": 0}', '{"line": 1}')
        run = self.ask_json()
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("/line is 0, which is below 1", run.stderr)
        self.assertIn('asked twice: the value has no "name"', run.stderr)

    def test_events_and_lines(self):
        self.answers('{"name":\n"twice"}')
        run = self.ask_json("--json")
        answer, = [e for e in map(json.loads, run.stdout.splitlines()) if e["event"] == "answer"]
        self.assertEqual(answer["value"], {"name": "twice"})
        self.answers('{"name":"a"}', '{"name":"b\\u0007\u202e"}')
        run = self.run_kvist("-p", "-", "--input", "jsonl", "--schema", self.schema, "--fake-script", self.script, stdin='{"text":"a"}\n{"text":"b"}\n')
        self.assertEqual([json.loads(line)["name"] for line in run.stdout.splitlines()], ["a", "b\x07\u202e"], run.stderr)
        self.assertNotIn("\u202e", run.stdout)

    def test_what_cannot_be_held_is_told_before_anything_runs(self):
        for schema, said in (({"properties": {"a": {"pattern": "x"}}}, '"pattern" at #/properties/a is not held'), ({"type": "text"}, '"type" at #'),
                             ('{"type":', "JSON"), ("", "JSON"), ({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "no value fits"),
                             ({"oneOf": [{}, {"type": "null"}]}, "members 1 and 2 may both fit"), (" " * (300 << 10), "256 KiB")):
            self.write(schema)
            run = self.ask_json()
            self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
            self.assertIn(said, run.stderr)
            self.assertIn("--schema ", run.stderr)
        os.remove(self.schema)
        run = self.ask_json()
        self.assertEqual((run.returncode, run.stderr), (2, f"kvist: --schema: {self.schema} does not exist\n"))
        os.mkdir(self.schema)
        run = self.ask_json()
        self.assertEqual((run.returncode, run.stderr), (2, f"kvist: --schema: {self.schema} is a folder, not a file\n"))
        os.rmdir(self.schema)
        self.write({})
        self.assertIn("exclude each other", self.ask_json("--thinking").stderr)
        self.assertIn("exclude each other", self.ask_json("--stop", "x").stderr)
        run = self.run_kvist("--schema", self.schema, "--fake-script", self.script)
        self.assertEqual((run.returncode, "goes with -p" in run.stderr), (2, True))
        self.assertEqual(self.run_kvist("log", "list").stdout, "")

    def test_a_real_model_is_held(self):
        if not os.path.exists(SMALL):
            self.skipTest(f"{SMALL} is absent: scripts/fetch small")
        words = ("--model", SMALL, "--context", "off", "--threads", "1")
        self.write({"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 10, "maximum": 12},
                    "kind": {"enum": ["a", "b"]}}, "required": ["n", "kind"], "additionalProperties": False}, "minItems": 2, "maxItems": 3})
        run = self.run_kvist("-p", "List some.", "--schema", self.schema, *words)
        value = json.loads(run.stdout)
        self.assertIn(len(value), (2, 3))
        self.assertTrue(all(list(v) == ["n", "kind"] and 10 <= v["n"] <= 12 and v["kind"] in "ab" for v in value), run.stdout)
        self.write({"type": "string", "minLength": 30})
        run = self.run_kvist("-p", "Tell me a long story.", "--schema", self.schema, "--max-tokens", "40", *words)
        self.assertGreaterEqual(len(json.loads(run.stdout)), 30)
        self.assertEqual(run.returncode, 4 if "was closed" in run.stderr else 0, run.stderr)
        run = self.run_kvist("-p", "Tell me a long story.", "--schema", self.schema, "--max-tokens", "20", *words)
        self.assertEqual((run.returncode, run.stdout), (4, ""))
        self.assertIn("has 32 bytes", run.stderr)


if __name__ == "__main__":
    main()
