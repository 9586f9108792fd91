#!/usr/bin/env python3
"""A disk without room, for what kvist keeps and for the tree: each size ends with a sentence and loses nothing. A file of the tree is the
old one or the new one, a change of several files is whole or none, what was written can be taken back, and what was logged can be read.

The disk is a small tmpfs in a mount namespace of an ordinary user; the control of each is the same with room."""
import json
import os
import shutil
import subprocess
import unittest

from kit import KVIST, PATIENCE, Hostile, call, main

# Mounts $SPACE, takes all but $LEFT kilobytes of it, and goes on; $WALLS: no namespaces for what it starts.
INSIDE = r'''
mount -t tmpfs -o size=4m,mode=700 tmpfs "$SPACE" && { [ -z "$FROM" ] || cp -a "$FROM/." "$SPACE"; } || exit 99
cd "$STAND" && left=$(df -k --output=avail "$SPACE" | tail -1) && head -c $(((left - LEFT) * 1024)) /dev/zero > "$SPACE/.fill" || exit 98
[ -z "$WALLS" ] || { echo 0 > /proc/sys/user/max_mnt_namespaces && echo 0 > /proc/sys/user/max_user_namespaces || exit 97; }
"$@"
rc=$?
cp -a "$SPACE/." "$TO"
exit $rc
'''


