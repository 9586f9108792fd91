"""A saved session of the real program whose files somebody changed: each one flipped, cut, lengthened at many places.

Whatever was done, the program ends by itself with an answer or with a sentence; rows that are not what they were are never used; and
nothing that was there is removed. The suite takes a sample; KVIST_PLACES=12, by hand, takes every file at twelve places each way (by estimate an hour).
"""
import glob
import json
import os
import random
import shutil
import subprocess
import unittest

from kit import DATA, SHORT, SMALL, Hostile, call, main

SEED = int(os.environ.get("KVIST_SEED", "20"))
PLACES = int(os.environ.get("KVIST_PLACES", "0"))


def changed(data, how, at):
    """data with something done to it at a place, which is a share of its length."""
    data = bytearray(data)
    place = min(int(at * len(data)), max(len(data) - 1, 0))
    if how == "flip" and data:
        data[place] ^= 1 << (place % 8)
    elif how == "fill":
        data[place:place + 64] = b"\xff" * len(data[place:place + 64])
    elif how == "cut":
        del data[place:]
    elif how == "grow":
        data[place:place] = bytes(4096)
    elif how == "repeat":
        data += data[:4096]
    return bytes(data)


HOWS = ("flip", "fill", "cut", "grow", "repeat")


class Saved(Hostile):
    def files(self, pattern):
        """Of a home: regular files by their paths in it."""
        return sorted(os.path.relpath(name, self.home) for name in glob.glob(os.path.join(self.home, "data", pattern), recursive=True)
                      if os.path.isfile(name))

    def keep(self):
        self.good = os.path.join(self.folder, "good")
        shutil.copytree(self.home, self.good)

    def restore(self):
        shutil.rmtree(self.home)
        shutil.copytree(self.good, self.home)

    def attack(self, name, how, at):
        self.restore()
        path = os.path.join(self.home, name)
        with open(path, "rb") as f:
            data = f.read()
        with open(path, "wb") as f:
            f.write(changed(data, how, at))

    def check_end(self, run):
        """An answer, or a sentence that says what is wrong."""
        if run.returncode:
            said = [line for line in run.stderr.splitlines() if line.startswith("kvist: ")]
            said += [e["text"] for e in map(json.loads, run.stdout.splitlines()) if e["event"] in ("notice", "error") and e.get("text")]
            self.assertTrue(said, (run.returncode, run.stdout, run.stderr))


@unittest.skipUnless(os.path.exists(SMALL), "scripts/fetch small")
class OfARealModel(Saved):
    """Rows behind an eviction, in a session under a budget: the manifest says which of them were active."""

    BUDGET = "1664"

    def turn(self, text, *words):
        run = self.kvist("-p", text, "--model", SHORT, "--json", "--max-tokens", "24", "--mode", "plan", "--context", "off", "--threads", "1",
                         "--kv-budget", self.BUDGET, *words)
        return run, [json.loads(line) for line in run.stdout.splitlines()]

    def answer(self, events):
        return [e["text"] for e in events if e["event"] == "answer"][-1]

    def test_every_file_of_it(self):
        self.put("src/long.c", "".join(f"int add_{i}(int x)\n{{\n    return x + {i};\n}}\n\n" for i in range(72)))
        run, events = self.turn("What does add_7 do in @src/long.c?")
        self.assertEqual(run.returncode, 0, run.stderr)
        session = events[0]["id"]
        self.assertTrue([e for e in events if e["event"] == "ledger" and e.get("evicted")], "the control: rows were evicted")
        self.keep()
        run, events = self.turn("And again", "--resume", session)
        self.assertEqual(run.returncode, 0, run.stderr)
        wanted = self.answer(events)
        self.assertGreater([e for e in events if e["event"] == "ledger"][-1]["reused"], 0)  # the control: whole rows are used
        # What decides the answer and can be made anew from the log: it must come out as if nothing had happened.
        rows = self.files(f"sessions/{session}/rows*") + self.files("rows/*")
        others = self.files("**/*")
        self.assertGreater(len(rows), 2, others)
        random.seed(SEED)
        cases = [(name, how, random.random()) for name in others for how in HOWS for _ in range(PLACES)] if PLACES else \
                [(name, random.choice(HOWS), random.random()) for name in rows] + \
                [(name, random.choice(HOWS), random.random()) for name in others if name not in rows]
        for name, how, at in cases:
            with self.subTest(name=name, how=how, at=at):
                self.attack(name, how, at)
                run, events = self.turn("And again", "--resume", session)
                self.check_end(run)
                if name in rows:
                    self.assertEqual(run.returncode, 0, run.stderr)
                    self.assertEqual(self.answer(events), wanted)
                self.assertTrue(os.path.exists(os.path.join(self.home, "data", "log.db")))


