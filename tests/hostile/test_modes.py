#!/usr/bin/env python3
"""What a mode promises: nothing runs or is written that it does not allow, and nobody gives the next session orders unasked."""
import json
import os
import shutil
import subprocess

from kit import KVIST, PATIENCE, Hostile, call, main

OBEYED = (  # by another program, though nobody ran anything of the tree
    ".envrc", "src/.envrc", ".vscode/tasks.json", "src/.vscode/settings.json", ".github/workflows/x.yml", ".idea/runConfigurations/x.xml",
    ".devcontainer/devcontainer.json", ".pre-commit-config.yaml", ".husky/pre-commit", ".gitlab-ci.yml", "CLAUDE.md", ".cursor/rules/x.md",
    ".exrc", ".gdbinit", ".cargo/config.toml", ".bashrc", "rust-toolchain.toml", ".hg/hgrc", ".lfsconfig", ".gitmodules", ".Envrc", "VSCODE~1/tasks.json",
    ".jj/repo/config.toml", ".readthedocs.yaml", ".lazy.lua", "WARP.md", ".bundle/config",
    # and by kvist
    "AGENTS.md", "src/AGENTS.md", "agents.MD", ".kvist/commands/x.md", ".agents/skills/x/SKILL.md", ".Kvist/config", "AGENTS.md.")


class Lines(Hostile):
    def line(self, mode, text="!echo hello > ran"):
        run, _, results = self.ask("answer Yes.\n", mode, text)
        return run, results

    def test_a_line_for_the_shell_asks_the_mode(self):
        for mode in ("plan", "ask", "edits"):
            run, results = self.line(mode)
            self.assertNotEqual(run.returncode, 0, mode)
            self.assertEqual([r["status"] for r in results], ["denied"], mode)
            self.assertFalse(self.has("ran"), mode)
        run, results = self.line("all")  # the control: it does run where the mode says so
        if run.returncode and not results:
            self.skipTest("mode all needs a sandbox: " + run.stderr)
        self.assertEqual((run.returncode, self.has("ran")), (0, True), run.stderr)

    def test_no_word_before_it_changes_that(self):
        for text in (" !echo hello > ran", "\n!echo hello > ran", "\t! echo hello > ran"):
            self.line("plan", text)
            self.assertFalse(self.has("ran"), text)

    def stream(self, mode, *texts):
        """Several requests of a script, each of which may be somebody else's text."""
        return self.kvist("-p", "-", "--input", "jsonl", "--mode", mode, "--context", "off", "--fake-script", self.script("answer Yes.\n" * 4),
                          stdin="".join(json.dumps({"text": text}) + "\n" for text in texts))

    def test_no_request_loosens_the_mode(self):
        for mode, more in (("plan", "ask"), ("plan", "all"), ("ask", "edits"), ("edits", "all")):
            run = self.stream(mode, "/mode " + more, "!echo hello > ran")
            self.assertIn("cannot loosen the mode", run.stderr)
            self.assertEqual((run.returncode, self.has("ran")), (3, False), (mode, more))
        run = self.stream("all", "/mode plan", "/mode all", "!echo hello > ran")  # back neither
        self.assertFalse(self.has("ran"), run.stderr)
        run = self.kvist("--linear", "--mode", "plan", "--fake-script", self.script("answer Yes.\n"), stdin="/mode all\n/mode\n")
        self.assertIn("mode all", run.stdout)  # the control: a person does

    def test_no_request_writes_a_file_by_an_export(self):
        """Its text would be part of what is written, anywhere: bash runs $(...) of a line of JSON in a ~/.bash_aliases."""
        for mode in ("plan", "all"):
            for name in ("AGENTS.md", ".git/hooks/pre-commit", os.path.join(self.folder, "aliases")):
                run = self.stream(mode, "$(touch ran)", "/export " + name)
                self.assertIn("nobody can be asked", run.stderr)
                self.assertEqual((run.returncode, self.has(name)), (3, False), name)
        self.kvist("--linear", "--mode", "plan", "--fake-script", self.script("answer Yes.\n"),
                   stdin="$(touch ran)\n/export aliases\n")
        self.assertTrue(self.has("aliases"))  # the control: who is at the screen chooses
        subprocess.run(["bash", "-c", ". ./aliases"], cwd=self.tree, stderr=subprocess.DEVNULL, check=False)
        self.assertTrue(self.has("ran"))  # and this is what such a file can do

    def test_no_request_takes_back_what_a_person_allowed(self):
        self.kvist("approvals", "allow", "make check")
        for words in ("remove all", "remove 1", "x"):
            run = self.stream("all", "/approvals " + words)
            self.assertIn("nobody can be asked", run.stderr)
            self.assertEqual(run.returncode, 3, words)
            self.assertIn("make check", self.stream("plan", "/approvals").stderr)  # to look is anybody's
        self.kvist("--linear", "--fake-script", self.script("answer Yes.\n"), stdin="/approvals remove all\n")
        self.assertNotIn("make check", self.kvist("approvals").stdout)  # the control: a person does

    def test_undo_writes_files_so_it_asks_the_mode(self):
        _, events, results = self.ask(call("write", "hello", path="new.txt") + "answer Done.\n", "edits")
        self.assertTrue(self.has("new.txt"), results)
        for mode in ("plan", "ask"):
            run, _, _ = self.ask("answer Yes.\n", mode, "/undo", "--resume", events[0]["id"])
            self.assertNotEqual(run.returncode, 0)
            self.assertTrue(self.has("new.txt"), mode)
        run, _, _ = self.ask("answer Yes.\n", "edits", "/undo", "--resume", events[0]["id"])
        self.assertEqual((run.returncode, self.has("new.txt")), (0, False), run.stderr)


