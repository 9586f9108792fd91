"""What the program says of itself: help, manual, completion, versions, documents; and what a mistyped call is told."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest

from cli_case import KVIST, ROOT, Case, main


class Usage(Case):
    def test_what_is_mistyped_is_told_what_was_meant(self):
        """Options, commands, their words, policies, parameters, slash commands, models: one rule (base/edits.h)."""
        for words, meant, status in ((["--modl", "x"], "--model", 2), (["--kv-polcy=x"], "--kv-policy", 2), (["evnts"], "events", 2), (["help", "evnts"], "events", 2),
                                     (["log", "lst"], "list", 2), (["log", "exprot", "x"], "export", 2), (["kv", "polices"], "policies", 2), (["model", "gte", "x"], "get", 2),
                                     (["approvals", "lst"], "list", 2), (["grammar", "instal", "c"], "install", 2), (["eval", "token"], "tokens", 2),
                                     (["bench", "sped"], "speed", 2), (["log", "--sesion", "x"], "--session", 2),
                                     (["-p", "x", "--kv-policy", "snapk"], "snapkv", 2), (["-p", "x", "--kv-set", "windw=4"], "window", 2),
                                     (["-p", "x", "--mode", "edit"], "edits", 2), (["-p", "x", "--notify", "bel"], "bell", 2), (["-p", "x", "--backend", "cup"], "cpu", 2),
                                     (["-p", "x", "--input", "json"], "jsonl", 2), (["-p", "x", "--model", "smolm2-135m"], "smollm2-135m", 5),
                                     (["-p", "/setings", "--fake-script", self.script], "/settings", 2)):
            run = self.run_kvist(*words)
            self.assertEqual((run.returncode, run.stdout), (status, ""), (words, run.stderr))
            self.assertIn(f"did you mean {meant}?", run.stderr, words)
        for words in (["--frobnicate"], ["frobnicate"], ["log", "frobnicate"], ["-p", "x", "--kv-policy", "frobnicate"], ["-p", "/frobnicate", "--fake-script", self.script]):
            run = self.run_kvist(*words)
            self.assertEqual(run.returncode, 2, words)
            self.assertNotIn("did you mean", run.stderr)
            self.assertRegex(run.stderr, "list|there are", words)

    def test_every_command_explains_itself(self):
        for command in ([], ["learn"], ["log"], ["replay"], ["model"], ["eval"], ["bench"], ["code"], ["grammar"], ["doctor"]):
            run = self.run_kvist(*command, "--help")
            self.assertEqual(run.returncode, 0, command)
            self.assertRegex(run.stdout, r"(?m)^usage:\s+kvist")

    def test_experiments_are_a_program_of_their_own(self):
        table = self.run_bench("--help")
        self.assertEqual(table.returncode, 0)
        names = [line.split()[0] for line in table.stdout.splitlines() if line.startswith("  ")]
        moved = {"niah", "callsite", "structkv", "decode", "structure", "sessions", "repair", "resume", "grammar", "lookup", "log", "screen"}
        self.assertLessEqual(moved, set(names))
        for name in names:
            for words, part in (([name, "--help"], f"usage: kvist-bench {name}"), ([name, "--version"], "kvist-bench ")):
                run = self.run_bench(*words)
                self.assertEqual((run.returncode, run.stdout[:len(part)]), (0, part), words)
            run = self.run_kvist("bench", name)
            self.assertEqual((run.returncode, run.stdout), (2, ""), name)
            self.assertIn(f"kvist-bench {name}" if name in moved else "there is no bench", run.stderr)
        for words in ([], ["speed"], ["frobnicate"]):
            run = self.run_bench(*words)
            self.assertEqual((run.returncode, run.stdout), (2, ""), words)
            self.assertIn("usage: kvist-bench", run.stderr)

    def test_version(self):
        run = self.run_kvist("--version")
        self.assertEqual((run.returncode, run.stdout.split()[0]), (0, "kvist"))
        self.assertRegex(run.stdout, r"compiler: .+\nshell: ")

    def test_forks_stand_below_what_they_came_from(self):
        _, events = self.ask("Which file holds twice?")
        first = events[0]["id"]
        run, events = self.ask("And now?", "--fork", first[:-1])
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(any("none computed again" in e.get("text", "") for e in events if e["event"] == "notice"))
        second = next(e for e in events if e["event"] == "end")["session"]
        self.ask("/title the third", "--fork", second)
        lines = self.run_kvist("log", "list").stdout.splitlines()
        self.assertEqual([line[:2] for line in lines], [first[:2], "+ ", "  "])
        self.assertTrue(lines[1].startswith(f"+ {second}  "))
        self.assertTrue(lines[2].endswith("the third"))
        rows = {row["id"]: row for row in map(json.loads, self.run_kvist("log", "list", "--json").stdout.splitlines())}
        self.assertEqual((rows[first]["parent"], rows[second]["parent"]), ("", first))
        self.assertEqual(self.run_kvist("log", "delete", first).returncode, 0)
        self.assertTrue(self.run_kvist("log", "list").stdout.startswith(second))
        self.assertEqual(self.run_kvist("-p", "x", "--notify", "horn", "--fake-script", self.script).returncode, 2)

    def test_events_are_what_their_schema_says(self):
        run = self.run_kvist("events", "--schema")
        self.assertEqual(run.returncode, 0, run.stderr)
        shapes = {shape["properties"]["event"]["const"]: shape for shape in json.loads(run.stdout)["oneOf"]}
        types = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "null": type(None), "object": dict}

        def check(shape, value, where):
            kinds = shape.get("type", [])
            kinds = kinds if isinstance(kinds, list) else [kinds]
            if "anyOf" in shape:
                return check(shape["anyOf"][0 if value is None else 1], value, where)
            if kinds:
                self.assertIsInstance(value, tuple(t for kind in kinds for t in (types[kind] if isinstance(types[kind], tuple) else (types[kind],))), where)
            for name, member in value.items() if isinstance(value, dict) and "properties" in shape else []:
                self.assertIn(name, shape["properties"], where)
                check(shape["properties"][name], member, (where, name))
            for name in shape.get("required", []):
                self.assertIn(name, value, where)
            for item in value if isinstance(value, list) and "items" in shape else []:
                check(shape["items"], item, where)
            for place, item in zip(shape.get("prefixItems", []), value if isinstance(value, list) else []):
                check(place, item, where)
        _, events = self.ask("What is in src/one.c?", "--mode", "edits")
        self.assertLessEqual({"session", "user", "append", "tool_call", "tool_result", "answer", "ledger", "end"}, {e["event"] for e in events})
        for event in events:
            check(shapes[event["event"]], event, event["event"])
        recorded = 0  # by former builds: what they wrote stays what the schema says
        for name in sorted(os.listdir(os.path.join(ROOT, "docs", "examples"))):
            if not name.endswith(".jsonl"):
                continue
            with open(os.path.join(ROOT, "docs", "examples", name)) as f:
                for event in map(json.loads, f):
                    check(shapes[event["event"]], event, (name, event["event"]))
                    recorded += 1
        self.assertGreater(recorded, 100)
        self.assertEqual(self.run_kvist("events").returncode, 2)

    def test_a_session_as_markdown(self):
        _, events = self.ask("What is in ``src/one.c``?", "--mode", "edits")
        page = self.run_kvist("log", "export", "--markdown", events[0]["id"]).stdout
        for part in ("# kvist session ", "## Request\n\nWhat is in ``src/one.c``?", "**Call:** ", "```\n", "return 2 * x;"):
            self.assertIn(part, page)

    def describe(self, *command):
        run = self.run_kvist(*command, "--describe")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def test_help_manual_and_completion_tell_of_the_same_options(self):
        """All are made from the tables of options, so what one lacks was lost on the way."""
        about = self.describe("help")
        names = [row["name"] for row in about["commands"]]
        self.assertLessEqual({"log", "model", "bench speed", "doctor"}, set(names))
        maker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "make-manual")
        made = {kind: subprocess.run([sys.executable, maker, KVIST, kind], stdout=subprocess.PIPE, text=True, env=self.env, check=True).stdout
                for kind in ("man", "bash", "zsh", "fish")}
        for name in ["", *names]:
            options = self.describe(*name.split())["options"]
            text = self.run_kvist("help", *name.split()).stdout if name else self.run_kvist("--help").stdout
            for option in options:
                self.assertIn(f"  {option['name']}", text, name)
                self.assertIn(option["name"].replace("-", "\\-"), made["man"], name)
                if option["default"]:
                    self.assertIn(f"(default: {option['default']})".replace("-", "\\-"), made["man"], name)
                self.assertIn(option["name"], made["bash"], name)
                self.assertIn(option["name"], made["zsh"], name)
                self.assertIn(option["name"].lstrip("-"), made["fish"], name)
        for status in about["statuses"]:
            self.assertIn(status["means"], made["man"])
        if shutil.which("man") and shutil.which("groff"):
            page = os.path.join(self.folder, "kvist.1")
            with open(page, "w") as f:
                f.write(made["man"])
            shown = subprocess.run(["man", "--warnings", "-l", page], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=dict(self.env, MANPAGER="cat", LC_ALL="C.UTF-8", MANWIDTH="100"))
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertIn("--kv-budget", shown.stdout)
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=made[shell], text=True, check=True)
        if shutil.which("fish"):
            asked = made["fish"] + 'complete -C "kvist --kv-b"\ncomplete -C "kvist log sh"\n'
            said = subprocess.run(["fish", "--no-config", "-c", asked], capture_output=True, text=True, env=self.env)
            self.assertEqual((said.returncode, said.stderr), (0, ""))
            self.assertEqual([line.split("\t")[0] for line in said.stdout.splitlines()], ["--kv-budget", "show"])
        if shutil.which("zsh"):
            with open(os.path.join(self.folder, "_kvist"), "w") as f:
                f.write(made["zsh"])
            asked = "autoload -Uz compinit; fpath=($PWD $fpath); compinit -u -D; autoload +X _kvist; print $_comps[kvist]"
            said = subprocess.run(["zsh", "-f", "-c", asked], capture_output=True, text=True, env=self.env, cwd=self.folder)
            self.assertEqual((said.returncode, said.stdout, said.stderr), (0, "_kvist\n", ""))

    def test_the_manual_has_the_keys_and_the_commands_of_the_shell(self):
        about = self.describe("help")
        maker = os.path.join(ROOT, "scripts", "make-manual")
        page = subprocess.run([sys.executable, maker, KVIST, "man"], stdout=subprocess.PIPE, text=True, env=self.env, check=True).stdout
        for row in about["slash"]:
            self.assertIn(f"\\fB/{row['name']}\\fR".replace("-", "\\-"), page)
        for row in about["keys"]:
            self.assertIn(f"\\fB{row['keys']}\\fR".replace("-", "\\-"), page)
        self.assertLessEqual({"tour", "help", "approvals"}, {row["name"] for row in about["slash"]})

    def test_the_documents_name_only_what_there_is(self):
        """README's tables and the guide: every option, slash command and key in them is one of the program's tables."""
        about = self.describe("help")
        options = {option["name"] for name in ["", *(row["name"] for row in about["commands"])] for option in self.describe(*name.split())["options"]}
        slash = {row["name"] for row in about["slash"]}
        for document in ("README.md", "docs/guide.md"):
            with open(os.path.join(ROOT, document)) as f:
                text = f.read()
            text_outside = re.sub(r"(?ms)^```.*?^```", "", text)  # a fence may show other programs' files
            code = [span for span in re.findall(r"`([^`\n]+)`", text_outside) if not span.startswith(("scripts/", "..."))]
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", " ".join(code)))
            self.assertEqual(named - options - {"--help"}, set(), document)
            self.assertGreater(len(named), 8, document)
            self.assertEqual({m for span in code for m in re.findall(r"^/([a-z][a-z-]*)", span)} - slash, set(), document)

    def test_the_keys_of_the_readme_are_the_programs(self):
        keys = {}
        for row in self.describe("help")["keys"]:
            keys.setdefault(row["where"], set()).update(row["keys"].split())
        with open(os.path.join(ROOT, "README.md")) as f:
            section = f.read().split("\n## Keys\n")[1].split("\n## ")[0]
        typed = {"`@`", "`/`", "`!`"}  # beginnings of a line, no keys
        tables = [table for table in section.split("\n\n") if table.strip().startswith("|")]
        self.assertEqual(len(tables), 2)
        for table, known in ((tables[0], keys["chat"] | keys["when a tool asks"]), (tables[1], keys["cache inspector"])):
            rows = [line.split("|")[1].replace(", ", " ").split() for line in table.strip().splitlines()[2:]]
            self.assertGreater(sum(map(len, rows)), 12)
            for word in (word for row in rows for word in row if word not in typed):
                views = re.fullmatch(r"1\.\.(\d)", word)
                if views:  # a digit for each view
                    shown = [line for line in table.splitlines() if word in line][0].split("views:")[1].split("|")[0]
                    self.assertEqual(int(views[1]), shown.count(",") + 1)
                    self.assertIn("1-9", known)
                else:
                    self.assertIn(word, known)

    def test_help_is_no_list_of_parameters(self):
        """Who asks what there is gets options; what a policy can be told stands in `kvist kv policies`, with what it does."""
        self.assertNotIn("streaming-llm  ", self.run_kvist("--help").stdout)
        listed = self.run_kvist("kv", "policies").stdout
        self.assertIn("streaming-llm", listed)
        self.assertRegex(listed, r"(?m)^  window +1 to 4096 +newest rows, hard$")

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash_completes_commands_options_and_their_words(self):
        maker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "make-manual")
        made = subprocess.run([sys.executable, maker, KVIST, "bash"], stdout=subprocess.PIPE, text=True, env=self.env, check=True).stdout
        for line, wanted, unwanted in ((["kvist", "lo"], "log", "--mode"), (["kvist", "--mo"], "--mode", "--json"),
                                       (["kvist", "--mode", ""], "edits", "log"), (["kvist", "log", "se"], "search", "list"),
                                       (["kvist", "bench", "speed", "--ge"], "--gen", "--top"), (["kvist", "bench", ""], "cancel", "log")):
            words = " ".join(f"'{word}'" for word in line)
            script = f"{made}\nCOMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; _kvist; printf '%s\\n' \"${{COMPREPLY[@]}}\""
            found = subprocess.run(["bash"], input=script, stdout=subprocess.PIPE, text=True, check=True, cwd=self.tree).stdout.split()
            self.assertIn(wanted, found, line)
            self.assertNotIn(unwanted, found, line)

    def test_wrong_usage_is_2_and_says_what(self):
        for words, part in ((["--frobnicate"], "--frobnicate"), (["-p"], "-p"), (["--mode", "wild", "-p", "x"], "wild"),
                            (["--kv-budget", "lots", "-p", "x", "--fake-script", self.script], "lots"), (["eval"], "eval")):
            run = self.run_kvist(*words)
            self.assertEqual(run.returncode, 2, (words, run.stderr))
            self.assertIn(part, run.stderr + run.stdout)

    def test_words_behind_a_command_are_counted_and_told(self):
        """Each command with words has a table of them; so one sentence serves all."""
        for words, said in ((["kv"], "needs one of the words policies, calibrate or pace"), (["eval"], "needs one of the words tokens or logprobs"),
                            (["kv", "policies", "x"], "kvist kv policies takes no word"), (["model", "list", "x"], "kvist model list takes no word"),
                            (["model", "get"], "kvist model get takes one name or address"), (["model", "check", "a", "b"], "takes one file or name"),
                            (["model", "check", "a", "--sha256", "0" * 64], "--sha256 goes with kvist model get"),
                            (["model", "get", "a", "--json"], "--json goes with kvist model list"), (["grammar", "install"], "takes one file"),
                            (["approvals", "allow", "a", "b"], "takes one command, in quotes"), (["approvals", "remove"], "a number of the list, or all"),
                            (["code"], "takes the names of source files"), (["code", "a.c", "--json", "--dot"], "--json or --dot, not both")):
            run = self.run_kvist(*words)
            self.assertEqual((run.returncode, run.stdout), (2, ""), (words, run.stderr))
            self.assertIn(said, run.stderr, words)

    def test_what_is_seen_in_a_file_is_one_object(self):
        with open(os.path.join(self.tree, "src", "two.c"), "w") as f:
            f.write("int two(int x)\n{\n    if (x)\n        return twice(x);\n    return 1;\n}\n")
        run = self.run_kvist("code", "--json", "src/two.c", "missing.c", "src/one.c")
        self.assertEqual(run.returncode, 1)  # and the others are shown
        self.assertIn("missing.c", run.stderr)
        two, one = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual([f["name"] for f in two["functions"] + one["functions"]], ["two", "twice"])
        self.assertEqual([(d["name"], d["what"], d["line"]) for d in two["definitions"]], [("two", "function", 1)])
        calls = [a for a in two["anchors"] if a["kind"] == "call"]
        self.assertEqual([(a["function"], "twice" in a["symbols"]) for a in calls], [("two", True)])
        self.assertIn("digraph calls", self.run_kvist("code", "--dot", "src/two.c").stdout)
        self.assertEqual(self.run_kvist("code", "--function", "three", "src/two.c").returncode, 1)

    def test_every_command_has_a_version(self):
        for command in ("log", "replay", "model", "eval", "kv", "bench", "code", "grammar", "doctor"):
            for words in ([command, "--version"], [command, "x", "--version"]):
                run = self.run_kvist(*words)
                self.assertEqual((run.returncode, run.stdout.split()[:1]), (0, ["kvist"]), words)

    def test_numbers_that_mean_nothing_are_refused(self):
        for words in (["--temperature", "-1"], ["--top-p", "2"], ["--top-p", "0"], ["--top-k", "-1"], ["--min-p", "3"], ["--repeat-penalty", "0"],
                      ["--kv-budget", "200%"], ["--threads", "65"], ["--ctx", "99999999"], ["--max-tokens", "-1"],
                      ["--max-thought", "-1"]):
            run = self.run_kvist("-p", "x", "--fake-script", self.script, *words)
            self.assertEqual(run.returncode, 2, words)
            self.assertIn(words[0], run.stderr)

    def test_an_empty_request_is_no_session(self):
        for words, stdin in ((["-p", ""], ""), (["-p", " \n"], ""), (["-p", "-"], "\n")):
            run = self.run_kvist(*words, "--fake-script", self.script, stdin=stdin)
            self.assertEqual((run.returncode, run.stdout), (2, ""))
            self.assertNotIn("session", run.stderr)

    def test_a_word_that_is_neither_folder_nor_command(self):
        run = self.run_kvist("lgo")
        self.assertEqual(run.returncode, 2)
        self.assertIn("no command", run.stderr)
        self.assertEqual(self.run_kvist("-p", "x", "--dir", "no/such", "--fake-script", self.script).returncode, 2)
        self.assertIn("--agent is auto, small or strong", self.run_kvist("-p", "x", "--agent", "large", "--fake-script", self.script).stderr)

    def test_replay_paints_on_no_pipe(self):
        self.ask("What doubles?", "--mode", "plan")
        run = self.run_kvist("replay")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("--text", run.stderr)
        for turn in ("0", "-1", "7"):
            self.assertEqual(self.run_kvist("replay", "--turn", turn, "--text", "80x24").returncode, 2)

    def test_model_list_is_an_object_a_line(self):
        run = self.run_kvist("model", "list", "--json")
        self.assertEqual([json.loads(line)["role"] for line in run.stdout.splitlines()], ["default", "small"])
        self.assertEqual(self.run_kvist("model", "get", "small", "--sha256", "abc").returncode, 2)

    def test_model_list_all_says_what_runs_what_not_and_what_to_take_instead(self):
        run = self.run_kvist("model", "list", "--all")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"  qwen3moe +Qwen3-30B-A3B, Qwen3-Coder-30B-A3B")
        self.assertRegex(run.stdout, r"  gpt-oss-20b +MXFP4 +12.1 +12.7 +13.3  (yes|no: too little memory)")
        self.assertRegex(run.stdout, r"  granite-4.2-30b +Q4_K_M +runs; how large")
        self.assertRegex(run.stdout, r"  Muse-Glimmer-30B +Q4_K_M +18.0 +no: gates on attention")
        self.assertRegex(run.stdout, r"  Qwen2.5-Coder-7B +Q4_K_M +4.7 +5.7 +7.1  (yes|no: too little memory)")
        self.assertEqual(self.run_kvist("model", "list", "--all", "--json").returncode, 2)
        path = os.path.join(self.folder, "other.gguf")
        word = lambda text: struct.pack("<Q", len(text)) + text
        with open(path, "wb") as f:
            f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + word(b"general.architecture") + struct.pack("<I", 8) + word(b"granitehybrid"))
        run = self.run_kvist("model", "info", path)
        self.assertIn('architecture "granitehybrid" (Granite 4) is not built: it needs layers with a Mamba-2 state', run.stdout)
        self.assertIn("Use Qwen3.6-35B-A3B instead", run.stdout)

    def test_no_terminal_names_p(self):
        run = self.run_kvist("--fake-script", self.script)
        self.assertEqual(run.returncode, 2)
        self.assertIn("-p", run.stderr)

    def test_a_missing_model_says_what_to_do(self):
        run = self.run_kvist("-p", "hello")
        self.assertEqual(run.returncode, 5)
        self.assertIn("kvist-fetch default", run.stderr)
        run = self.run_kvist("-p", "hello", "--model", "no/such.gguf")
        self.assertEqual(run.returncode, 5)
        self.assertIn("no/such.gguf", run.stderr)

    def test_doctor_tells_facts(self):
        run = self.run_kvist("doctor", "--json")
        facts = json.loads(run.stdout)
        for key in ("cpu", "memory", "gpu", "model", "grammars", "sandbox", "terminal"):
            self.assertTrue(facts[key])


if __name__ == "__main__":
    main()
