#!/usr/bin/env python3
"""A rename over five files, and an edit of one, and the program killed at each call that changes what is on disk: after
the next start all files are old or all are new, nothing else lies in the tree, and what was taken back is said."""
import os
import shutil
import subprocess
import sys
import unittest

from kit import KVIST, PATIENCE, Hostile, call, main

SHIM = os.path.abspath(sys.argv[3])
FILES = ["src/one.c", "src/two.c", "src/three.c", "src/four.c", "src/five.c"]


class Killed(Hostile):
    def setUp(self):
        super().setUp()
        for n, path in enumerate(FILES[1:]):
            self.put(path, f"int twice(int x);\nint with_{n}(int x)\n{{\n    return twice(twice(x)) + {n};\n}}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "two")
        self.old = self.texts()
        self.calls = os.path.join(self.folder, "calls")
        self.below = ":".join([self.tree + "/", os.path.join(self.home, "data", "pending"), os.path.join(self.home, "data", "undo")])

    def texts(self):
        return {p: self.get(p) for p in FILES}

    def rename(self, at):
        return self.run_killed(at, call("refactor", operation="rename", name="twice", to="doubled", path="src/one.c"))

    def run_killed(self, at, calls):
        """These calls, killed at that call of the system (0: never); returns the run."""
        script = self.script(calls + "answer Done.\n")
        env = dict(self.env, LD_PRELOAD=SHIM, KILL_AT=str(at), KILL_BELOW=self.below, KILL_LOG=self.calls)
        return subprocess.run([KVIST, "-p", "Go.", "--json", "--mode", "edits", "--fake-script", script], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", env=env, cwd=self.tree, timeout=PATIENCE)

    def test_all_old_or_all_new(self):
        run = self.rename(0)
        self.assertEqual(run.returncode, 0, run.stderr)
        new = self.texts()
        with open(self.calls) as f:
            calls = f.read().splitlines()
        self.assertTrue(all(b"doubled" in t and b"twice" not in t for t in new.values()), new)
        self.assertTrue(sum(c.startswith("rename ") and "/src/" in c for c in calls) >= len(FILES), calls)  # the control: they are seen
        ends = {"old": 0, "new": 0, "partly": 0}
        for at in range(1, len(calls) + 1):
            with self.subTest(at=at, call=calls[at - 1]):
                shutil.rmtree(self.home)
                for path, text in self.old.items():
                    self.put(path, text)
                run = self.rename(at)
                self.assertEqual(run.returncode, -9, run.stderr)
                left = self.texts()
                partly = left != self.old and left != new
                again = self.kvist("-p", "Go.", "--json", "--mode", "edits", "--fake-script", self.script("answer Done.\n"))
                self.assertEqual(again.returncode, 0, again.stderr)
                now = self.texts()
                self.assertIn(now, (self.old, new))
                self.assertEqual(self.git("status", "--short", "--untracked-files=all").stdout.count("\n"), 0 if now == self.old else len(FILES))
                if partly:
                    self.assertIn("A change of 5 files was cut off by a kill: they are as they were before it.", again.stdout)
                ends["old" if now == self.old else "new"] += 1
                ends["partly"] += partly
        self.assertTrue(ends["partly"] and ends["old"], ends)  # the control: some were killed between two files

    def test_an_edit_leaves_no_file(self):
        """Between the new file's name beside the old one and the renaming; the next session, not the one that goes on, cleans up."""
        edit = call("read", path="src/two.c") + call("edit", "<<<<<<< OLD\nint twice(int x);\n=======\nint twice(int y);\n>>>>>>> NEW", path="src/two.c")
        run = self.run_killed(0, edit)
        self.assertIn(b"int y", self.get("src/two.c"), run.stdout)
        with open(self.calls) as f:
            calls = f.read().splitlines()
        left = []
        for at in range(1, len(calls) + 1):
            with self.subTest(at=at, call=calls[at - 1]):
                shutil.rmtree(self.home)
                self.put("src/two.c", self.old["src/two.c"])
                self.assertEqual(self.run_killed(at, edit).returncode, -9)
                left += self.strays()
                again = self.kvist("-p", "Go.", "--json", "--mode", "edits", "--fake-script", self.script("answer Done.\n"))
                self.assertEqual((again.returncode, self.strays()), (0, []), again.stderr)
                self.assertEqual(os.listdir(os.path.join(self.home, "data", "pending")), [])  # nor its lock
        self.assertTrue(left)  # the control: a kill does leave one

    def strays(self):
        return [n for n in os.listdir(os.path.join(self.tree, "src")) if n.startswith(".kvist-")]


if __name__ == "__main__":
    main()
