#!/usr/bin/env python3
"""A log that somebody changed: numbers that are used as places, sessions that came from each other, tables that are none of kvist's.
Whoever goes on with one, looks at it or computes it again gets a sentence, and memory that is not ours is never written."""
import ctypes
import ctypes.util
import glob
import json
import os
import shutil
import sqlite3
import struct
import unittest

from kit import SHORT, SMALL, Hostile, call, main

NUMBERS = ((1 << 32) - 1, (1 << 32) - 2, 3000000000, -1, 1 << 62)


class Logged(Hostile):
    """The session is made once; each other test of the class gets its files again, at the same place."""

    def setUp(self):
        made = self.__class__.__dict__.get("made")
        if made:
            self.__dict__.update(made)
            shutil.copytree(self.aside, self.folder, symlinks=True)
            return
        super().setUp()
        self.make()
        self.data, self.good, self.aside = os.path.join(self.home, "data"), os.path.join(self.folder, "good"), self.folder + "-aside"
        shutil.copytree(self.data, self.good)
        shutil.copytree(self.folder, self.aside, symlinks=True)
        self.__class__.made = {name: vars(self)[name] for name in ("folder", "tree", "home", "env", "session", "data", "good", "aside")}

    @classmethod
    def tearDownClass(cls):
        if "made" in cls.__dict__:
            shutil.rmtree(cls.made["aside"], ignore_errors=True)

    def change(self, what, rows=True):
        """The session as it was, but for `what`; without its rows all of the log is executed again."""
        shutil.rmtree(self.data)
        shutil.copytree(self.good, self.data)
        db = sqlite3.connect(os.path.join(self.data, "log.db"))
        what(db)
        db.commit()
        db.close()
        for name in [] if rows else glob.glob(os.path.join(self.data, "sessions", "*", "rows*")):
            os.remove(name)

    def set_member(self, event, path, value):
        def what(db):
            row, text = db.execute("SELECT rowid, json FROM events WHERE type = ? AND unpacked = 0 ORDER BY seq DESC LIMIT 1", (event,)).fetchone()
            whole = json.loads(text)
            at = whole
            for name in path[:-1]:
                at = at[name]
            at[path[-1]] = value
            db.execute("UPDATE events SET json = ? WHERE rowid = ?", (json.dumps(whole).encode(), row))
        return what