class OfChanges(Saved):
    """The journal of what a session changed: an undo gives back what was there, or says why not and leaves what is there."""

    def test_the_journal_and_what_it_holds(self):
        before = self.get("src/one.c")
        script = call("edit", "<<<<<<< OLD\n    return 2 * x;\n=======\n    return x + x;\n>>>>>>> NEW", path="src/one.c")
        run, events, results = self.ask(call("read", path="src/one.c") + script + "answer Done.\n", "edits")
        self.assertEqual([r["status"] for r in results], ["ok", "ok"], run.stderr)
        session, behind = events[0]["id"], self.get("src/one.c")
        self.assertNotEqual(before, behind)
        self.keep()
        undo = self.files(f"sessions/{session}/undo/**")
        self.assertGreater(len(undo), 1, undo)
        random.seed(SEED)
        cases = [(None, None, 0)] + [(name, how, random.random()) for name in undo for how in HOWS for _ in range(PLACES or 4)]
        for name, how, at in cases:
            with self.subTest(name=name, how=how, at=at):
                self.put("src/one.c", behind)
                if name:
                    self.attack(name, how, at)
                run = self.kvist("-p", "/undo", "--json", "--mode", "edits", "--resume", session, "--fake-script",
                                 self.script("answer Yes.\n"))
                now = self.get("src/one.c")
                self.assertIn(now, (before, behind))  # never something else
                if not name:
                    self.assertEqual(now, before)  # the control
                if now == behind:
                    self.check_end(run)
                    self.assertTrue(run.returncode or "undo" in run.stdout or "nothing" in run.stdout, run.stdout)

    def test_another_tree(self):
        """Files of another tree that happen to be the same are not taken for those that the session wrote."""
        script = call("write", "new", path="new.txt") + call("read", path="src/one.c") + call(
            "edit", "<<<<<<< OLD\n    return 2 * x;\n=======\n    return x + x;\n>>>>>>> NEW", path="src/one.c") + "answer Done.\n"
        _, events, _ = self.ask(script, "edits")
        tree, other, moved = self.tree, os.path.join(self.folder, "other"), os.path.join(self.folder, "moved")
        behind = self.get("src/one.c")
        for name, is_back in ((other, False), (moved, True)):
            with self.subTest(name=name):
                self.tree = tree
                shutil.copytree(tree, name) if name == other else os.rename(tree, name)
                self.tree = name
                for words in ("/undo", "/rewind 1"):
                    run = self.kvist("-p", words, "--mode", "edits", "--fork" if words != "/undo" else "--resume", events[0]["id"],
                                     "--fake-script", self.script("answer Yes.\n"))
                    self.assertEqual("worked in " + tree in run.stderr, not is_back, run.stderr)
                    if is_back:  # the control: a tree that has another place now
                        break
                self.assertEqual((self.has("new.txt"), self.get("src/one.c") != behind), (not is_back, is_back))
        self.tree = other  # what is written here is taken back here
        script = call("write", "more", path="more.txt") + "answer Done.\n"
        os.rename(moved, tree)
        run = self.kvist("--linear", "--mode", "edits", "--resume", events[0]["id"], "--fake-script", self.script(script), stdin="Go.\n/undo\ny\n")
        self.assertEqual((self.has("more.txt"), self.has("new.txt")), (False, True), run.stdout)

    def test_a_pipe_is_never_waited_for(self):
        """In the place of anything that is kept: cat would wait for each without an end."""
        run, events, _ = self.ask(call("write", "new", path="new.txt") + "answer Done.\n", "edits")
        self.keep()
        kept = [name for name in self.files("**") if not name.endswith("log.db")]
        self.assertGreater(len([name for name in kept if "undo" in name or "index" in name]), 2, kept)
        self.assertGreater(len(kept), 4, kept)
        for name in kept:
            with self.subTest(name=name):
                self.restore()
                os.remove(os.path.join(self.home, name))
                os.mkfifo(os.path.join(self.home, name))
                with self.assertRaises(subprocess.TimeoutExpired):
                    subprocess.run(["cat", os.path.join(self.home, name)], timeout=0.05, check=False)  # the control
                self.put("new.txt", "new\n")
                run = self.kvist("-p", "/undo", "--json", "--mode", "edits", "--resume", events[0]["id"], "--fake-script",
                                 self.script("answer Yes.\n"))
                self.check_end(run)


main()
