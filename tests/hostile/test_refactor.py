#!/usr/bin/env python3
"""refactor on a tree that somebody prepared: links out of it, pipes, names with escapes, places that are none of the model's.

Whatever is renamed, moved or deleted, nothing outside of the tree changes, nothing of git's or kvist's own, and the run ends."""
import os
import unittest

from kit import Hostile, call, main


class Refactor(Hostile):
    def setUp(self):
        super().setUp()
        self.outside = os.path.join(self.folder, "outside")
        os.mkdir(self.outside)
        self.out = os.path.join(self.outside, "out.c")
        with open(self.out, "w") as f:
            f.write("int twice(int x);\nint four(int x)\n{\n    return twice(twice(x));\n}\n")
        self.put("src/two.c", "int twice(int x);\nint four_times(int x)\n{\n    return twice(twice(x));\n}\n")
        self.put("src/\x1b[31mred\x07.c", "int twice(int x);\nint six(int x)\n{\n    return twice(x) + 4;\n}\n")
        os.symlink(self.out, self.path("src/linked.c"))
        os.symlink(self.outside, self.path("src/out"))
        os.symlink("loop.c", self.path("src/loop.c"))
        os.mkfifo(self.path("src/pipe.c"))
        self.git("add", "-A", check=False)
        self.git("commit", "-q", "-m", "two")
        self.was = self.state()

    def state(self):
        """What must stay: bytes outside, links, the pipe, git's hooks and configuration, and what is new anywhere."""
        with open(self.out) as f:
            text = f.read()
        links = [os.readlink(self.path(p)) for p in ("src/linked.c", "src/out", "src/loop.c")]
        names = sorted(os.path.relpath(os.path.join(at, n), self.folder) for top in (self.outside, self.path(".git/hooks")) for at, _, all in os.walk(top) for n in all)
        return text, links, names, self.get(".git/config"), os.path.exists(self.path("src/pipe.c")), sorted(os.listdir(self.folder + "/tree"))

    def refactor(self, mode="edits", **arguments):
        run, events, results = self.ask(call("refactor", **arguments) + "answer Done.\n", mode)
        return run, results

    def test_rename_reaches_the_tree_and_nothing_else(self):
        run, results = self.refactor(operation="rename", name="twice", to="doubled", path="src/one.c")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(b"doubled", self.get("src/one.c"))  # the control: it is done
        self.assertIn(b"doubled(doubled(x))", self.get("src/two.c"))
        self.assertIn(b"doubled", self.get("src/\x1b[31mred\x07.c"))
        self.assertEqual(self.state(), self.was)
        self.assertNotIn("\x1b", run.stdout)

    def test_places_that_are_not_the_trees_own(self):
        for to in ("../outside/out.c", "../new.c", self.out, self.outside + "/new.c", "src/out/new.c", "src/linked.c", "src/loop.c", "src/pipe.c",
                   ".git/hooks/pre-commit.c", ".git/config", "src/../../outside/new.c", "src/one.c/x.c", "src\x00x.c", "src/" + "a" * 300 + ".c", ""):
            with self.subTest(to=to):
                run, results = self.refactor(operation="move", name="twice", to=to, path="src/one.c")
                self.assertEqual(self.state(), self.was)
                self.assertIn(b"int twice(int x)\n{", self.get("src/one.c"))
                self.assertNotEqual(results[0].get("status") if results else None, "ok", results)

        self.refactor(operation="move", name="twice", to="src/new.c", path="src/one.c")
        self.assertIn(b"int twice(int x)\n{", self.get("src/new.c"))  # the control: one that is

    def test_what_others_obey_is_asked_for(self):
        for to in ("AGENTS.md", ".kvist/new.c", ".agents/new.c", ".vscode/new.c", ".husky/new.c"):
            with self.subTest(to=to):
                run, results = self.refactor(operation="move", name="twice", to=to, path="src/one.c")
                self.assertIn(b"int twice(int x)\n{", self.get("src/one.c"))
                self.assertFalse(self.has(to))

    def test_names_that_are_none(self):
        for to in ("x; }", "a b", "../../x", "\u202egnp", "x\ny", "if", "", "A" * 5000, "1st", "tw\u200bice"):
            with self.subTest(to=to[:20]):
                run, results = self.refactor(operation="rename", name="twice", to=to, path="src/one.c")
                self.assertIn(b"int twice(int x)\n{", self.get("src/one.c"))
                self.assertEqual(self.state(), self.was)

    def test_definitions_behind_links_are_not_taken(self):
        for path in ("src/linked.c", "src/out/out.c", "../outside/out.c", self.out, "src/pipe.c", "src/loop.c"):
            for operation, more in (("delete", {}), ("rename", {"to": "quad"}), ("signature", {"parameter": "int y", "value": "1", "at": 1})):
                with self.subTest(path=path, operation=operation):
                    self.refactor(operation=operation, name="four", path=path, unsure=True, text=True, **more)
                    self.assertEqual(self.state(), self.was)
        self.refactor(operation="rename", name="four_times", to="quad", path="src/two.c")
        self.assertIn(b"int quad(int x)", self.get("src/two.c"))  # the control: of the tree's own

    def test_undo_gives_back_what_each_did(self):
        """In files whose names begin like an option, in a submodule, behind a second name of the tree, and where a file has two names."""
        self.put("-x.py", "def thrice(x):\n    return 3 * x\n")
        self.put("b.py", "def half(x):\n    return x // 2\n")
        origin = os.path.join(self.folder, "origin")
        self.git("init", "-q", origin)
        with open(os.path.join(origin, "sub.c"), "w") as f:
            f.write("int inner(int x)\n{\n    return x;\n}\n")
        for words in (["add", "-A"], ["commit", "-q", "-m", "x"]):
            self.git("-C", origin, *words)
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", origin, "sub")
        self.git("add", "-A", check=False)
        self.git("commit", "-q", "-m", "three")
        names = ("src/one.c", "src/two.c", "-x.py", "b.py", "sub/sub.c", "src/-rf.c", "SRC/ONE.c")
        before = {name: self.get(name) if self.has(name) else None for name in names}
        was, done = self.state(), []
        for arguments in (dict(operation="rename", name="thrice", to="tripled", path="-x.py"), dict(operation="move", name="thrice", to="b.py", path="-x.py"),
                          dict(operation="move", name="twice", to="-rf.c", path="src/one.c"), dict(operation="move", name="twice", to="SRC/ONE.c", path="src/one.c"),
                          dict(operation="move", name="twice", to="sub/sub.c", path="src/one.c"), dict(operation="delete", name="half", path="b.py"),
                          dict(operation="move", name="twice", to="sub/.git/x.c", path="src/one.c"),
                          dict(operation="move", name="twice", to=".git/modules/sub/hooks/x.c", path="src/one.c")):
            with self.subTest(**arguments):
                run, events, results = self.ask(call("refactor", **arguments) + "answer Done.\n", "edits")
                is_done = results[0]["status"] == "ok"
                done.append(is_done)
                self.assertEqual({name: self.get(name) if self.has(name) else None for name in names} != before, is_done)
                self.kvist("-p", "/undo", "--mode", "edits", "--resume", events[0]["id"], "--fake-script", self.script("answer Yes.\n"))
                self.assertEqual({name: self.get(name) if self.has(name) else None for name in names}, before)
                self.assertEqual(self.state(), was)
        self.assertEqual(done, [True] * 6 + [False] * 2)
        os.link(self.out, self.path("src/second.c"))  # a file that lies elsewhere too
        for arguments in (dict(operation="rename", name="twice", to="doubled", path="src/one.c"), dict(operation="delete", name="four", path="src/second.c")):
            run, events, results = self.ask(call("refactor", **arguments) + "answer Done.\n", "edits")
            self.assertNotEqual(results[0]["status"], "ok")
            self.assertEqual(self.state()[0], self.was[0])

    def test_plan_changes_nothing(self):
        before = self.get("src/one.c")
        self.refactor(mode="plan", operation="rename", name="twice", to="doubled")
        self.assertEqual(self.get("src/one.c"), before)


main()