class Log(Logged):
    def make(self):
        _, events, _ = self.ask(call("write", "hello", path="new.txt") + "answer Done.\n", "edits")
        self.session = events[0]["id"]
        self.go_on("Second", call("read", path="src/one.c") + "answer Two.\n")
        self.go_on("/rewind 2", "answer Two.\n")
        self.go_on("Third", "answer Three.\n")

    def go_on(self, text, script="answer Yes.\n"):
        return self.kvist("-p", text, "--mode", "edits", "--resume", self.session, "--fake-script", self.script(script))

    def look(self):
        for words in (["log", "list"], ["log", "show", self.session], ["log", "kv", self.session], ["log", "export", "--markdown", self.session],
                      ["replay", self.session, "--text", "80x24"]):
            run = self.kvist(*words)
            self.assertIn(run.returncode, (0, 1, 2), (words, run.stderr))
            if run.returncode:
                self.assertTrue(run.stderr.strip(), words)

    def test_numbers_that_are_used_as_places(self):
        for event, path in (("user", ["turn"]), ("rewind", ["turn"]), ("rewind", ["n"]), ("append", ["from"]), ("append", ["n"])):
            for number in NUMBERS:
                with self.subTest(event=event, path=path, number=number):
                    self.change(self.set_member(event, path, number), rows=number % 2 == 0)
                    run = self.go_on("Go.")
                    self.assertEqual(run.returncode, 1, run.stderr)
                    self.assertIn("the session cannot be gone on with", run.stderr)
                    self.look()
        self.change(lambda db: None, rows=False)  # the control: the log as it was, executed again
        self.assertEqual(self.go_on("/rewind 2").returncode, 0)

    def test_other_numbers_and_missing_texts(self):
        for event, path, value in (("snapshot", ["n"], 1 << 62), ("ledger", ["n"], -1), ("token", ["id"], (1 << 31) - 1), ("token", ["index"], 1 << 40),
                                   ("append", ["ids", 0], (1 << 31) - 1), ("append", ["ids", 0], -1), ("append", ["lanes"], -1), ("user", ["text"], None),
                                   ("answer", ["text"], None), ("notice", ["text"], 7), ("tool_result", ["text"], None)):
            with self.subTest(event=event, path=path, value=value):
                self.change(self.set_member(event, path, value), rows=False)
                run = self.go_on("Go.")
                self.assertIn(run.returncode, (0, 1, 2, 4), run.stderr)
                self.look()

    def test_rows_that_no_memory_holds(self):
        """A set of tokens a lane: both numbers are claims."""
        def claim(n_lanes, n):
            def what(db):
                for event, member, value in (("session", "n_lanes", n_lanes), ("append", "n", n)):
                    row, text = db.execute("SELECT rowid, json FROM events WHERE type = ? AND unpacked = 0 ORDER BY seq LIMIT 1", (event,)).fetchone()
                    db.execute("UPDATE events SET json = ? WHERE rowid = ?", (json.dumps({**json.loads(text), member: value}).encode(), row))
            return what
        for n_lanes, n, sentence in ((65536, (1 << 24) - 1, "more rows than a session can have"), (65536, 64, None)):  # the second is the control
            self.change(claim(n_lanes, n))
            run = self.kvist("log", "kv", self.session)
            self.assertEqual(sentence is not None and sentence in run.stderr, sentence is not None, run.stderr)
            self.look()

    def test_sessions_that_came_from_each_other(self):
        def what(db):
            db.execute("PRAGMA foreign_keys = OFF")
            db.execute("INSERT INTO sessions SELECT 'other', id, root, model, title, started_ms, updated_ms FROM sessions")
            db.execute("UPDATE sessions SET parent = 'other' WHERE id = ?", (self.session,))
        self.change(what)
        said = self.kvist("log", "list").stdout
        self.assertEqual((said.count(self.session), said.count("other")), (1, 1), said)  # neither is hidden, and the list ends

    def test_tables_that_are_none_of_ours(self):
        endless = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT '" + self.session +
                   "' AS session, x AS seq, 1 AS turn, 'user' AS type, CAST('{\"event\":\"notice\",\"text\":\"x\"}' AS BLOB) AS json, 0 AS unpacked, NULL AS blob FROM c")
        attacks = ("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM sessions; END",
                   "CREATE TRIGGER t BEFORE UPDATE ON turns BEGIN DELETE FROM events; END",
                   "ALTER TABLE events RENAME TO was; CREATE VIEW events AS " + endless,
                   "CREATE TABLE more(x)")
        for attack in attacks:
            with self.subTest(attack=attack):
                self.change(lambda db, sql=attack: db.executescript(sql))
                for words in (["log", "show", self.session], ["log", "list"], ["what-if", self.session, "--free"]):
                    run = self.kvist(*words)
                    self.assertEqual(run.returncode, 1, (words, run.stderr))
                    self.assertIn("other tables, views or triggers", run.stderr)
                self.assertNotEqual(self.go_on("Go.").returncode, 0)
        self.change(lambda db: db.executescript(attacks[0]))  # the control: SQLite does what such a trigger says
        db = sqlite3.connect(os.path.join(self.data, "log.db"))
        db.execute("INSERT INTO events SELECT session, seq + 1000, turn, type, json, unpacked, blob FROM events LIMIT 1")
        self.assertEqual(db.execute("SELECT COUNT(*) FROM sessions").fetchone()[0], 0)
        db.close()

    def test_a_pipe_or_another_users_log(self):
        path = os.path.join(self.data, "log.db")
        for name in glob.glob(path + "*"):
            os.remove(name)
        os.mkfifo(path)
        for words in (["log", "list"], ["replay", self.session, "--text", "80x24"]):
            run = self.kvist(*words)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn("neither a file nor a folder", run.stderr)
        os.remove(path)
        if os.geteuid() == 0:
            shutil.copy(os.path.join(self.good, "log.db"), path)
            os.chown(path, 65534, 65534)
            run = self.kvist("log", "list")
            self.assertIn("belongs to another user", run.stderr)

    @staticmethod
    def bytes_of(path):
        if not os.path.exists(path):
            return None
        with open(path, "rb") as f:
            return f.read()

    def test_a_link_in_its_place(self):
        """To somebody's file, to another log, to nothing: none is written, none is made."""
        path, precious = os.path.join(self.data, "log.db"), os.path.join(self.folder, "precious")
        for to, text in ((precious, "precious\n"), (os.path.join(self.good, "log.db"), None), (precious + "-new", None)):
            with self.subTest(to=to):
                for name in glob.glob(path + "*"):
                    os.remove(name)
                if text:
                    with open(to, "w") as f:
                        f.write(text)
                before = self.bytes_of(to)
                os.symlink(to, path)
                run = self.kvist("-p", "Go.", "--mode", "edits", "--fake-script", self.script("answer Yes.\n"))
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertIn("links", run.stderr)
                self.assertEqual(self.bytes_of(to), before)
        os.remove(path)
        shutil.copy(os.path.join(self.good, "log.db"), path)  # the control: the same bytes as a file
        self.assertEqual(self.go_on("Go.").returncode, 0)

    def journal(self, path):
        """A rollback journal, of no page, that ends with a file's name, which SQLite removes when it has played it back."""
        mark, name = bytes.fromhex("d9d505f920a163d7"), path.encode()
        end = struct.pack(">II", len(name), sum(struct.unpack(f"{len(name)}b", name)) & 0xffffffff) + mark
        return (mark + struct.pack(">IIIII", 0, 0x1234, os.path.getsize(os.path.join(self.data, "log.db")) // 4096, 512, 4096)).ljust(512, b"\0") + \
            struct.pack(">I", 0x40000000 // 4096 + 1) + name + end

    def test_a_journal_that_names_another_file(self):
        precious, log = os.path.join(self.folder, "precious"), os.path.join(self.data, "log.db")
        for is_control in (False, True):
            shutil.rmtree(self.data)
            shutil.copytree(self.good, self.data)
            for name in glob.glob(log + "-*"):
                os.remove(name)
            with open(precious, "w") as f:
                f.write("precious\n")
            with open(log + "-journal", "wb") as f:
                f.write(self.journal(precious))
            if is_control:  # SQLite alone
                db = sqlite3.connect(log)
                db.execute("SELECT COUNT(*) FROM sessions").fetchone()
                db.close()
                self.assertFalse(os.path.exists(precious))
                continue
            for words in (["log", "list"], ["log", "show", self.session], ["replay", self.session, "--text", "80x24"], ["what-if", self.session, "--free"]):
                run = self.kvist(*words)
                self.assertEqual(run.returncode, 1, words)
                self.assertIn("names another file", run.stderr)
            self.assertEqual(self.go_on("Go.").returncode, 1)
            self.assertTrue(os.path.exists(precious))

    def test_what_lies_beside_it(self):
        log, precious = os.path.join(self.data, "log.db"), os.path.join(self.folder, "precious")
        with open(precious, "w") as f:
            f.write("precious\n")
        for ending in ("-journal", "-wal", "-shm"):
            for kind, make in (("pipe", os.mkfifo), ("folder", os.mkdir), ("link", lambda path: os.symlink(precious, path)),
                               ("link to nowhere", lambda path: os.symlink(precious + "-new", path))):
                with self.subTest(ending=ending, kind=kind):
                    shutil.rmtree(self.data)
                    shutil.copytree(self.good, self.data)
                    for name in glob.glob(log + "-*"):
                        os.remove(name)
                    make(log + ending)
                    for run in (self.kvist("log", "list"), self.go_on("Go.")):
                        self.assertEqual(run.returncode, 1, run.stderr)
                        self.assertIn(ending + " is no file", run.stderr)
                    with open(precious) as f:
                        self.assertEqual(f.read(), "precious\n")
                    self.assertFalse(os.path.exists(precious + "-new"))
        shutil.rmtree(self.data)
        shutil.copytree(self.good, self.data)
        self.assertEqual((self.kvist("log", "list").returncode, self.go_on("Go.").returncode), (0, 0))  # the control


def pack(text):
    """A zstd frame, as the log packs a long event."""
    z = ctypes.CDLL(ctypes.util.find_library("zstd"))
    z.ZSTD_compressBound.restype = z.ZSTD_compress.restype = ctypes.c_size_t
    z.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    z.ZSTD_compress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    room = z.ZSTD_compressBound(len(text))
    out = ctypes.create_string_buffer(room)
    return ctypes.string_at(out, z.ZSTD_compress(out, room, text, len(text), 3))


@unittest.skipUnless(os.path.exists(SMALL), "scripts/fetch small")
class WhatIf(Logged):
    """A session of a real model under a budget, computed again from a log that somebody changed."""

    def make(self):
        self.env["KVIST_MODEL"] = SHORT
        words = ["--model", SHORT, "--json", "--max-tokens", "8", "--mode", "plan", "--context", "off", "--threads", "1", "--kv-budget", "1664"]
        run = self.kvist("-p", "What does twice do? " * 4, *words)
        self.session = json.loads(run.stdout.splitlines()[0])["id"]
        for text in ("And where is it?", "/rewind 2", "Say more of it."):
            self.assertEqual(self.kvist("-p", text, *words, "--resume", self.session).returncode, 0)

    def compute(self, *words):
        return self.kvist("what-if", self.session, "--kv-budget", "1800", "--threads", "1", *words)

    def add(self, event, text, packed=False):
        def what(db):
            seq = db.execute("SELECT MAX(seq) FROM events WHERE session = ?", (self.session,)).fetchone()[0]
            db.execute("INSERT INTO events VALUES(?, ?, 2, ?, ?, ?, NULL)",
                       (self.session, seq + 1, event, pack(text) if packed else text, len(text) if packed else 0))
        return what

    def test_control(self):
        for words in ((), ("--from", "1", "--free")):
            self.change(lambda db: None)
            self.assertEqual(self.compute(*words).returncode, 0)

    def test_numbers_that_are_used_as_places(self):
        said = {("token", "id"): "is not in the vocabulary", ("token", "index"): "lacks tokens", ("append", "from"): "lacks tokens",
                ("user", "turn"): None, ("rewind", "n"): None, ("session", "n_ctx"): None, ("session", "until"): None, ("turn_end", "turn"): None}
        for (event, member), sentence in said.items():
            for number in ((1 << 32) - 1, 1 << 62) if sentence is None else ((1 << 31) - 1,):
                with self.subTest(event=event, member=member, number=number):
                    self.change(self.set_member(event, [member], number))
                    run = self.compute(*(("--from", "1", "--free") if number > 1 << 32 else ()))
                    self.assertIn(run.returncode, (1, 2) if sentence else (0, 1, 2, 4), run.stderr)
                    self.assertIn(sentence or "", run.stderr)

    def test_other_numbers_and_missing_texts(self):
        for event, path, value in (("append", ["segment"], {"queries": [1 << 40, -1, "x", 3, 2, 1], "bulk": 1 << 40, "of": (1 << 32) - 1, "whole": True}),
                                   ("append", ["lens"], [1 << 40, -1]), ("append", ["ids"], []), ("append", ["text"], None), ("token", ["text"], None)):
            with self.subTest(event=event, path=path):
                self.change(self.set_member(event, path, value))
                run = self.compute()
                self.assertIn(run.returncode, (0, 1, 2, 4), run.stderr)
        for event in ("append", "token", "turn_end", "session"):
            with self.subTest(missing=event):
                self.change(lambda db, type=event: db.execute("DELETE FROM events WHERE type = ?", (type,)))
                run = self.compute("--from", "1", "--free")
                self.assertIn(run.returncode, (0, 1, 2, 4), run.stderr)
                self.assertTrue(run.returncode == 0 or run.stderr.strip())

    def test_small_bytes_that_are_many_values(self):
        many = b'{"event":"append","turn":2,"from":0,"n":1,"origin":"tool","ids":[' + b"1," * (5 << 20) + b"1]}"
        self.change(self.add("append", many, packed=True))
        self.assertLess(len(pack(many)), 1 << 16)  # the control: a file of nothing
        for words in (["what-if", self.session, "--kv-budget", "1800"], ["replay", self.session, "--text", "80x24"], ["log", "show", self.session]):
            run = self.kvist(*words)
            self.assertIn(run.returncode, (0, 1), run.stderr)
            if words[0] != "log":
                self.assertIn("more values than are read", run.stderr)
        self.change(self.add("append", b'{"x":"' + b"a" * (65 << 20) + b'"}', packed=True))
        self.assertIn("an event claims", self.compute().stderr)

    def test_a_comparison_that_names_itself(self):
        self.change(lambda db: None)
        self.assertEqual(self.compute().returncode, 0)
        db = sqlite3.connect(os.path.join(self.data, "log.db"))
        child = db.execute("SELECT session FROM events WHERE type = 'what_if'").fetchone()[0]
        for parent in (child, None, "", "\x1b[31m"):
            text = json.loads(db.execute("SELECT json FROM events WHERE type = 'what_if'").fetchone()[0])
            text["parent"] = parent
            db.execute("UPDATE events SET json = ? WHERE type = 'what_if'", (json.dumps(text).encode(),))
            db.commit()
            for words in (["replay", child, "--text", "80x24"], ["log", "list"], ["what-if", child]):
                run = self.kvist(*words)
                self.assertIn(run.returncode, (0, 1, 2), (parent, words, run.stderr))
        db.close()


main(as_root=True)
