#!/usr/bin/env python3
"""Tools of other programs: the real binary on a scripted engine, and servers that are good, slow, or hostile.

usage: test_mcp.py KVIST
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

KVIST = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = os.path.join(HERE, "mcp_server.py")
PATIENCE = 120 * int(os.environ.get("KVIST_TEST_PATIENCE", "1"))  # seconds: a guard against hanging, no expectation


def call(tool, arguments=None):
    text = 'answer <<END\n<tools>{"name": "mcp", "arguments": {"tool": "%s"}}</tools>\n' % tool
    return text + ("```json\n%s\n```\n" % json.dumps(arguments) if arguments is not None else "") + "END\n"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kvist-mcp-")
        self.tree = os.path.join(self.folder, "tree")
        self.home = os.path.join(self.folder, "home")
        os.makedirs(os.path.join(self.tree, "src"))
        os.makedirs(os.path.join(self.home, "config"), mode=0o700)
        with open(os.path.join(self.tree, "src", "one.c"), "w") as f:
            f.write("int twice(int x) { return 2 * x; }\n")
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-C", self.tree]
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
            subprocess.run([*git, *words], check=True)
        self.script = os.path.join(self.folder, "script")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def configure(self, text):
        path = os.path.join(self.home, "config", "mcp.json")
        with open(path, "w") as f:
            f.write(text if isinstance(text, str) else json.dumps({"mcpServers": text}))
        os.chmod(path, 0o600)

    def server(self, behaviour="good", *more, **settings):
        return dict({"command": sys.executable, "args": [SERVER, behaviour, *more], "read": [HERE, *settings.pop("see", [])]}, **settings)

    def ask(self, answers, requests=("go",), mode="all"):
        """The events, and what was printed beside them."""
        with open(self.script, "w") as f:
            f.write(answers)
        events, errors, session = [], "", []
        for request in requests:
            run = subprocess.run([KVIST, "-p", request, "--dir", self.tree, "--json", "--mode", mode, "--context", "off", "--fake-script", self.script, *session],
                                 capture_output=True, text=True, timeout=PATIENCE, env=dict(os.environ, KVIST_HOME=self.home))
            events += [json.loads(line) for line in run.stdout.splitlines()]
            errors += run.stderr
        self.status = run.returncode
        return events, errors

    def result(self, events, name="mcp"):
        return next((e for e in events if e["event"] == "tool_result" and e["name"] == name), {"text": "(none)", "status": ""})

    def notices(self, events):
        return "\n".join(e["text"] for e in events if e["event"] == "notice")

    def told(self, events):
        return "".join(e.get("text") or "" for e in events if e["event"] == "append" and e.get("label") == "tools")


class Good(Case):
    def test_a_tool_is_told_in_a_line_and_its_schema_when_it_is_called_without_arguments(self):
        self.configure({"sums": self.server()})
        events, _ = self.ask(call("sums.add") + call("sums.add", {"a": 1, "b": 2}) + "answer Three.\n")
        results = [e for e in events if e["event"] == "tool_result"]
        self.assertIn('needs "a"', results[0]["text"])
        self.assertIn('"required":["a","b"]', results[0]["text"])
        self.assertEqual((results[1]["status"], results[1]["text"]), ("ok", "the sum is 3\n"))
        appends = [e for e in events if e["event"] == "append"]
        told = [e for e in appends if e.get("label") == "tools"]
        self.assertEqual(len(told), 1)
        prompt = [e for e in appends if e["origin"] == "system"]
        self.assertTrue(all(told[0]["from"] > e["from"] for e in prompt))  # behind the fixed prompt

    def test_the_fixed_prompt_is_the_same_with_and_without(self):
        def prompt(events):
            return [(e["from"], e["n"], e.get("text")) for e in events if e["event"] == "append" and e["turn"] == 0]
        without, _ = self.ask("answer a\n")
        self.configure({"sums": self.server()})
        with_, _ = self.ask("answer a\n")
        self.assertEqual(prompt(without), prompt(with_))

    def test_it_asks_as_the_mode_says(self):
        self.configure({"sums": self.server()})
        for mode in ("ask", "edits"):
            events, _ = self.ask(call("sums.add", {"a": 1, "b": 2}) + "answer No.\n", mode=mode)
            self.assertEqual(self.result(events)["status"], "denied")
            self.assertEqual(self.status, 3)
        events, _ = self.ask(call("sums.add", {"a": 1, "b": 2}) + "answer No.\n", mode="plan")
        self.assertEqual(self.result(events)["status"], "refused")

    def test_always_is_about_this_exact_call(self):
        self.configure({"sums": self.server()})
        with open(self.script, "w") as f:
            f.write(call("sums.add", {"a": 1, "b": 2}) + call("sums.add", {"a": 3, "b": 4}) + "answer Done.\n")
        run = subprocess.run([KVIST, self.tree, "--linear", "--context", "off", "--fake-script", self.script], input="go\na\nn\n", capture_output=True, text=True, timeout=PATIENCE,
                             env=dict(os.environ, KVIST_HOME=self.home))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("mcp sums.add", run.stdout)
        self.assertIn("decided: always", run.stdout)
        self.assertIn("decided: no", run.stdout)

    def test_it_is_confined_unless_widened_by_the_person(self):
        if "not confined" in subprocess.run([KVIST, "doctor"], capture_output=True, text=True).stdout.lower():
            self.skipTest("this machine cannot confine")
        listener = socket.create_server(("127.0.0.1", 0))
        env = {"TOKEN": "t0k3n", "PORT": str(listener.getsockname()[1])}
        self.configure({"box": self.server(env=env)})
        events, _ = self.ask(call("box.where") + "answer a\n")
        text = self.result(events)["text"]
        for what in ("not: writes the tree", "not: reaches the network", "not: reads home", "TOKEN=t0k3n", "KVIST_HOME=None"):
            self.assertIn(what, text)
        self.assertIn("; reads the tree", text)
        self.assertFalse(os.path.exists(os.path.join(self.tree, "made-by-server")))
        self.configure({"box": self.server(env=env, network=True, write=True)})
        events, _ = self.ask(call("box.where") + "answer a\n")
        text = self.result(events)["text"]
        self.assertTrue(text.startswith("writes the tree; reaches the network; not: reads home"), text)
        listener.close()

    def test_other_contents_and_failures_are_named(self):
        self.configure({"s": self.server("pictures")})
        events, _ = self.ask(call("s.where") + "answer a\n")
        self.assertEqual(self.result(events)["status"], "failed")
        self.assertEqual(self.result(events)["text"], "[image, image/png: no text]\nof a resource\n")
        self.configure({"s": self.server("structured")})
        self.assertEqual(self.result(self.ask(call("s.where") + "answer a\n")[0])["text"], '{"sum":3}\n')
        self.configure({"s": self.server("refuses")})
        events, _ = self.ask(call("s.where") + call("s.add", {"a": 1, "b": 1}) + "answer a\n")
        self.assertIn("the server refused: not", self.result(events)["text"])
        self.assertEqual(self.notices(events), "")  # it goes on
        events, _ = self.ask(call("s.none") + "answer a\n")
        self.assertIn('There is no tool "s.none". The tools are: s.add s.where.', self.result(events)["text"])
        events, _ = self.ask(call("s.add", [1]) + "answer a\n")
        self.assertIn("are no JSON object", self.result(events)["text"])

    def test_a_name_without_its_server_is_enough_where_one_alone_has_it(self):
        self.configure({"sums": self.server()})
        events, _ = self.ask(call("add") + call("add", {"a": 1, "b": 2}) + call("nothing") + "answer a\n")
        results = [e for e in events if e["event"] == "tool_result"]
        self.assertIn('sums.add needs "a"', results[0]["text"])
        self.assertEqual((results[1]["status"], results[1]["text"]), ("ok", "the sum is 3\n"))
        self.assertIn('There is no tool "nothing". The tools are: sums.add', results[2]["text"])
        with open(self.script, "w") as f:  # the person is asked about the whole name
            f.write(call("add", {"a": 1, "b": 2}) + "answer Done.\n")
        run = subprocess.run([KVIST, self.tree, "--linear", "--context", "off", "--fake-script", self.script], input="go\ny\n", capture_output=True, text=True, timeout=PATIENCE,
                             env=dict(os.environ, KVIST_HOME=self.home))
        self.assertIn("mcp sums.add", run.stdout)
        self.configure({"sums": self.server(), "more": self.server()})
        events, _ = self.ask(call("add", {"a": 1, "b": 2}) + call("more.add", {"a": 1, "b": 2}) + "answer a\n")
        results = [e["text"] for e in events if e["event"] == "tool_result"]
        self.assertIn('More than one server has "add": call it by its whole name. The tools are: sums.add', results[0])
        self.assertEqual(results[1], "the sum is 3\n")

    def test_a_long_result_is_cut_and_kept(self):
        self.configure({"s": self.server("long")})
        result = self.result(self.ask(call("s.where") + "answer a\n")[0])
        self.assertEqual(result["bytes"], 380000)
        self.assertLess(len(result["text"]), 20000)
        self.assertIn("result:", result["text"])

    def test_noise_on_stderr_stops_nothing(self):
        self.configure({"s": self.server("noisy")})
        self.assertEqual(self.result(self.ask(call("s.add", {"a": 1, "b": 1}) + "answer a\n")[0])["text"], "the sum is 2\n")

    def test_who_asks_us_is_refused_and_a_ping_is_answered(self):
        log = os.path.join(self.folder, "seen")
        os.makedirs(log)
        self.configure({"s": self.server("asks")})
        self.assertEqual(self.result(self.ask(call("s.add", {"a": 1, "b": 1}) + "answer a\n")[0])["text"], "the sum is 2\n")

    def test_tools_that_change_are_told_and_the_person_too(self):
        self.configure({"s": self.server("changes", write=True)})
        with open(self.script, "w") as f:
            f.write(call("s.add", {"a": 1, "b": 1}) + "answer a\n" + call("s.later") + "answer b\n")
        run = subprocess.run([KVIST, self.tree, "--linear", "--mode", "all", "--context", "off", "--fake-script", self.script], input="go\ngo on\n/mcp\n/mcp s\n/mcp x\n",
                             capture_output=True, text=True, timeout=PATIENCE, env=dict(os.environ, KVIST_HOME=self.home))
        self.assertIn("the MCP server s describes where otherwise than before", run.stdout)
        self.assertIn("s.later", run.stdout)
        self.assertIn("Came later.", run.stdout)
        self.assertIn("s starts again with the next request", run.stdout)
        self.assertIn('no MCP server that can be started is called "x"', run.stdout)

    def test_none_is_running_afterwards(self):
        self.configure({"s": self.server("good")})
        self.ask("answer a\n")
        for _ in range(PATIENCE * 10):  # who was killed needs a moment to be gone
            left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
            left = [line for line in left.splitlines() if self.folder in line and f"{SERVER} good" in line]
            if not left:
                break
            time.sleep(0.1)
        self.assertEqual(left, [])


class Hostile(Case):
    def fails(self, behaviour, sentence, answers=None, **settings):
        self.configure({"bad": self.server(behaviour, **settings), "sums": self.server()})
        events, errors = self.ask(answers or call("bad.where") + call("sums.add", {"a": 1, "b": 2}) + "answer a\n")
        results = [e["text"] for e in events if e["event"] == "tool_result"]
        everything = self.notices(events) + "\n" + "\n".join(results)
        self.assertIn(sentence, everything)
        self.assertNotIn("\x1b", everything)
        self.assertNotIn("FORGED", everything)
        self.assertEqual(results[-1], "the sum is 3\n")  # the other server goes on

    def test_one_that_never_answers(self):
        self.fails("silent-call", "mcp bad.where: it did not answer in time", timeout=2)

    def test_one_that_never_greets(self):
        self.fails("silent", "the MCP server bad gave up its place: it did not answer in time. Its tools are not offered; /mcp bad starts it again")

    def test_one_that_needs_long_to_greet_gets_what_its_timeout_says(self):
        """Ten seconds unless set: a program that is downloaded when it starts needs more, and a person may want less."""
        self.configure({"slow": self.server("slow-greeting", timeout=60)})
        events, _ = self.ask(call("slow.add", {"a": 1, "b": 2}) + "answer a\n")
        self.assertEqual(self.result(events)["text"], "the sum is 3\n")
        self.configure({"slow": self.server("slow-greeting", timeout=1)})
        events, _ = self.ask("answer a\n")
        self.assertIn("the MCP server slow gave up its place: it did not answer in time", self.notices(events))

    def test_one_that_dies(self):
        self.fails("dies", "it has ended; it said: out of cheese")
        self.fails("closes", "the MCP server bad gave up its place: it has ended")

    def test_one_that_is_not_there(self):
        self.configure({"bad": {"command": "no-such-program-anywhere"}})
        events, _ = self.ask("answer a\n")
        self.assertIn("the MCP server bad gave up its place: it has ended; it said:", self.notices(events))
        self.assertEqual(self.status, 0)

    def test_one_that_speaks_another_revision(self):
        self.fails("old", "it speaks a revision of the protocol that kvist does not know")

    def test_one_that_floods(self):
        self.fails("flood", "it sent 4096 messages that nobody asked for")
        self.fails("line", "it sent a message above 8 MiB")
        self.fails("endless-line", "it said more than 64 MiB and not what it was asked for")

    def test_one_that_forges_answers(self):
        self.configure({"bad": self.server("wrong-ids")})
        events, _ = self.ask(call("bad.add", {"a": 1, "b": 2}) + "answer a\n")
        self.assertEqual(self.result(events)["text"], "the sum is 3\n")

    def test_one_that_answers_before_it_is_asked(self):
        self.configure({"bad": self.server("early")})
        events, _ = self.ask(call("bad.add", {"a": 1, "b": 2}) + call("bad.add", {"a": 3, "b": 4}) + "answer a\n")
        self.assertEqual([e["text"] for e in events if e["event"] == "tool_result"], ["the sum is 3\n", "the sum is 7\n"])

    def test_one_with_endless_pages_and_too_many_tools(self):
        self.configure({"bad": self.server("pages")})
        events, _ = self.ask(call("bad.tool15") + call("bad.tool16") + "answer a\n")
        results = [e["text"] for e in events if e["event"] == "tool_result"]
        self.assertIn('There is no tool "bad.tool16"', results[1])
        self.configure({"bad": self.server("many")})
        events, _ = self.ask(call("bad.tool64") + "answer a\n")
        self.assertIn('There is no tool "bad.tool64"', self.result(events)["text"])

    def test_one_with_escapes_in_names(self):
        self.configure({"bad": self.server("escapes")})
        with open(self.script, "w") as f:
            f.write("answer a\n")
        run = subprocess.run([KVIST, self.tree, "--linear", "--mode", "all", "--fake-script", self.script], input="go\n/mcp\n", capture_output=True, text=True, timeout=PATIENCE,
                             env=dict(os.environ, KVIST_HOME=self.home))
        for harmful in ("\x1b", "\x07", "\u202e"):
            self.assertNotIn(harmful, run.stdout)
        self.assertIn("1 tools, 7 left out", run.stdout)


class Configuration(Case):
    def notes(self, text):
        self.configure(text)
        events, _ = self.ask("answer a\n")
        self.assertEqual(self.status, 0)
        return self.notices(events)

    def test_what_is_wrong_is_named(self):
        self.assertIn("mcp.json: ", self.notes("{"))
        self.assertIn('there is no {"mcpServers"', self.notes("{}"))
        for server, sentence in (
                ({"args": []}, 'it names no "command"'),
                ({"command": 7}, '"command" is a program\'s name'),
                ({"command": "x", "args": "y"}, '"args" is a list of strings'),
                ({"command": "x", "args": [1]}, "holds something that is no string"),
                ({"command": "x", "env": {"A B": "c"}}, '"env" has a name or a value that no environment can hold'),
                ({"command": "x", "read": ["relative"]}, '"read" takes absolute paths'),
                ({"command": "x", "network": "yes"}, '"network" is true or false'),
                ({"command": "x", "timeout": 0}, '"timeout" is a number of seconds, 1 to 3600'),
                ({"type": "http", "url": "https://example.org"}, "kvist starts servers on stdio only"),
                ({"command": "x", "cwd": "/"}, 'kvist knows no "cwd"'),
                ("x", "it is described by")):
            self.assertIn(f"the MCP server s is not used: ", self.notes({"s": server}))
            self.assertIn(sentence, self.notes({"s": server}), server)
        self.assertIn("a server's name has letters, digits, - and _", self.notes({"a.b\x1b[31m": {"command": "x"}}))
        self.assertIn("at most 16 can be used", self.notes({f"s{i}": {"command": "x"} for i in range(17)}))
        self.assertEqual(self.notes({"s": {"command": "x", "disabled": True}}), "")

    def test_others_may_not_write_it_and_a_tree_names_none(self):
        self.configure({"s": self.server()})
        os.chmod(os.path.join(self.home, "config", "mcp.json"), 0o666)
        events, _ = self.ask(call("s.where") + "answer a\n")
        self.assertIn("no MCP server is used: ", self.notices(events))
        self.assertIn("No MCP server is configured here", self.result(events)["text"])
        os.remove(os.path.join(self.home, "config", "mcp.json"))
        os.makedirs(os.path.join(self.tree, ".kvist"))
        for name in ("mcp.json", ".mcp.json", ".kvist/mcp.json"):
            with open(os.path.join(self.tree, name), "w") as f:
                json.dump({"mcpServers": {"s": self.server()}}, f)
        events, _ = self.ask(call("s.where") + "answer a\n")
        self.assertIn("No MCP server is configured here", self.result(events)["text"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