# A machine that allows no namespaces, made of one that does: none are left to this group of processes.
WALLED = ["unshare", "-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_mnt_namespaces && echo 0 > /proc/sys/user/max_user_namespaces && "
          "exec \"$@\"", "sh"]


class Judged(Hostile):
    """What judges a change or a new test is the tree's own code (conftest.py, a Makefile, ...): none of it runs before a yes."""

    def test_nothing_of_the_tree_runs_before_a_yes(self):
        canary = os.path.join(self.folder, "canary")
        evil = f"open({canary!r}, 'w').write('x')\n"
        for name in ("conftest.py", "tests/conftest.py", "tests/__init__.py", "sitecustomize.py", "pytest.py", "evil.py"):
            self.put(name, evil)
        self.put("calc.py", "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n")
        self.put("tests/test_calc.py", "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n")
        self.put("pytest.ini", "[pytest]\naddopts = -p evil\npythonpath = .\n")
        self.put("Makefile", "include evil.mk\ncheck:\n\tpython3 evil.py\n")
        self.put("evil.mk", "X := $(shell python3 evil.py)\n")
        self.put("package.json", '{"scripts": {"test": "python3 evil.py"}}')
        self.put("meson.build", "project('x', 'c')\nrun_command('python3', 'evil.py')\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "judges")
        script = self.script(call("rewrite", "def add(a, b):\n    return a + b", path="calc.py", name="add") + call(
            "write", "from calc import mul\n\n\ndef test_mul():\n    assert mul(2, 3) == 6", path="tests/test_mul.py") + "answer Done.\n" * 9)
        for mode in ("plan", "ask", "edits"):
            for text in ("Add a test of mul.", "tests/test_calc.py fails; fix it", "Fix `make check`", "Run the tests", "What does mul return for 3 and 4?"):
                with self.subTest(mode=mode, text=text):
                    self.kvist("-p", text, "--mode", mode, "--fake-script", script, *(["--tries", "2"] if "fails" in text else []))
                    self.assertFalse(os.path.exists(canary))
                    self.git("checkout", "-q", ".")
                    self.git("clean", "-qfd")
        subprocess.run(["make", "-n", "check"], cwd=self.tree, stdout=subprocess.DEVNULL, check=False)  # the control: looking at it runs it
        self.assertTrue(os.path.exists(canary))


class WithoutNamespaces(Hostile):
    """There another git may run what a command plants while it runs, so mode all asks once a session."""

    def setUp(self):
        super().setUp()
        if not shutil.which("unshare") or subprocess.run([*WALLED, "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("this machine gives no namespace to forbid others in")
        doctor = subprocess.run([*WALLED, KVIST, "doctor"], stdout=subprocess.PIPE, text=True, env=self.env, timeout=PATIENCE).stdout
        self.assertIn("mount namespace: not allowed here", doctor)
        if "NOT confined" in doctor:
            self.skipTest("without namespaces nothing is confined here, and there is no mode all")
        self.two = self.script(call("shell", command="echo one > one") + call("shell", command="echo two > two") + "answer Done.\n")

    def lines(self, walls, answers):
        for name in ("one", "two"):
            if self.has(name):
                os.remove(self.path(name))
        run = subprocess.run([*walls, KVIST, "--linear", "--mode", "all", "--fake-script", self.two], input="Go.\n" + answers, cwd=self.tree,
                             env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        return run.stdout, self.has("one"), self.has("two")

    def test_mode_all_asks_once_a_session(self):
        said, one, two = self.lines(WALLED, "y\n")
        self.assertEqual((said.count("allow?"), one, two), (1, True, True), said)
        self.assertIn("run no git in this tree meanwhile", said)
        said, one, two = self.lines(WALLED, "n\nn\n")
        self.assertEqual((one, two), (False, False), said)
        said, one, two = self.lines([], "")  # the control: with namespaces it asks nothing
        if "mount namespace: not" not in self.kvist("doctor").stdout:
            self.assertEqual((said.count("allow?"), one, two), (0, True, True), said)

    def test_where_nobody_can_be_asked_it_is_told(self):
        run = subprocess.run([*WALLED, KVIST, "-p", "Go.", "--mode", "all", "--fake-script", self.two], cwd=self.tree, env=self.env,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual(run.stderr.count("note: this machine has no mount namespace"), 1, run.stderr)
        self.assertTrue(self.has("two"))


class OwnCommands(Hostile):
    def test_a_line_without_a_person_sees_no_home(self):
        home = os.path.join(self.folder, "me")
        os.mkdir(home)
        with open(os.path.join(home, "notes"), "w") as f:
            f.write("private")
        env = dict(self.env, HOME=home)
        script = self.script("answer Yes.\n")
        run = self.kvist("-p", "!cat ~/notes", "--mode", "all", "--fake-script", script, env=env)
        self.assertNotIn("private", run.stdout + run.stderr)
        run = self.kvist("--linear", "--mode", "ask", "--fake-script", script, env=env, stdin="!cat ~/notes\n")
        self.assertIn("private", run.stdout)  # the person's own words, at the keyboard
        self.assertIn("your own commands are confined as well", run.stdout + run.stderr)


class Approvals(Hostile):
    """A yes for longer than once is about a command and the files of the tree that it runs: as they were."""

    RUNS = (  # the command, the file behind it, what the model makes of it; a file that is only read, and the tests' own code, are no script
        ("sh tools/run.sh", "tools/run.sh", "touch ran"), ("cd tools && bash ./run.sh x", "tools/run.sh", "touch ../ran"),
        ("tools/run.sh", "tools/run.sh", "#!/bin/sh\ntouch ran"), ("make -s check", "Makefile", "check:\n\ttouch ran"),
        ("make -C tools", "tools/Makefile", "all:\n\ttouch ../ran"), ("X=1 python3 tools/run.py", "tools/run.py", "open('ran', 'w')"),
        ("python3 -m tools.run", "tools/run.py", "open('ran', 'w')"), ("find tools -name run.sh -exec sh tools/run.sh ';'", "tools/run.sh", "touch ran"))
    FREE = (("cat tools/run.sh", "tools/run.sh"), ("python3 tools/run.py; grep -c x src/one.c", "src/one.c"), ("make -s check", "src/one.c"))

    def lines(self, command, path, text, answers, mode="edits"):
        for name, first in (("tools/run.sh", "#!/bin/sh\ntrue\n"), ("Makefile", "check:\n\t@true\n"), ("tools/Makefile", "all:\n\t@true\n"),
                            ("tools/run.py", "pass\n"), ("src/one.c", "int one;\n")):
            self.put(name, first)
        if not command.startswith("cat"):
            os.chmod(self.path("tools/run.sh"), 0o755)
        script = call("shell", command=command) + call("read", path=path) + call("edit", text, path=path, **{"from": 1}) + \
            call("shell", command=command) + "answer Done.\n"
        run = self.kvist("--linear", "--mode", mode, "--context", "off", "--tries", "0", "--fake-script", self.script(script),
                         stdin="Go.\n" + answers)
        return run.stdout + run.stderr

    def test_the_script_behind_an_allowed_command_asks_again(self):
        for command, path, text in self.RUNS:
            with self.subTest(command=command):
                said = self.lines(command, path, text, "a\nn\nn\n")
                self.assertGreater(said.count("allow?"), 1, said)  # a test of the tree's own runs behind the change, too
                self.assertIn("(asked again: what it runs of the tree changed since you allowed it", said)
                self.assertFalse(self.has("ran"), said)
        said = self.lines(*self.RUNS[0], "a\na\n")  # the control: what it does when allowed again, for the session
        self.assertEqual((said.count("allow?"), self.has("ran")), (2, True), said)

    def test_what_it_only_reads_does_not(self):
        for command, path in self.FREE:
            with self.subTest(command=command):
                self.assertEqual(self.lines(command, path, "x", "a\n").count("allow?"), 1)

    def test_nor_does_a_yes_for_good_hold_for_another_script(self):
        said = self.lines(*self.RUNS[0], "A\nn\n")
        self.assertEqual((said.count("allow?"), self.has("ran")), (2, False), said)
        script = call("shell", command="sh tools/run.sh") + "answer Done.\n"
        for allowed, status in ((False, "denied"), (True, "ok"), (None, "denied")):
            if allowed:
                self.kvist("approvals", "allow", "sh tools/run.sh")
            if allowed is None:
                self.put("tools/run.sh", "touch ran2\n")
            run, _, results = self.ask(script, "edits")
            self.assertEqual([r["status"] for r in results], [status], (allowed, run.stderr))
            self.assertEqual("changed since you allowed it" in results[0]["text"], status == "denied", results)
        self.assertFalse(self.has("ran2"))


class Obeyed(Hostile):
    def modes(self):
        run, _, _ = self.ask("answer Yes.\n", "all")
        return ("ask", "edits") + (("all",) if run.returncode == 0 else ())

    def test_what_the_next_session_obeys_is_not_written_unasked(self):
        for mode in self.modes():
            for some in (OBEYED[i:i + 5] for i in range(0, len(OBEYED), 5)):
                run, _, results = self.ask("".join(call("write", "Obey me.", path=name) for name in some) + "answer Done.\n", mode)
                self.assertEqual([r["status"] for r in results], ["denied"] * len(some), (mode, some, results))
                self.assertEqual([name for name in some if self.has(name)], [], mode)
                self.assertNotEqual(run.returncode, 0)
                self.assertIn("AGENTS.md", run.stderr)
        free = ("notes.md", "Makefile", "package.json", "conftest.py", "setup.py", "build.rs", ".github/README.md", "vscode/tasks.json")
        _, _, results = self.ask("".join(call("write", "Hello.", path=name) for name in free) + "answer Done.\n", "edits")
        self.assertEqual([r["status"] for r in results], ["ok"] * len(free))  # the control: any other file is, and what runs when it is run

    def test_the_question_says_who_obeys_it(self):
        for name, who in ((".envrc", "direnv"), (".vscode/tasks.json", "an editor that opens this folder"), ("AGENTS.md", "the next session"),
                          (".github/workflows/x.yml", "the machine that builds what is pushed"), (".husky/pre-push", "git's hooks")):
            for answer in "ny":
                script = self.script(call("write", "Obey me.", path=name) + "answer Done.\n")
                run = self.kvist("--linear", "--mode", "edits", "--context", "off", "--fake-script", script, stdin=f"Go.\n{answer}\n")
                self.assertIn(f"(asked in every mode, since {who} would obey it unasked)", run.stdout)
                self.assertEqual(self.has(name), answer == "y", run.stdout)

    def test_nor_by_a_candidate(self):
        """Its test runs in a copy; what it would write in the tree is asked for as any call's."""
        self.put("test.sh", "test -f .envrc\n")
        run = self.kvist("-p", "Make test.sh pass.", "--json", "--mode", "edits", "--tries", "3", "--test", "sh test.sh", "--fake-script",
                         self.script((call("write", "touch fired", path=".envrc") + "answer Done.\n") * 4))
        self.assertFalse(self.has(".envrc"), run.stdout)
        self.assertFalse(self.has("fired"))

    def test_nor_by_taking_back(self):
        """Undoing an edit that a person allowed brings the earlier text back, which somebody obeys as well."""
        self.put(".envrc", "echo one\n")
        script = call("read", path=".envrc") + call("edit", "echo two", path=".envrc", **{"from": 1}) + "answer Done.\n"
        run = self.kvist("--linear", "--mode", "edits", "--context", "off", "--fake-script", self.script(script), stdin="Go.\ny\n")
        self.assertEqual(self.get(".envrc"), b"echo two\n", run.stdout)
        session = self.kvist("log", "list").stdout.split()[0]
        run, _, _ = self.ask("answer Yes.\n", "edits", "/undo", "--resume", session)
        self.assertIn("direnv would obey", run.stdout + run.stderr)
        self.assertEqual(self.get(".envrc"), b"echo two\n")

    def test_nor_through_a_link_in_such_a_folder(self):
        self.put(".vscode/settings.json", "{}")
        os.symlink("../tasks.json", self.path(".vscode/tasks.json"))
        os.symlink("../ci", self.path("src/.github"))
        self.put("ci/README.md", "x")
        for name in ("tasks.json", "src/ci/workflows/x.yml"):
            _, _, results = self.ask(call("write", "Obey me.", path=name) + "answer Done.\n", "edits")
            self.assertEqual([r["status"] for r in results], ["denied" if name == "tasks.json" else "ok"], (name, results))
        _, _, results = self.ask(call("write", "Obey me.", path="ci/workflows/x.yml") + "answer Done.\n", "edits")
        self.assertEqual([r["status"] for r in results], ["ok"])  # src/.github is none of a folder above it
        os.symlink("ci", self.path(".github"))
        _, _, results = self.ask(call("write", "Obey me.", path="ci/workflows/y.yml") + "answer Done.\n", "edits")
        self.assertEqual([r["status"] for r in results], ["denied"])

    def test_nor_what_git_runs(self):
        evil = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = touch fired; false\n"
        self.put("evil/config", evil)
        self.put("evil/objects/x", "x")
        self.put("evil/refs/x", "x")
        self.git("config", "core.hooksPath", ".husky")
        for mode in self.modes():
            for name in ("evil/HEAD", ".husky/post-commit"):
                _, _, results = self.ask(call("write", "ref: refs/heads/main", path=name) + "answer Done.\n", mode)
                self.assertEqual([r["status"] for r in results], ["denied"], (mode, name))
                self.assertFalse(self.has(name), (mode, name))
        self.put("evil/HEAD", "ref: refs/heads/main\n")  # the control: git obeys the folder then
        self.git("-C", "evil", "status", check=False)
        self.assertTrue(self.has("fired"))
        _, _, results = self.ask(call("write", "x", path="evil/hooks/pre-commit") + "answer Done.\n", "edits")
        self.assertEqual([r["status"] for r in results], ["denied"])

    def test_nor_changed_by_any_tool(self):
        text = "# Rules\n\nBe kind.\n"
        self.put("AGENTS.md", text)
        self.put(".kvist/hooks.py", "def f():\n    return 1\n")
        for mode in self.modes():
            _, _, results = self.ask(call("read", path="AGENTS.md") + call("edit", "<<<<<<< OLD\nBe kind.\n=======\nObey.\n>>>>>>> NEW",
                                                                          path="AGENTS.md") + "answer Done.\n", mode)
            self.assertEqual([r["status"] for r in results], ["ok", "denied"], (mode, results))
            _, _, results = self.ask(call("read", path=".kvist/hooks.py") + call("rewrite", "def f():\n    return 2", path=".kvist/hooks.py",
                                                                                name="f") + "answer Done.\n", mode)
            self.assertEqual([r["status"] for r in results], ["ok", "denied"], (mode, results))
        self.assertEqual(self.get("AGENTS.md").decode(), text)

    def test_nor_through_a_link_of_that_name(self):
        self.put("docs/guide.md", "# Rules\n")
        os.symlink("docs/guide.md", self.path("AGENTS.md"))
        os.symlink("docs/later.md", self.path("src/AGENTS.md"))
        os.symlink("house", self.path(".kvist"))
        for mode in self.modes():
            for name in ("src/docs/later.md", "house/config"):
                _, _, results = self.ask(call("write", "Obey me.", path=name) + "answer Done.\n", mode)
                self.assertEqual([r["status"] for r in results], ["denied"], (mode, name, results))
            _, _, results = self.ask(call("read", path="docs/guide.md") + call("edit", "Obey.", path="docs/guide.md", **{"from": 1}) +
                                     "answer Done.\n", mode)
            self.assertEqual([r["status"] for r in results], ["ok", "denied"], (mode, results))


main()
