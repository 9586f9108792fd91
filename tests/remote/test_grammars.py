"""What holds calls and answers to their form: grammars and schemas in the way of each engine."""
import json
import os

from remote_case import Remote, main
from server import bytes_of


class Grammars(Remote):
    def test_grammar(self):
        s = self.serve("llama", ["Fine."])
        self.ask(s, "--ephemeral")
        r = s.requests[0]
        self.assertTrue(r["grammar_lazy"])
        self.assertEqual(r["grammar_triggers"][0]["type"], 2)
        self.assertIn('path ::= "\\"src/one.c\\""', r["grammar"])

    def test_operations_are_begun(self):
        """The harness writes the call up to where the model has something to say; where no answer can be begun the tool is told of."""
        for kind in ("llama", "vllm", "sglang", "chat"):
            self.put("src/one.c", "/* Doubles a number. */\nint twice(int x)\n{\n    return 2 * x;\n}\n")
            s = self.serve(kind, ["}}", "Done."])
            run, events = self.ask(s, "--ephemeral", "--mode", "edits", text="Rename twice to doubled.")
            if kind == "chat":
                self.assertIn("A tool for this request", json.dumps(s.requests[0]["messages"]))
                continue
            self.assertTrue(bytes_of(s.requests[0]["prompt"]).endswith(
                b'<|im_start|>assistant\n{"name": "refactor", "arguments": {"operation": "rename", "name": "twice", "to": "doubled"'), bytes_of(s.requests[0]["prompt"])[-200:])
            self.assertEqual([(e["name"], e["status"]) for e in self.of(events, "tool_result")], [("refactor", "ok")], (kind, run.stdout[-1500:]))
            with open(os.path.join(self.tree, "src/one.c")) as f:
                self.assertIn("int doubled(int x)", f.read())
            self.assertEqual([e["decode_tps"] for e in self.of(events, "ledger")], [0], kind)  # three tokens that came at once have no rate
            grammar = s.requests[0]["grammar"] if kind == "llama" else self.whole_grammar(s.requests[0])
            self.assertRegex(grammar, r'\Aroot ::= ws t\d+-more-3 "\}" ws "\}" rest\n')  # from here on, so nothing wakes it
            self.assertNotIn("grammar_lazy", s.requests[0])

    def test_a_name_is_ended_as_a_definition_is_called(self):
        """The request does not name it: the model goes on with a name of the tree, by a grammar of the call's rest."""
        for kind in ("llama", "vllm", "sglang"):
            self.put("src/one.c", "/* Doubles a number. */\nint twice(int x)\n{\n    return 2 * x;\n}\n\nint two(void)\n{\n    return 2;\n}\n")
            s = self.serve(kind, ['twice", "to": "doubled"}}', "Done."])
            run, events = self.ask(s, "--ephemeral", "--mode", "edits", text="Rename the function that doubles a number to doubled.")
            self.assertTrue(bytes_of(s.requests[0]["prompt"]).endswith(b'"operation": "rename", "name": "'), bytes_of(s.requests[0]["prompt"])[-200:])
            grammar = s.requests[0]["grammar"] if kind == "llama" else self.whole_grammar(s.requests[0])
            self.assertIn('root ::= "tw" ("ice" | "o") "\\""', grammar.replace("::=  ", "::= "))
            self.assertEqual([(e["name"], e["status"]) for e in self.of(events, "tool_result")], [("refactor", "ok")], (kind, run.stdout[-1500:]))

    def test_grammar_refused(self):
        s = self.serve("llama", [{"text": "Fine.", "refuses_grammar": True}, "More.", "Still."])
        run, events = self.ask(s, "--ephemeral")
        self.assertEqual(self.answer(events), "Fine.")
        self.assertTrue(any("takes no grammar" in e["text"] for e in self.of(events, "notice")), run.stdout)

    def whole_grammar(self, request):
        return request["structured_outputs"]["grammar"] if "structured_outputs" in request else request["ebnf"]

    def test_grammar_without_triggers(self):
        """The free text in front of a call is a rule too; the tools and paths are those of the lazy one."""
        lazy = self.serve("llama", ["Fine."])
        self.ask(lazy, "--ephemeral")
        rules = lazy.requests[0]["grammar"].split("\n")
        for kind, opening in (("vllm", '"{\\"name"'), ("sglang", '"{\\"name"'), ("sglang_chat", '"<tool_call"')):
            s = self.serve(kind, ["Fine."])
            run, events = self.ask(s, "--ephemeral")
            self.assertEqual(self.answer(events), "Fine.", run.stderr)
            grammar = self.whole_grammar(s.requests[0])
            self.assertTrue(grammar.startswith("root ::= free\n"), grammar[:100])
            self.assertIn(opening, grammar)
            missing = [r for r in rules if r not in grammar and not r.startswith(("root", "called"))]
            self.assertEqual(missing, [], kind)

    def test_grammar_without_triggers_refused_is_told_once(self):
        for kind, fault in (("vllm", True), ("sglang", True), ("sglang", "in the stream"), ("sglang_chat", True), ("sglang_chat", "in the stream")):
            s = self.serve(kind, [{"text": "Fine.", "refuses_grammar": fault}, "More.", "Still."])
            run = self.kvist("--linear", "--endpoint", s.url, "--context", "off", stdin="One?\nTwo?\nThree?\n")
            for words in ("Fine.", "More.", "Still."):
                self.assertIn(words, run.stdout, (kind, run.stderr))
            self.assertEqual((run.stdout + run.stderr).count("takes no grammar"), 1, (kind, run.stdout))
            self.assertEqual([("ebnf" in r or "structured_outputs" in r) for r in s.requests], [True, False, False, False])

    def ask_json(self, server, schema=None):
        path = os.path.join(self.folder, "schema.json")
        with open(path, "w") as f:
            json.dump(schema or {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "lines": {"type": "array", "items": {
                "type": "integer"}, "minItems": 1, "maxItems": 3}}, "required": ["name"], "additionalProperties": False}, f)
        return self.kvist("-p", "What is twice?", "--schema", path, "--endpoint", server.url, "--ephemeral")

    def test_schema_by_a_grammar(self):
        s = self.serve("llama", ['{"name":"twice"}'])
        run = self.ask_json(s)
        self.assertEqual((run.returncode, run.stdout), (0, '{"name":"twice"}\n'), run.stderr)
        r = s.requests[0]
        self.assertNotIn("grammar_lazy", r)
        self.assertTrue(r["grammar"].startswith("root ::= answer\n"))  # the toy's calls would be bare JSON
        for rule in ('"\\"name\\"" ws ":" ws s1', "character{0,9}", "s3-item-0 ::= s4 ws (\",\" ws s4 ws){0,2}"):
            self.assertIn(rule, r["grammar"])

    def test_schema_by_a_grammar_without_triggers(self):
        for kind, root in (("vllm", "root ::= answer\n"), ("sglang", "root ::= answer\n"), ("sglang_chat", "root ::= answer | called\n")):
            s = self.serve(kind, ['{"name":"twice"}'])
            run = self.ask_json(s)
            self.assertEqual((run.returncode, run.stdout), (0, '{"name":"twice"}\n'), run.stderr)
            grammar = self.whole_grammar(s.requests[0])
            self.assertTrue(grammar.startswith(root), grammar[:100])  # as above: the toy on vLLM calls by bare JSON
            self.assertIn("character{0,9}", grammar)
            self.assertNotIn("response_format", s.requests[0])

    def test_schema_where_calls_are_not_held(self):
        """Free first, since it may be a call; what does not fit is asked for again under the schema."""
        for kind, member in (("vllm", "structured_outputs"), ("chat", "response_format")):
            s = self.serve(kind, [{"text": "It is twice.", "refuses_grammar": True}, '{"name":"twice"}'])
            run = self.ask_json(s)
            self.assertEqual((run.returncode, run.stdout), (0, '{"name":"twice"}\n'), run.stderr)
            if kind == "vllm":
                self.assertIn("grammar", s.requests.pop(0)[member])  # refused: the schema alone from now on
            self.assertEqual(member in s.requests[0], kind == "vllm")  # as above
            sent = s.requests[1][member]
            sent = sent["json"] if kind == "vllm" else sent["json_schema"]["schema"]
            self.assertEqual(sent["required"], ["name"])

    def test_an_engine_that_does_not_hold_it(self):
        for kind in ("llama", "vllm", "chat"):
            run = self.ask_json(self.serve(kind, ['{"name":"twice","x":1}', '{"name":"much too long"}']))
            self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
            self.assertIn("/x is a member that is not allowed", run.stderr)
            self.assertIn("/name has 13 characters, more than 9", run.stderr)


if __name__ == "__main__":
    main()