class Full(Hostile):
    def setUp(self):
        super().setUp()
        self.space = os.path.join(self.folder, "space")
        os.mkdir(self.space)
        if not shutil.which("unshare") or subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", self.space],
                                                         stderr=subprocess.DEVNULL).returncode:
            self.skipTest("this machine lets no user mount")

    def inside(self, left, command, at=None, walls=False, **env):
        """Runs it beside a disk with so many kilobytes left, which begins as a copy of the folder `at`: the run, and how the disk was then."""
        to = os.path.join(self.folder, "then")
        shutil.rmtree(to, ignore_errors=True)
        os.mkdir(to)
        run = subprocess.run(["unshare", "-Urm", "sh", "-c", INSIDE, "sh", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, errors="replace", timeout=PATIENCE, cwd=self.folder,
                             env=dict(self.env, SPACE=self.space, LEFT=str(left), FROM=at or "", TO=to, WALLS="1" if walls else "",
                                      STAND=self.space if at else self.tree, **env))
        self.assertIn(run.returncode, range(0, 96), run.stderr)
        return run, to

    def test_for_what_kvist_keeps(self):
        lines = "".join(f"line {i} of it\n" for i in range(60))
        script = self.script(call("write", lines[:-1], path="new.txt") + call("read", path="src/one.c") +
                             call("rewrite", "int twice(int x)\n{\n    return x + x;\n}", path="src/one.c", name="twice") +
                             call("shell", command="seq 5000") + "answer Done.\n")
        first, seen = self.get("src/one.c"), set()
        for left in (0, 16, 64, 96, 128, 192, 256, 320, 384, 448, 512, 640, 3000):
            with self.subTest(left=left):
                self.put("src/one.c", first)
                if self.has("new.txt"):
                    os.remove(self.path("new.txt"))
                run, then = self.inside(left, [KVIST, "-p", "Go.", "--json", "--mode", "all", "--fake-script", script], KVIST_HOME=self.space)
                events = [json.loads(line) for line in run.stdout.splitlines()]
                told = run.stderr + "".join(e["text"] for e in events if e["event"] in ("notice", "error", "tool_result"))
                results = {e["name"]: e["status"] for e in events if e["event"] == "tool_result"}
                is_full = "disk is full" in told or "No space left" in told
                seen.add(is_full)
                self.assertEqual(bool(run.returncode), not results, (run.stdout[-500:], run.stderr))
                self.assertTrue(is_full or left > 600, told)
                # What a result says is so.
                self.assertEqual(self.get("new.txt").decode() if self.has("new.txt") else None, lines if results.get("write") == "ok" else None)
                self.assertEqual(self.get("src/one.c") != first, results.get("rewrite") == "ok", results)
                self.assertEqual(sorted(os.listdir(self.path("src"))), ["one.c"])
                # And what is kept can be read, once there is room.
                self.env["KVIST_HOME"] = then
                listed = self.kvist("log", "list")
                self.assertEqual(listed.returncode, 0, listed.stderr)
                if results and events[0]["id"] in listed.stdout:
                    shown = self.kvist("log", "show", events[0]["id"])
                    self.assertEqual(shown.returncode, 0, shown.stderr)
                    if results.get("write") == "ok":
                        self.kvist("-p", "/undo", "--mode", "edits", "--resume", events[0]["id"], "--fake-script", script)
                        self.assertEqual((self.has("new.txt"), self.get("src/one.c")), (False, first), told)
        self.assertEqual(seen, {False, True})  # the control: with room nothing is told

    def test_for_the_tree(self):
        for name in ("two", "three", "four"):
            self.put(f"src/{name}.c", f"int twice(int x);\nint {name}(int x)\n{{\n    return twice(twice(x));\n}}\n" + "/* pad */\n" * 800)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "more")
        script = self.script(call("write", "new", path="new.txt") + call("refactor", operation="rename", name="twice", to="doubled", path="src/one.c") +
                             "answer Done.\n")
        undo = '"$0" -p Go. --json --mode edits --fake-script "$1" > "$2"; cp -a src "$3"; ' \
               'id=$(head -1 "$2" | sed \'s/.*"id":"\\([^"]*\\)".*/\\1/\'); "$0" -p /undo --mode edits --resume "$id" --fake-script "$1"'
        before = {name: self.get("src/" + name) for name in os.listdir(self.path("src"))}
        seen = set()
        for left in (0, 4, 8, 12, 16, 24, 32, 36, 200):
            with self.subTest(left=left):
                said, copy = os.path.join(self.folder, f"said{left}"), os.path.join(self.folder, f"src{left}")
                run, then = self.inside(left, ["sh", "-c", undo, KVIST, script, said, copy], at=self.tree)
                with open(said) as f:
                    results = {e["name"]: e for e in map(json.loads, f) if e["event"] == "tool_result"}
                self.assertIn("refactor", results, run.stderr)
                status = results["refactor"]["status"]
                seen.add(status)
                texts = {}
                for name in os.listdir(copy):
                    with open(os.path.join(copy, name), "rb") as f:
                        texts[name] = f.read()
                self.assertEqual(texts if status != "ok" else {n: t.replace(b"doubled", b"twice") for n, t in texts.items()}, before)
                self.assertTrue(status == "ok" or "No space left" in results["refactor"]["text"], results)
                self.assertEqual(status == "ok", all(b"doubled" in t for t in texts.values()))
                self.assertEqual(sorted(os.listdir(then)), [".fill", ".git", "src"], run.stderr)  # taken back: new.txt is gone
                for name, text in before.items():
                    with open(os.path.join(then, "src", name), "rb") as f:
                        self.assertEqual(f.read(), text)
        self.assertEqual(seen, {"ok", "refused"})  # some had room

    def test_for_what_a_command_changed_of_git(self):
        """Where a command can reach git's files it empties one and fills the disk: then it lies in kvist's folder, and the person is told."""
        self.put(".git/hooks/pre-commit", "#!/bin/sh\n# marmalade\n" + "# pad\n" * 2000)
        for left, command, is_back in ((100, "echo > .git/hooks/pre-commit; seq 900000 > fill", False), (100, "echo > .git/hooks/pre-commit", True)):
            with self.subTest(is_back=is_back):
                script = self.script(call("shell", command=command) + "answer Done.\n")
                run, then = self.inside(left, [KVIST, "-p", "Go.", "--mode", "all", "--fake-script", script], at=self.tree, walls=True)
                with open(os.path.join(then, ".git/hooks/pre-commit")) if is_back else open(os.devnull) as f:
                    self.assertEqual("marmalade" in f.read(), is_back, run.stderr)
                kept = subprocess.run(["grep", "-rl", "marmalade", os.path.join(self.home, "data", "aside")], stdout=subprocess.PIPE, text=True).stdout
                self.assertEqual(bool(kept), not is_back, run.stderr)
                self.assertIn("it was put back" if is_back else "What was there lies in", run.stderr)
                shutil.rmtree(self.home)


main()
