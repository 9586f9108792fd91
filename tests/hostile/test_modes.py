#!/usr/bin/env python3
"""What a mode promises: nothing runs or is written that it does not allow, and nobody gives the next session orders unasked."""
import os

from kit import Hostile, call, main

OBEYED = ("AGENTS.md", "src/AGENTS.md", "agents.MD", ".kvist/commands/x.md", ".agents/skills/x/SKILL.md", ".Kvist/config", "AGENTS.md.")


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

    def test_undo_writes_files_so_it_asks_the_mode(self):
        _, events, results = self.ask(call("write", "hello", path="new.txt") + "answer Done.\n", "edits")
        self.assertTrue(self.has("new.txt"), results)
        for mode in ("plan", "ask"):
            run, _, _ = self.ask("answer Yes.\n", mode, "/undo", "--resume", events[0]["id"])
            self.assertNotEqual(run.returncode, 0)
            self.assertTrue(self.has("new.txt"), mode)
        run, _, _ = self.ask("answer Yes.\n", "edits", "/undo", "--resume", events[0]["id"])
        self.assertEqual((run.returncode, self.has("new.txt")), (0, False), run.stderr)


class Obeyed(Hostile):
    def modes(self):
        run, _, _ = self.ask("answer Yes.\n", "all")
        return ("ask", "edits") + (("all",) if run.returncode == 0 else ())

    def test_what_the_next_session_obeys_is_not_written_unasked(self):
        for mode in self.modes():
            for name in OBEYED:
                run, _, results = self.ask(call("write", "Obey me.", path=name) + "answer Done.\n", mode)
                self.assertEqual([r["status"] for r in results], ["denied"], (mode, name, results))
                self.assertFalse(self.has(name), (mode, name))
                self.assertNotEqual(run.returncode, 0)
                self.assertIn("AGENTS.md", run.stderr)
        _, _, results = self.ask(call("write", "Hello.", path="notes.md") + "answer Done.\n", "edits")
        self.assertEqual([r["status"] for r in results], ["ok"])  # the control: any other file is

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
