#!/usr/bin/env python3
"""Files of kvist's own that somebody else has changed: the log's database, rows and manifests, the undo journal; and a tree that a
candidate's copy is made of. Whatever they hold, the program ends with a sentence or goes on without them: never by a signal, never with
another text than the log's, never with a file outside of the tree."""
import glob
import json
import os
import random
import shutil
import sqlite3
import unittest

from kit import SHORT, SMALL, Hostile, call, main

SEED = int(os.environ.get("KVIST_SEED", "20"))


class Log(Hostile):
    def session(self):
        _, events, _ = self.ask(call("write", "hello", path="new.txt") + "answer Done.\n", "edits")
        return events[0]["id"]

    def database(self):
        return os.path.join(self.home, "data", "log.db")

    def look(self, session):
        """Everything that reads the log; none may end by a signal (kit.py) or write outside of its folder."""
        for words in (["log", "list"], ["log", "show", session], ["log", "search", "hello"], ["log", "export", session],
                      ["replay", session, "--text", "80x24"],
                      ["-p", "Go.", "--mode", "plan", "--resume", session, "--fake-script", self.script("answer Yes.\n")]):
            run = self.kvist(*words)
            self.assertIn(run.returncode, (0, 1, 2, 4, 5), (words, run.stderr))
            if run.returncode:
                self.assertTrue(run.stderr.strip(), words)
        self.assertFalse(glob.glob(os.path.join(self.folder, "pwned*")))

    def test_a_database_with_a_schema_of_its_own(self):
        session = self.session()
        good = self.database() + ".good"
        shutil.copy(self.database(), good)
        pwned = os.path.join(self.folder, "pwned")
        attacks = (
            "CREATE TRIGGER t AFTER INSERT ON turns BEGIN DELETE FROM sessions; END",
            "CREATE TRIGGER t AFTER INSERT ON events BEGIN SELECT load_extension('x'); END",
            f"CREATE TRIGGER t AFTER INSERT ON events BEGIN SELECT writefile('{pwned}', 'x'); END",
            "CREATE TRIGGER t AFTER INSERT ON sessions BEGIN SELECT fts3_tokenizer('simple', x'4141414141414141'); END",
            "ALTER TABLE sessions RENAME TO was; CREATE VIEW sessions AS SELECT * FROM was, was b",
            "ALTER TABLE events RENAME TO was; CREATE VIEW events AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT * FROM c",
            "DROP TABLE events",
            "DELETE FROM events",
            "PRAGMA user_version = 1",
            "PRAGMA user_version = 0",
            "PRAGMA user_version = -5",
            "PRAGMA user_version = 99",
            "UPDATE sessions SET id = '../../../pwned'",
            "UPDATE sessions SET id = NULL",
        )
        for attack in attacks:
            with self.subTest(attack=attack):
                for name in glob.glob(self.database() + "*"):
                    if name != good:
                        os.remove(name)
                shutil.copy(good, self.database())
                db = sqlite3.connect(self.database())
                db.executescript(attack)
                db.commit()
                db.close()
                self.look(session)

    def test_events_that_are_none(self):
        session = self.session()
        db = sqlite3.connect(self.database())
        tables = {row[0]: [c[1] for c in db.execute(f"PRAGMA table_info({row[0]})")] for row in
                  db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")}
        self.assertTrue(tables)
        changed = 0
        for value in ("", "{", '{"event":"append","text":' + '"' + "A" * 100000 + '"}', '{"event":"plan","runs":[[0,4294967295,"evict","x",-1]]}',
                      "\x1b]0;evil\x07", b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff", b"\xff" * 100, -(1 << 63), 1e308, None):
            for table, columns in tables.items():
                for column in columns:
                    try:
                        db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid IN (SELECT rowid FROM {table} ORDER BY rowid LIMIT 2 OFFSET 1)", (value,))
                        changed += 1
                    except sqlite3.Error:
                        continue
            db.commit()
            self.look(session)
        self.assertGreater(changed, 10)
        db.close()

    def test_a_database_that_is_damaged(self):
        session = self.session()
        with open(self.database(), "rb") as f:
            good = f.read()
        random.seed(SEED)
        for trial in range(12):
            data = bytearray(good)
            for _ in range(random.choice((1, 20, 400))):
                data[random.randrange(len(data))] = random.randrange(256)
            if trial % 4 == 3:
                del data[random.randrange(len(data)):]
            for name in glob.glob(self.database() + "-*"):
                os.remove(name)
            with open(self.database(), "wb") as f:
                f.write(data)
            self.look(session)

    def test_an_undo_journal_that_leads_elsewhere(self):
        session = self.session()
        (journal,) = glob.glob(os.path.join(self.home, "data", "**", "undo", "journal"), recursive=True)
        with open(journal) as f:
            good = f.read()
        outside = os.path.join(self.folder, "precious")
        with open(outside, "w") as f:
            f.write("precious")
        self.put(".git/hooks/keep", "precious")
        os.symlink(self.folder, self.path("out"))
        for name in ("../precious", outside, "out/precious", ".git/hooks/keep", "src/../../precious", ""):
            with open(journal, "w") as f:
                f.write(good.replace("new.txt", name))
            self.kvist("-p", "/undo", "--mode", "all", "--resume", session, "--fake-script", self.script("answer Yes.\n"))
            with open(outside) as f:
                self.assertEqual(f.read(), "precious", name)
            self.assertEqual(self.get(".git/hooks/keep"), b"precious", name)
        random.seed(SEED)
        for _ in range(10):
            text = bytearray(good.encode())
            for _ in range(3):
                text[random.randrange(len(text))] = random.randrange(256)
            with open(journal, "wb") as f:
                f.write(text)
            self.kvist("-p", "/undo", "--mode", "edits", "--resume", session, "--fake-script", self.script("answer Yes.\n"))
        with open(journal, "w") as f:  # the control: the journal as it was
            f.write(good)
        if self.has("new.txt"):
            run = self.kvist("-p", "/undo", "--mode", "edits", "--resume", session, "--fake-script", self.script("answer Yes.\n"))
            self.assertEqual((run.returncode, self.has("new.txt")), (0, False), run.stderr)


@unittest.skipUnless(os.path.exists(SMALL), "scripts/fetch small")
class Rows(Hostile):
    """A real model's session whose rows somebody changed: they are computed again, and the text is what the log says."""

    def turn(self, text, *words):
        run = self.kvist("-p", text, "--model", SHORT, "--json", "--max-tokens", "24", "--mode", "plan", "--context", "off", "--threads", "1", *words)
        return run, [json.loads(line) for line in run.stdout.splitlines()]

    def answer(self, events):
        return [e["text"] for e in events if e["event"] == "answer"][-1]

    def reused(self, events):
        return [e for e in events if e["event"] == "ledger"][-1]["reused"]

    def test_changed_rows_are_computed_again(self):
        run, events = self.turn("Say hello")
        self.assertEqual(run.returncode, 0, run.stderr)
        session = events[0]["id"]
        folder = os.path.join(self.home, "data", "sessions", session)
        good = os.path.join(self.folder, "good")
        shutil.copytree(os.path.join(self.home, "data"), good)
        run, events = self.turn("And again", "--resume", session)
        wanted, reused = self.answer(events), self.reused(events)
        self.assertGreater(reused, 0)  # the control: whole rows are used
        files = [name for name in os.listdir(os.path.join(good, "sessions", session)) if name.startswith("rows")]
        self.assertGreater(len(files), 1, files)
        random.seed(SEED)
        attacks = [("flip", name) for name in files * 2] + [("cut", name) for name in files] + [("grow", name) for name in files] + \
                  [("link", name) for name in files] + [("pipe", name) for name in files] + [("gone", name) for name in files]
        if os.geteuid() == 0:
            attacks += [("given", name) for name in files]
        for how, name in attacks:
            with self.subTest(how=how, name=name):
                shutil.rmtree(os.path.join(self.home, "data"))
                shutil.copytree(good, os.path.join(self.home, "data"))
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    data = bytearray(f.read())
                if how == "flip":
                    for _ in range(8):
                        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
                elif how == "cut":
                    del data[random.randrange(len(data)):]
                elif how == "grow":
                    data += bytes(1 << 16)
                if how in ("link", "pipe", "gone"):
                    os.remove(path)
                if how == "link":
                    os.symlink("/dev/zero", path)
                elif how == "pipe":
                    os.mkfifo(path)
                elif how == "given":
                    os.chown(path, 65534, 65534)
                elif how != "gone":
                    with open(path, "wb") as f:
                        f.write(data)
                run, events = self.turn("And again", "--resume", session)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(self.answer(events), wanted)


class Candidates(Hostile):
    """A candidate is tried in a copy of the tree, whose parts somebody chose."""

    def test_links_of_the_tree_lead_nowhere_from_a_copy(self):
        precious = os.path.join(self.folder, "precious")
        with open(precious, "w") as f:
            f.write("precious")
        os.symlink(precious, self.path("link.py"))
        os.symlink(self.folder, self.path("out"))
        os.mkfifo(self.path("pipe"))
        self.put("calc.py", "def add(a, b):\n    return a - b\n")
        self.put("test_calc.sh", "grep -q 'a + b' calc.py && echo x > link.py; echo x > out/precious; grep -q 'a + b' calc.py\n")
        self.git("add", "calc.py", "test_calc.sh")
        self.git("commit", "-q", "-m", "two")
        wrong = call("rewrite", "def add(a, b):\n    return b - a", path="calc.py", name="add")
        right = call("rewrite", "def add(a, b):\n    return a + b", path="calc.py", name="add")
        run, events, results = self.ask(call("read", path="calc.py") + wrong + wrong + right + "answer Done.\n", "all",
                                        "sh test_calc.sh fails; fix it", "--tries", "3")
        if any(r["status"] == "denied" for r in results) or run.returncode == 1 and not results:
            self.skipTest("commands cannot be confined here")
        with open(precious) as f:
            self.assertEqual(f.read(), "precious")
        self.assertTrue(any(e["event"] == "candidate" for e in events) or results, run.stderr)


main(as_root=True)
