"""Bad trees, bad models, bad state: a sentence, and nothing lost."""
import os
import shutil
import signal
import sqlite3
import subprocess
import time

from cli_case import KVIST, PATIENCE, Case, call, main


class Bad(Case):
    """Bad input gets a clear sentence, and nothing is lost (issue 3)."""

    def git(self, *words, check=True):
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-C", self.tree, *words], check=check,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def put(self, name, content):
        with open(os.path.join(self.tree, name), "wb") as f:
            f.write(content)

    def read(self, name):
        with open(os.path.join(self.tree, name), "rb") as f:
            return f.read()

    def play(self, script, *words, text="go", mode="edits"):
        """A request on this script; the run, its tool results, what notices and errors said."""
        with open(self.script, "w") as f:
            f.write(script + "answer Done.\n")
        run, events = self.ask(text, "--mode", mode, *words)
        said = " | ".join(e["text"] for e in events if e["event"] in ("notice", "error"))
        return run, [e for e in events if e["event"] == "tool_result"], said

    def session(self):
        return self.run_kvist("log", "list").stdout.split()[0]


class BadTrees(Bad):
    def test_a_tree_in_an_odd_state_works_and_says_so(self):
        self.git("checkout", "-q", "--detach")
        run, _, said = self.play("")
        self.assertEqual((run.returncode, "detached" in said), (0, True), said)
        self.git("checkout", "-q", "-b", "other")
        self.put("src/one.c", b"int other;\n")
        self.git("commit", "-qam", "other")
        self.git("checkout", "-q", "main")
        self.put("src/one.c", b"int mine;\n")
        self.git("commit", "-qam", "mine")
        self.git("merge", "other", check=False)
        run, _, said = self.play("")
        self.assertEqual((run.returncode, "merge" in said), (0, True), said)
        for words, part in ((["--bare"], "bare"), ([], "no commit")):
            path = os.path.join(self.folder, part)
            subprocess.run(["git", "init", "-q", *words, path], check=True)
            run, _, said = self.play("", "--dir", path)
            self.assertEqual((run.returncode, part in said), (0, True), said)
        for path in (os.path.join(self.folder, "none"), self.script):
            run = self.run_kvist("-p", "x", "--dir", path, "--fake-script", self.script)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(path, run.stderr)

    def test_odd_names_are_listed_and_links_are_not_followed(self):
        for name in (b"new\nline.c", b"bad\xff.c", b"\x1b[31mred.c"):
            with open(os.path.join(self.tree.encode(), name), "wb") as f:
                f.write(b"int x;\n")
        os.symlink("/etc/passwd", os.path.join(self.tree, "out.c"))
        os.symlink(self.folder, os.path.join(self.tree, "away"))
        os.mkfifo(os.path.join(self.tree, "pipe.c"))
        run, results, _ = self.play(call("list", {}) + call("read", {"path": "out.c"}) + call("read", {"path": "../script"}) +
                                    call("read", {"path": "pipe.c"}) + call("write", {"path": "away/evil"}, "x") +
                                    call("read", {"path": "new\nline.c"}))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual([r["status"] for r in results], ["ok", "refused", "refused", "refused", "refused", "ok"])
        self.assertIn('"new\\nline.c"', results[0]["text"])
        self.assertNotIn("\x1b", results[0]["text"])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "evil")))

    def test_binary_huge_and_odd_text(self):
        self.put("bin.dat", bytes(range(256)) * 20)
        self.put("crlf.c", b"int a(void)\r\n{\r\n\treturn 1;\r\n}\r\n")
        self.put("last.c", b"int last(void) { return 1; }")
        with open(os.path.join(self.tree, "huge.c"), "wb") as f:
            f.truncate(1 << 30)
        run, results, _ = self.play(
            call("read", {"path": "bin.dat"}) + call("write", {"path": "bin.dat"}, "x") + call("read", {"path": "huge.c"}) +
            call("read", {"path": "crlf.c"}) + call("rewrite", {"path": "crlf.c", "name": "a"}, "int a(void)\n{\n\treturn 2;\n}") +
            call("read", {"path": "last.c"}) + call("rewrite", {"path": "last.c", "name": "last"}, "int last(void) { return 2; }"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual([r["status"] for r in results], ["failed", "refused", "failed", "ok", "ok", "ok", "ok"], results)
        self.assertIn("binary", results[0]["text"])
        self.assertIn("binary", results[1]["text"])
        self.assertIn("1073741824", results[2]["text"])
        self.assertEqual(self.read("crlf.c"), b"int a(void)\r\n{\r\n\treturn 2;\r\n}\r\n")
        self.assertEqual(self.read("last.c"), b"int last(void) { return 2; }")

    def test_a_file_changed_by_hand_is_not_overwritten(self):
        self.play(call("read", {"path": "src/one.c"}))
        self.put("src/one.c", b"int twice(int x)\n{\n    return 3 * x;\n}\n")
        run, results, said = self.play(call("rewrite", {"path": "src/one.c", "name": "twice"}, "int twice(int x)\n{\n    return 0;\n}"),
                                       "--resume", self.session())
        self.assertIn("changed on disk", said)
        self.assertEqual(results[0]["status"], "refused")
        self.assertIn(b"3 * x", self.read("src/one.c"))


class BadModels(Bad):
    def test_a_model_that_loops_or_babbles_is_stopped(self):
        run, results, said = self.play(call("read", {"path": "src/one.c"}) * 9)
        self.assertEqual((run.returncode, len(results)), (0, 4))
        self.assertIn("same call", said)
        _, _, said = self.play("answer " + "again and again it says this. " * 500 + "\n")
        self.assertIn("circles", said)
        words = " ".join(str(i * i) for i in range(4000))
        _, _, said = self.play("answer " + words + "\n", "--max-tokens", "200")
        self.assertIn("limit of tokens", said)

    def test_broken_calls_are_answered(self):
        broken = "".join("answer <<END\n<tools>" + text + "</tools>\nEND\n" for text in (
            '{"name": "nosuch", "arguments": {}}', '{"name": "read", "arguments": {"path": 7}}', '{"name": "read"}'))
        run, results, _ = self.play(broken)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual([r["status"] for r in results], ["failed"] * 3)
        self.assertIn("nosuch", results[0]["text"])
        run, results, said = self.play('answer <<END\n<tools>{"name": "write", "arguments": {"path":</tools>\nEND\n')
        self.assertEqual((run.returncode, results), (0, []))
        self.assertIn("cannot be read", said)

    def test_a_full_context_is_told_and_goes_on(self):
        run, _, said = self.play("", "--ctx", "1500")
        self.assertEqual(run.returncode, 4)
        self.assertIn("/compact", run.stderr + said)
        self.assertEqual(self.run_kvist("-p", "x", "--fake-script", self.script, "--ctx", "99999999999").returncode, 2)
        before = self.run_kvist("log", "list").stdout
        run, _, _ = self.play("", "--ctx", "100")
        self.assertEqual(run.returncode, 4)
        self.assertEqual(self.run_kvist("log", "list").stdout, before)

    def test_tools_that_never_end_or_print_without_end(self):
        run, results, _ = self.play(call("shell", {"command": "sleep 1000", "seconds": 1}) +
                                    call("shell", {"command": "yes | head -c 100000000"}), mode="all")
        if not results or results[0]["status"] == "denied":
            self.skipTest("commands cannot be confined here")
        self.assertEqual([r["status"] for r in results], ["timeout", "ok"], results)
        self.assertLess(len(results[1]["text"]), 100000)

    def test_an_interrupt_ends_the_tool_and_fails(self):
        with open(self.script, "w") as f:
            f.write(call("shell", {"command": "sleep 1000"}) + "answer Done.\n")
        process = subprocess.Popen([KVIST, "-p", "go", "--json", "--mode", "all", "--fake-script", self.script], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.env, cwd=self.tree, text=True)
        for line in process.stdout:
            if '"tool_call"' in line:
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
                break
        rest, _ = process.communicate(timeout=PATIENCE)
        if '"denied"' in rest or '"tool_call"' not in line:
            self.skipTest("commands cannot be confined here")
        self.assertEqual(process.returncode, 130)
        self.assertIn('"status":"interrupted"', rest)

    def test_odd_requests(self):
        for data, part in ((b"a\0b", "zero byte"), (b"a" * (1 << 20) + b"a", "larger")):
            run = subprocess.run([KVIST, "-p", "-", "--fake-script", self.script], input=data, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=self.env, cwd=self.tree, timeout=PATIENCE)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(part, run.stderr.decode())


class BadState(Bad):
    def log(self):
        return os.path.join(self.env["KVIST_HOME"], "data", "log.db")

    def refused(self, part):
        run = self.run_kvist("-p", "x", "--mode", "plan", "--fake-script", self.script)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn(part, run.stderr)

    def test_a_locked_newer_or_damaged_log_is_left_alone(self):
        self.play("")
        lock = sqlite3.connect(self.log())
        lock.execute("begin exclusive")
        self.refused("locked")
        lock.rollback()
        lock.execute("pragma user_version = 99")
        lock.commit()
        lock.close()
        self.refused("newer")
        for suffix in ("-wal", "-shm"):
            if os.path.exists(self.log() + suffix):
                os.remove(self.log() + suffix)
        foreign = b"This is no database. " * 500
        with open(self.log(), "wb") as f:
            f.write(foreign)
        self.refused("damaged")
        with open(self.log(), "rb") as f:
            self.assertEqual(f.read(), foreign)

    def test_damaged_rows_are_computed_again(self):
        self.play("")
        session = self.session()
        rows = os.path.join(self.env["KVIST_HOME"], "data", "sessions", session, "rows")
        with open(rows, "r+b") as f:
            f.truncate(os.path.getsize(rows) // 2)
        run, _, said = self.play("", "--resume", session)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("computed again", said)
        run, _, said = self.play("", "--resume", session)
        self.assertIn("none computed again", said)
        self.assertNotIn("interrupted", said)

    def test_one_session_has_one_process(self):
        self.play("")
        session = self.session()
        with open(self.script, "w") as f:
            f.write("answer Done.\n")
        first = subprocess.Popen([KVIST, "--linear", "--resume", session, "--fake-script", self.script], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.env, cwd=self.tree, text=True)
        for line in first.stdout:
            if "resumed" in line:
                break
        run = self.run_kvist("-p", "x", "--resume", session, "--mode", "plan", "--fake-script", self.script)
        deleted = self.run_kvist("log", "delete", session)
        first.communicate("")
        self.assertEqual((run.returncode, deleted.returncode), (1, 1))
        self.assertIn("another kvist", run.stderr)
        run = self.run_kvist("-p", "x", "--resume", session, "--mode", "plan", "--fake-script", self.script)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_killed_while_writing_undo_takes_back(self):
        script = call("read", {"path": "src/one.c"}) + call("rewrite", {"path": "src/one.c", "name": "twice"}, "int twice(int x)\n{\n    return x + x;\n}")
        script += "".join(call("write", {"path": f"new{i}.txt"}, "hello") for i in range(6)) + "answer Done.\n"
        before = self.read("src/one.c")
        for delay in (0.03, 0.06, 0.1, 0.15, 0.25):
            with open(self.script, "w") as f:
                f.write(script)
            process = subprocess.Popen([KVIST, "-p", "go", "--mode", "edits", "--fake-script", self.script], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env=self.env, cwd=self.tree)
            time.sleep(delay)
            process.kill()
            process.wait()
            self.assertIn(self.read("src/one.c"), (before, before.replace(b"2 * x", b"x + x")))
            if self.git("status", "--short").stdout:
                run, _ = self.ask("/undo", "--mode", "edits", "--resume=")
                self.assertEqual((self.git("status", "--short").stdout, self.read("src/one.c")), ("", before), run.stdout)

    def test_a_full_disk_is_told(self):
        if os.path.exists("/dev/full"):
            with open("/dev/full", "w") as full:
                run = subprocess.run([KVIST, "-p", "x", "--mode", "plan", "--fake-script", self.script], stdout=full,
                                     stderr=subprocess.PIPE, text=True, env=self.env, cwd=self.tree, timeout=PATIENCE)
            self.assertEqual(run.returncode, 1)
            self.assertIn("output", run.stderr)
        home = os.path.join(self.folder, "small")
        os.mkdir(home)
        inside = f'mount -t tmpfs -o size=64k none "{home}" && exec "$@"'
        command = ["unshare", "-rm", "sh", "-c", inside, "sh"]
        if not shutil.which("unshare") or subprocess.run([*command, "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no mount namespace for a small disk")
        env = dict(self.env, KVIST_HOME=home)
        run = subprocess.run([*command, KVIST, "-p", "x", "--mode", "plan", "--fake-script", self.script], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=env, cwd=self.tree, timeout=PATIENCE)
        self.assertIn("full", run.stderr)
        # A log that is there, on a disk that has filled up since.
        filled = f'"$1" -p x --mode plan --fake-script "$2" >/dev/null 2>&1; cat /dev/zero >"{home}/fill" 2>/dev/null; "$1" log list'
        command[4] = inside.replace("64k", "2m")
        run = subprocess.run([*command, "sh", "-c", filled, "sh", KVIST, self.script], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, env=env, cwd=self.tree, timeout=PATIENCE)
        self.assertEqual(run.returncode, 1)
        self.assertIn("disk is full", run.stderr)


if __name__ == "__main__":
    main()
