"""Settings and approvals: who overrules whom, and what a wrong line is told."""
import json
import os

from cli_case import Case, main


class Configuration(Case):
    """Command line over environment over project over user; a project only tightens, and never keeps kvist from starting."""

    def configure(self, user="", project=None):
        path = os.path.join(self.folder, "home", "config")
        os.makedirs(path, mode=0o700, exist_ok=True)
        with open(os.path.join(path, "config"), "w") as f:
            f.write(user)
        if project is not None:
            os.makedirs(os.path.join(self.tree, ".kvist"), exist_ok=True)
            with open(os.path.join(self.tree, ".kvist", "config"), "wb") as f:
                f.write(project.encode() if isinstance(project, str) else project)

    def settings(self, *words, env=None):
        self.env.update(env or {})
        run = self.run_kvist("-p", "/settings", "--fake-script", self.script, *words)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = run.stderr.replace("note: ", "").splitlines()
        return {line.split("\t")[0]: tuple(line.split("\t")[1:]) for line in lines if line.count("\t") == 2}, run.stderr

    def test_who_overrules_whom(self):
        user = os.path.join(self.folder, "home", "config", "config")
        self.configure("# mine\nmode = edits\nkv-budget = 8192\ncontext = \"off\" # none\nmodel = small\n", "mode = plan\nkv-budget = 4096\n")
        told, _ = self.settings("--kv-budget", "6000", env={"KVIST_MODEL": "default"})
        self.assertEqual(told["kv-budget"], ("6000", "command line"))
        self.assertEqual(told["mode"], ("plan", ".kvist/config:1"))
        self.assertEqual(told["context"], ("off", f"{user}:4"))
        self.assertEqual(told["model"], ("default", "KVIST_MODEL"))
        self.assertEqual(told["max-steps"], ("24", "default"))
        self.env.pop("KVIST_MODEL")
        told, _ = self.settings()
        self.assertEqual((told["kv-budget"], told["model"]), (("4096", ".kvist/config:2"), ("small", f"{user}:5")))

    def test_a_wrong_line_of_ones_own_says_file_and_line(self):
        for text, line, said in (("modle = small\n", 1, "did you mean model?"), ("\n\nmode edits\n", 3, "no \"key = value\""), ("threads = many\n", 1, "whole number"),
                                 ("thinking = maybe\n", 1, "on or off"), ("stop = \"x\n", 1, "quotes"), ("temperature = 101\n", 1, "0 is greedy"),
                                 ("p = x\n", 1, "no setting"), ("resume = x\n", 1, "no setting"), ("mode =\n", 1, "no value"), ("mode = a\x01\n", 1, "no text")):
            self.configure(text)
            run = self.run_kvist("-p", "x", "--fake-script", self.script)
            self.assertEqual((run.returncode, run.stdout), (2, ""), text)
            self.assertIn(f"config:{line}: ", run.stderr)
            self.assertIn(said, run.stderr)
        self.configure("mode = wild\n")
        run = self.run_kvist("-p", "x", "--fake-script", self.script)
        self.assertEqual(run.returncode, 2)
        self.assertIn("wild", run.stderr)

    def test_a_project_only_tightens(self):
        for text, said in (("mode = all\n", "only tighten"), ("kv-budget = full\n", "only tighten"), ("model = ./evil.gguf\n", "cannot set model"),
                           ("allow-read = /\n", "cannot set allow-read"), ("backend = cuda\n", "cannot set backend"), ("x\n", "not read"),
                           ("tries = 9\n", "cannot set tries"), (b"mode = \xff\n", "not read"), ("mode = plan\n" * 10000, "not read")):
            self.configure("mode = edits\n", text)
            told, stderr = self.settings()
            self.assertIn(said, stderr)
            self.assertEqual(told["mode"][0], "edits", text[:40])
        self.configure("", "mode = edits\n")  # the default asks
        told, stderr = self.settings()
        self.assertEqual(told["mode"], ("ask", "default"))
        os.unlink(os.path.join(self.tree, ".kvist", "config"))
        os.symlink("/etc/passwd", os.path.join(self.tree, ".kvist", "config"))
        told, stderr = self.settings()
        self.assertIn(".kvist/config is not read", stderr)
        self.assertNotIn("root:", stderr)

    def test_a_trees_test_counts_once_approved(self):
        self.configure("lint = true\n", "test = sh check.sh # of this tree\n")
        with open(os.path.join(self.tree, "check.sh"), "w") as f:
            f.write("echo checked\n")
        told, stderr = self.settings()
        self.assertIn("test\tsh check.sh\t.kvist/config:1\n", stderr)
        self.assertEqual(told["test"], ("sh check.sh", ".kvist/config:1: asked before it first counts"))
        run = self.run_kvist("-p", "/test", "--fake-script", self.script)
        self.assertIn("does not count", run.stderr)
        self.assertNotIn("> $ sh check.sh", run.stderr)
        run = self.run_kvist("-p", "/test", "--test", "sh check.sh", "--fake-script", self.script)  # typed
        self.assertIn("> $ sh check.sh", run.stderr)
        self.assertEqual(self.run_kvist("approvals", "allow", "sh check.sh").returncode, 0)
        self.assertIn("approved for this tree", self.settings()[1])
        run = self.run_kvist("-p", "/test", "--fake-script", self.script)
        self.assertIn("> $ sh check.sh", run.stderr)
        self.configure("", "test = sh check.sh -v\n")  # another text
        self.assertIn("does not count", self.run_kvist("-p", "/test", "--fake-script", self.script).stderr)

    def test_approvals_are_listed_and_taken_back(self):
        root = os.path.realpath(self.tree)
        self.assertEqual(self.run_kvist("approvals", "allow", "make check").returncode, 0)
        self.assertEqual(self.run_kvist("approvals", "allow", "make\tlint").returncode, 0)
        self.assertEqual(self.run_kvist("approvals", "allow", "make check").returncode, 0)  # once is enough
        file = os.path.join(self.folder, "home", "config", "approvals")
        self.assertEqual(os.stat(file).st_mode & 0o777, 0o600)
        with open(file) as f:
            self.assertEqual(f.read(), f"{root}\tmake check\n{root}\tmake<TAB>lint\n")
        rows = [json.loads(line) for line in self.run_kvist("approvals", "--json").stdout.splitlines()]
        self.assertEqual([(r["number"], r["kind"], r["tree"], r["what"]) for r in rows],
                         [(1, "command", root, "make check"), (2, "command", root, "make\tlint")])
        for words in (["remove", "3"], ["remove", "0"], ["remove", "-1"], ["remove"], ["allow"], ["allow", ""], ["list", "x"], ["wild"], ["allow", "a", "b"]):
            run = self.run_kvist("approvals", *words)
            self.assertEqual((run.returncode, run.stdout), (2, ""), words)
        self.assertIn("make<TAB>lint", self.run_kvist("-p", "/approvals", "--fake-script", self.script).stderr)
        self.assertIn("taken back: 1", self.run_kvist("--linear", "--fake-script", self.script, stdin="/approvals remove 1\n").stdout)
        self.assertIn("1 to 1", self.run_kvist("--linear", "--fake-script", self.script, stdin="/approvals remove 7\n").stdout)
        self.assertEqual(self.run_kvist("approvals", "--dir", self.folder, "--json").stdout, "")  # another tree's
        self.assertEqual(self.run_kvist("approvals", "remove", "all").returncode, 0)
        self.assertEqual(self.run_kvist("approvals", "--json").stdout, "")
        os.chmod(file, 0o666)
        run = self.run_kvist("approvals")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("approvals", run.stderr)

    def test_what_is_ignored_is_not_listed(self):
        os.makedirs(os.path.join(self.tree, "vendor", "deep"))
        for path in ("vendor/deep/big.c", "notes.md", "src/two.c"):
            with open(os.path.join(self.tree, path), "w") as f:
                f.write("int x;\n")
        with open(self.script, "w") as f:
            f.write("answer <<END\n<tools>{\"name\": \"list\", \"arguments\": {}}</tools>\nEND\nanswer Done.\n")

        def listed():
            _, events = self.ask("What is there?")
            return next(e["text"] for e in events if e["event"] == "tool_result")
        self.assertIn("vendor", listed())
        self.configure("ignore = *.md\n", "ignore = vendor/\n")
        text = listed()
        self.assertNotIn("vendor", text)
        self.assertNotIn("notes.md", text)
        self.assertIn("src", text)

    def test_commands_over_a_model_know_ones_own_model_and_nothing_of_the_cache(self):
        self.configure("model = no/such.gguf\nkv-budget = 1000\nmode = edits\n")
        run = self.run_kvist("eval", "tokens", stdin="")
        self.assertEqual(run.returncode, 5)
        self.assertIn("no/such.gguf", run.stderr)
        run = self.run_kvist("-p", "hello", "--model", "qwen2.5-coder-1.5")
        self.assertEqual(run.returncode, 5)
        self.assertIn("did you mean qwen2.5-coder-1.5b?", run.stderr)
        self.assertNotIn("did you mean", self.run_kvist("-p", "hello", "--model", "something else").stderr)
        self.assertEqual(run.stderr.count("\n"), 1)

    def test_a_value_that_means_nothing_is_told_with_its_file_and_line(self):
        for key, value in (("mode", "asks"), ("notify", "horn"), ("agent", "huge"), ("context", "-4"), ("repair", "x"), ("lookup", "maybe"), ("kv-budget", "foo"),
                           ("temperature", "hot"), ("kv-policy", "snapk"), ("kv-set", "windw=4"), ("kv-prefill", "all"), ("backend", "cud"),
                           ("notify-after", "soon"), ("thinking", "yes")):
            self.configure(f"# mine\n{key} = {value}\n", "")
            run = self.run_kvist("-p", "x", "--fake-script", self.script)
            self.assertEqual(run.returncode, 2, run.stderr)
            told = "" if key in ("kv-policy", "kv-set") else key  # these name the policy, the parameter
            self.assertRegex(run.stderr, rf"config:2: .*{told}.*{value}", key)
            self.assertEqual(run.stderr.count("\n"), 1)
        for key, value, bounds in (("max-tokens", "-1", "0 to 16777216"), ("max-thought", "99999999", "0 to 16777216"), ("max-steps", "-2", "0 to 16777216"),
                                   ("tries", "1000", "0 to "), ("notify-after", "100000", "0 to 86400"), ("threads", "0", "1 to 64"),
                                   ("temperature", "-1", "0 to 100"), ("endpoint-wait", "0", "1 to 86400"), ("ctx", "0", "1 to "), ("gpu-mem", "0", "0.25 to")):
            self.configure(f"{key} = {value}\n", "")
            run = self.run_kvist("-p", "x", "--fake-script", self.script)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertRegex(run.stderr, rf"config:1: {key} takes {bounds}", key)
            self.configure("", f"{key} = {value}\n")  # the tree's own: told, and kvist starts
            self.assertIn(f".kvist/config:1: a project's file cannot set {key}", self.settings()[1])
        self.configure("", "kv-budget = lots\n\nmode = al\n")
        told = self.settings()[1]
        self.assertIn(".kvist/config:1: --kv-budget: a budget is rows", told)
        self.assertIn('.kvist/config:3: mode is plan, ask, edits or all, not "al"; did you mean all?', told)
        self.configure("mode = asks\n", "")
        run = self.run_kvist("-p", "x", "--mode", "al", "--fake-script", self.script)
        self.assertTrue(run.stderr.startswith('kvist: --mode is plan, ask, edits or all, not "al"'), run.stderr)

    def test_without_a_network_or_a_place_for_the_log_it_says_what_to_do(self):
        run = self.run_kvist("model", "get", "https://127.0.0.1:1/x.gguf")
        self.assertEqual(run.returncode, 1)
        self.assertIn("is there a network? Where there is one, the same command goes on", run.stderr)
        os.makedirs(os.path.join(self.env["KVIST_HOME"], "data", "log.db"))  # no file can be written there
        run = self.run_kvist("-p", "hello", "--fake-script", self.script)
        self.assertIn("--ephemeral goes without one", run.stderr)
        self.assertEqual(self.run_kvist("-p", "What doubles?", "--mode", "plan", "--ephemeral", "--fake-script", self.script).returncode, 0)

    def test_a_home_that_cannot_be_written_says_where_to_put_things(self):
        os.makedirs(self.env["KVIST_HOME"], mode=0o700)
        with open(os.path.join(self.env["KVIST_HOME"], "data"), "w"):
            pass  # no folder can be made there, whoever tries
        run = self.run_kvist("-p", "hello", "--fake-script", self.script)
        self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (1, "", 1), run.stderr)
        self.assertIn("--ephemeral goes without one, KVIST_HOME=FOLDER", run.stderr)
        run = self.run_kvist("-p", "hello", "--model", "./no.gguf", "--ephemeral")
        self.assertEqual(run.returncode, 5)
        self.assertIn("`kvist model list` shows", run.stderr)

    def test_the_list_of_well_known_models_tells_what_they_take(self):
        run = self.run_kvist("model", "list", "--all")
        self.assertEqual(run.returncode, 0, run.stderr)
        # Weights as they are packed (MXFP4 as in the file, Q4_K 1.028 times), rows, .4 GB of work space.
        # Half of gpt-oss' layers read 128 tokens, 800 of 960 KiB of gemma-4-31B's 1,024: what lies behind is on disk.
        self.assertRegex(run.stdout, r"\n  gpt-oss-20b +MXFP4 +12\.1 +12\.7 +13\.3  ")
        self.assertRegex(run.stdout, r"\n  gemma-4-31B QAT +Q4_0 +17\.5 +20\.9 +24\.9  ")
        self.assertRegex(run.stdout, r"\n  Qwen2\.5-Coder-7B +Q4_K_M +4\.7 +5\.7 +7\.1  ")

    def test_the_tour_needs_a_screen(self):
        run = self.run_kvist("--linear", "--fake-script", self.script, stdin="/tour\n")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("note: the tour is six screens", run.stdout)
        self.assertEqual(self.run_kvist("log").returncode, 0)


if __name__ == "__main__":
    main()
