#!/usr/bin/env python3
"""A tree made to stop, slow down or deceive: deep folders, large files, patterns without end, odd names, pipes, links, control tokens."""
import json
import os
import shutil
import signal
import struct
import subprocess
import time

from kit import KVIST, NOBODY, PATIENCE, Hostile, call, main

LIST = '<tools>{"name": "list", "arguments": {}}</tools>'
ENDLESS = "(.*)(.*)(.*)(.*)(.*)(.*)(.*)[0-9]{9}"


def all_of(folder):
    """Names, identities and texts of its files."""
    found = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as f:
            found.append((name, os.fstat(f.fileno()).st_ino, f.read()))
    return found


class Tree(Hostile):
    def test_folders_a_hundred_deep(self):
        path = self.tree
        for i in range(130):
            path = os.path.join(path, "d")
            os.mkdir(path)
            with open(os.path.join(path, "f.txt"), "w") as f:
                f.write({1: "needle one\n", 2: "needle two\n"}.get(i, f"needle {i}\n"))
        self.put(".gitignore", "d/d/f.txt\n")
        run, _, results = self.ask(call("search", query="needle two") + call("search", query="needle one") + call("search", query="needle 98") +
                                   call("search", query="needle 99") + "answer Done.\n", "plan")
        self.assertEqual([r["status"] for r in results], ["ok", "failed", "failed", "failed"], run.stdout)
        self.assertIn("d/d/d/f.txt:1: needle two", results[0]["text"])
        self.assertIn("99 folders", run.stdout)

    def test_pipes_where_git_has_files(self):
        """An archive can hold them; whoever opens one waits for ever, plain git too."""
        script = call("read", path="src/one.c") + call("edit", "<<<<<<< OLD\n2 * x\n=======\n3 * x\n>>>>>>> NEW", path="src/one.c") + "answer Done.\n"
        for name in (".git/config", ".git/index", ".git/info/exclude", ".git/refs/heads/main", ".git/objects/info/alternates", ".gitignore",
                     "src/.gitignore", "new/folder/.gitignore"):
            path, kept = self.path(name), None
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if os.path.lexists(path):
                kept = os.path.join(self.folder, "kept")
                os.rename(path, kept)
            self.git("status", check=False) if kept is None else None  # the control of this loop: nothing else is in its way
            os.mkfifo(path)
            run, events, results = self.ask(script, "edits")
            self.assertEqual(results[0]["status"], "ok", (name, results))
            self.assertIn("is a pipe or a device", run.stdout + run.stderr, name)
            os.remove(path)
            if kept:
                os.rename(kept, path)
        os.mkfifo(self.path("pipe"))  # any other pipe is the tree's own business
        run, _, results = self.ask(script, "edits")
        self.assertNotIn("is a pipe or a device", run.stdout + run.stderr)

    def test_pipes_that_a_command_moves(self):
        """It may make none where there is a sandbox, but lay one that is there elsewhere."""
        waits = "would wait for it"
        for name, lay, told in (("src/.gitignore", "mv pipe", waits), ("node_modules/x/.gitignore", "mv pipe", waits),
                                (".gitattributes", "mv pipe", waits),
                                (".git/refs/heads/pipe", "ln -s ../../../pipe", "a link where git writes")):
            if not self.has("pipe"):
                os.mkfifo(self.path("pipe"))
            command = f"mkdir -p {os.path.dirname(name) or '.'}; {lay} {name}; touch src/one.c src/two.c"
            run, _, results = self.ask(call("shell", command=command) + call("list") + call("git", op="status") + "answer Done.\n", "all")
            self.assertEqual([r["status"] for r in results], ["ok"] * 3, (name, results))
            self.assertIn("src/two.c", results[1]["text"])
            self.assertIn(told, run.stdout + run.stderr, name)
            self.assertFalse(self.has(name), name)

    def test_pipes_where_few_look(self):
        for name in ("node_modules/x/.gitignore", "modules/.gitignore", "ab/.gitignore", "/".join("d" * 40) + "/.gitignore",
                     ".git/modules/sub/HEAD"):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            os.mkfifo(self.path(name))
            run, _, results = self.ask(call("list") + "answer Done.\n", "plan")
            self.assertEqual(results[0]["status"], "ok", (name, results))
            self.assertIn("is a pipe or a device", run.stdout + run.stderr, name)
            os.remove(self.path(name))

    def test_texts_of_git_that_are_holes_of_gigabytes(self):
        """libgit2 reads them whole; a sparse file costs its author nothing."""
        script = call("list") + call("git", op="status") + "answer Done.\n"
        for name in (".gitignore", "src/.gitignore", ".git/HEAD", ".git/refs/heads/main", ".git/info/exclude", ".git/objects/info/alternates",
                     ".git/commondir"):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            old = self.get(name) if self.has(name) else None
            with open(self.path(name), "ab") as f:
                f.truncate(1 << 38)  # more than there is memory: who reads it fails or never ends
            run, _, results = self.ask(script, "plan")
            self.assertEqual(results[0]["status"], "ok", (name, results))
            self.assertIn("no file that git makes", run.stdout + run.stderr, name)
            os.remove(self.path(name))
            if old is not None:
                self.put(name, old)
        for name in (".git/index.old", ".git/objects/pack/pack-x.pack", "large"):  # the control: what may be large
            with open(self.path(name), "wb") as f:
                f.truncate(1 << 38)
        run, _, results = self.ask(script, "plan")
        self.assertNotIn("no file that git makes", run.stdout + run.stderr)

    def test_a_configuration_without_end(self):
        """It is read many times before a request is answered."""
        own = self.get(".git/config")
        for n, is_used in ((10000, True), (400000, False)):  # as many branches as a person might have; 8 MB
            self.put(".git/config", own + b"".join(b'[s "%d"]\n\tk = v\n' % i for i in range(n)))
            run, _, results = self.ask(call("git", op="log") + "answer Done.\n", "plan")
            self.assertEqual(results[0]["status"], "ok" if is_used else "refused", run.stderr)
            self.assertEqual("git cannot be used here" in run.stdout, not is_used)
        self.put(".git/config", own)

    def test_a_configuration_that_includes_itself_on_a_condition(self):
        """git stops at a condition that does not hold; who looks behind it must know what was read."""
        loop = '[includeIf "gitdir:/nowhere/"]\n\tpath = %s\n'
        own = self.get(".git/config")
        self.put(".git/config", own + (loop % "a").encode())
        for text in ("", loop % "a", loop % "a" + loop % "b"):
            self.put(".git/a", text)
            self.put(".git/b", loop % "a" if "b" in text else "")
            self.assertEqual(self.git("status").returncode, 0)  # the control: git is held up by none of them
            _, _, results = self.ask(call("shell", command="true") * 2 + "answer Done.\n", "all")
            self.assertEqual([r["status"] for r in results], ["ok", "ok"])

    def test_texts_of_git_that_a_command_made_so(self):
        for name in ("src/.gitignore", ".git/info/exclude", ".git/HEAD"):
            old = self.get(name) if self.has(name) else None
            run, _, results = self.ask(call("shell", command=f"truncate -s 3G {name}; touch src/two.c") + call("list") + "answer Done.\n", "all")
            self.assertEqual(results[1]["status"], "ok", (name, results))
            self.assertFalse(self.has(name) and os.path.getsize(self.path(name)) > 1 << 30, (name, results))
            if old is not None:
                self.put(name, old)

    def test_patterns_that_git_never_ends_to_match(self):
        deep, bomb = "a/" * 60, "**/" + "a/**/" * 12 + "b\n"
        self.put(deep + "f", "x")
        self.put("src/.gitignore", bomb)  # harmless there: nothing lies deep
        self.git("status")
        self.put("src/" + deep + "f", "x")
        with self.assertRaises(subprocess.TimeoutExpired):  # the control
            subprocess.run(["git", "-C", self.tree, "status"], stdout=subprocess.DEVNULL, timeout=2)
        script = call("list") + call("git", op="status") + "answer Done.\n"
        for name in ("src/.gitignore", "src/.gitattributes", ".git/info/exclude", ".git/info/attributes"):
            self.put(name, bomb)
            run, _, results = self.ask(script, "plan")
            self.assertEqual(results[0]["status"], "ok", (name, results))
            self.assertIn("patterns that never end", run.stdout + run.stderr, name)
            os.remove(self.path(name))
        made = "printf '" + bomb.strip() + "' > .gitignore; printf '" + bomb.strip() + "' > src/.gitignore"
        _, _, results = self.ask(call("shell", command=made) + script, "all")
        self.assertEqual([r["status"] for r in results], ["ok"] * 3, results)
        self.assertFalse(self.has(".gitignore") or self.has("src/.gitignore"))
        self.put(".gitignore", "**/a/**/b/**/c/**\n")  # what people write
        run, _, results = self.ask(script, "plan")
        self.assertEqual([r["status"] for r in results], ["ok"] * 2, results)

    def test_rules_that_cost_more_than_anybody_waits_for(self):
        """Few stars a line, but many lines for many paths, and rules written in their place further down, by whomever."""
        deep = "src/" + "a/" * 60
        bomb = "".join("**/a/**/a/**/a/**/no%d\n" % i for i in range(400))
        for i in range(300):
            self.put(deep + f"f{i}", "x")
        self.put("src/a/a/.gitignore", "# nothing\n")
        self.git("ls-files", "-o", "--exclude-standard")
        self.put(".gitignore", bomb)
        with self.assertRaises(subprocess.TimeoutExpired):  # the control
            subprocess.run(["git", "-C", self.tree, "ls-files", "-o", "--exclude-standard"], stdout=subprocess.DEVNULL, timeout=2)
        look = call("list") + call("git", op="status") + "answer Done.\n"
        run, _, results = self.ask(look, "plan")
        self.assertEqual(results[0]["status"], "ok", results)
        self.assertIn("patterns that never end", run.stdout + run.stderr)
        os.remove(self.path(".gitignore"))
        run, _, results = self.ask(look, "plan")
        self.assertEqual([r["status"] for r in results], ["ok"] * 2, results)
        self.assertNotIn("patterns that never end", run.stdout + run.stderr)
        write = "python3 -c \"open('src/a/a/.gitignore', 'w').write(''.join('**/a/**/a/**/a/**/no%d\\n' % i for i in range(400)))\""
        _, _, results = self.ask(call("shell", command=write) + look, "all")
        self.assertEqual([r["status"] for r in results], ["ok"] * 3, results)
        self.assertIn("src/a/a/.gitignore", results[0]["text"])
        self.assertFalse(self.has("src/a/a/.gitignore"))
        lines = "".join(bomb.splitlines(True)[:100])
        script = self.script(call("write", lines, path="src/a/.gitignore") + "answer One.\nanswer Two.\n")
        run = self.kvist("--linear", "--mode", "edits", "--context", "off", "--max-tokens", "4000", "--fake-script", script, stdin="go\ngo on\n")
        self.assertIn("kvist goes on without git", run.stdout)
        self.assertIn("Two.", run.stdout)

    def test_undo_behind_what_was_planted_meanwhile(self):
        """Between the writing and the undoing links, pipes and folders come to stand in the way: nothing outside is written or waited for."""
        new = "int twice(int x)\n{\n    return x + x;\n}"
        write = call("read", path="src/one.c") + call("rewrite", new, path="src/one.c", name="twice") + "answer Done.\n"
        good, out = self.get("src/one.c"), os.path.join(self.folder, "out")
        plants = {"nothing": ":", "a linked folder": f"mv src was; ln -s {out} src", "a link": f"rm src/one.c; ln -s {out}/one.c src/one.c",
                  "a linked folder that has the text": f"cp src/one.c {out}/one.c; mv src was; ln -s {out} src",
                  "a pipe": "rm src/one.c; mkfifo src/one.c", "a folder": "rm src/one.c; mkdir -p src/one.c/x", "a file above": "rm -r src; echo > src",
                  "a second name": f"ln src/one.c {out}/two.c"}
        for plant, command in plants.items():
            with self.subTest(plant=plant):
                shutil.rmtree(out, ignore_errors=True)
                os.mkdir(out)
                subprocess.run(["rm", "-rf", self.path("src")], check=True)
                self.put("src/one.c", good)
                with open(os.path.join(out, "one.c"), "w") as f:
                    f.write("precious\n")
                _, events, _ = self.ask(write, "edits")
                self.assertIn(b"x + x", self.get("src/one.c"))
                subprocess.run(command, shell=True, cwd=self.tree, check=True)
                before = all_of(out)
                run = self.kvist("-p", "/undo", "--mode", "edits", "--resume", events[0]["id"], "--fake-script", self.script("answer Yes.\n"))
                self.assertEqual(before, all_of(out))
                if plant == "nothing":  # the control
                    self.assertEqual((run.returncode, self.get("src/one.c")), (0, good), run.stderr)
                else:
                    self.assertNotEqual(run.returncode, 0)
                    self.assertTrue(run.stderr.strip())
                shutil.rmtree(self.path("was"), ignore_errors=True)

    def test_pipes_that_the_configuration_includes(self):
        """libgit2 opens what is included with the configuration itself; so does plain git."""
        script = call("read", path="src/one.c") + call("shell", command="true") + "answer Done.\n"
        os.mkfifo(self.path("pipe"))
        self.put("deeper/two", "[include]\n\tpath = ../pipe\n")
        self.put("one", "# nothing\n[INCLUDE]PATH=\"deeper/t\\\nwo\" ; the next\n")
        own = self.get(".git/config")
        home = os.path.expanduser("~")
        for text in ("[include]\n\tpath = ../pipe\n", f"[include] path = {self.path('pipe')}\n", "[include]\n\tpath = ../one\n",
                     '[x]\n\ty = a\\\n[z]\n[includeIf "gitdir:]/"]\n\tpath = ../pipe\n', "[include]\n\tpath = /dev/zero\n",
                     "[include]\n\tpath = ~/" + os.path.relpath(self.path("pipe"), home) + "\n", "[include]\n\tpath = config\n" * 8):
            self.put(".git/config", own + text.encode())
            run, _, results = self.ask(script, "all")
            self.assertEqual([r["status"] for r in results], ["ok", "ok"], (text, results))
            self.assertIn("is a pipe or a device", run.stdout + run.stderr, text)
        self.put(".git/config", own)
        # A repository below is looked at before and after each command.
        self.git("init", "-q", self.path("sub"))
        self.put("sub/.git/config", self.get("sub/.git/config") + b"[include]\n\tpath = ../../pipe\n")
        run, _, results = self.ask(script, "all")
        self.assertEqual([r["status"] for r in results], ["ok", "ok"], results)
        # The person's own configuration may include a file of the tree, and a command may make a pipe of it.
        os.remove(self.path("sub/.git/config"))
        config = os.path.join(self.folder, "config", "git")
        os.makedirs(config)
        with open(os.path.join(config, "config"), "w") as f:
            f.write(f"[include]\n\tpath = {self.path('pipe')}\n")
        self.env["XDG_CONFIG_HOME"] = os.path.dirname(config)
        run, _, results = self.ask(script, "all")
        self.assertEqual([r["status"] for r in results], ["ok", "ok"], results)
        self.assertIn("is a pipe or a device", run.stdout + run.stderr)
        # The control: what is included and no pipe is in nobody's way, a tool's path neither.
        self.put("one", "[user]\n\tname = t\n")
        del self.env["XDG_CONFIG_HOME"]
        self.put(".git/config", own + b"[include]\n\tpath = ../one\n[difftool \"x\"]\n\tpath = ../pipe\n")
        run, _, results = self.ask(script, "all")
        self.assertNotIn("is a pipe or a device", run.stdout + run.stderr)

    def test_a_way_to_a_repository_that_is_no_line(self):
        os.rename(self.path(".git"), os.path.join(self.folder, "git"))
        self.put(".git", "gitdir: " + "x" * 5_000_000)
        run, _, results = self.ask(call("read", path="src/one.c") + "answer Done.\n", "plan")
        self.assertEqual(results[0]["status"], "ok")
        self.assertIn("no file that git makes", run.stdout + run.stderr)

    def test_a_commit_of_billions_of_files(self):
        """Ten trees that each name the one before ten times: git walks all that they unfold to, and kvist says that it is too much."""
        def git(*words, text=None):
            return subprocess.run(["git", "-C", self.tree, "-c", "user.name=t", "-c", "user.email=t@localhost", *words], input=text, text=True,
                                  stdout=subprocess.PIPE, check=True).stdout.strip()
        tree = git("mktree", text="".join(f"100644 blob {git('hash-object', '-w', 'src/one.c')}\tf{i}\n" for i in range(10)))
        for _ in range(9):
            tree = git("mktree", text="".join(f"040000 tree {tree}\td{i}\n" for i in range(10)))
        bomb, first = git("commit-tree", tree, "-m", "all of it"), git("rev-parse", "HEAD")
        asked = ({"op": "status"}, {"op": "diff"}, {"op": "show"}, {"op": "diff", "rev": f"{bomb}..{first}"}, {"op": "log"},
                 {"op": "show", "rev": bomb, "path": "d0/" * 9 + "f0"})
        look = "".join(call("git", **one) for one in asked) + "answer Done.\n"
        for head, status in ((first, "ok"), (bomb, "failed")):
            git("update-ref", "refs/heads/main", head)
            run, _, results = self.ask(look, "plan")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual([r["status"] for r in results], [status] * 3 + ["failed", "ok", "ok"], results)
            self.assertIn("more files differ", results[3]["text"])
        with self.assertRaises(subprocess.TimeoutExpired):  # the control: git goes on
            subprocess.run(["git", "-C", self.tree, "status", "--short"], stdout=subprocess.DEVNULL, timeout=5)

    def test_a_large_file_that_was_touched_is_not_read(self):
        size = 64 << 20
        with open(self.path("large.bin"), "wb") as f:
            f.truncate(size)
        self.git("add", "large.bin")
        self.git("commit", "-q", "-m", "large")
        os.utime(self.path("large.bin"), (1, 1))
        words = [KVIST, "-p", "Go.", "--json", "--mode", "plan", "--fake-script", self.script(f"answer {LIST}\nanswer Done.\n")]

        def read_by(*command):
            """Bytes that a command and its children read by read(2)."""
            run = subprocess.run(["sh", "-c", '"$@" >/dev/null; cat /proc/$$/io', "sh", *command], stdout=subprocess.PIPE, text=True,
                                 env=self.env, cwd=self.tree, timeout=PATIENCE)
            return int(run.stdout.split("rchar: ")[1].split()[0]) if "rchar: " in run.stdout else None

        control = read_by("cat", "large.bin")
        if control is None or control < size:
            self.skipTest("this system does not count what is read")
        self.assertLess(read_by(*words), size)

    def test_git_status_is_still_told(self):
        _, events, _ = self.ask("answer Done.\n", "plan")
        self.assertFalse(events[0]["branch"].endswith("*"), events[0])
        same = self.get("src/one.c")
        self.put("src/one.c", same)  # touched, the same: hashed, and clean
        _, events, _ = self.ask("answer Done.\n", "plan")
        self.assertFalse(events[0]["branch"].endswith("*"), events[0])
        for change in (lambda: self.put("src/one.c", same.replace(b"2", b"3")), lambda: os.remove(self.path("src/one.c")),
                       lambda: os.symlink("x", self.path("src/one.c")), lambda: os.chmod(self.path("src/one.c"), 0o755)):
            if os.path.lexists(self.path("src/one.c")):
                os.remove(self.path("src/one.c"))
            self.put("src/one.c", same)
            if change.__code__.co_names[:1] == ("os",) and "symlink" in change.__code__.co_names:
                os.remove(self.path("src/one.c"))
            change()
            _, events, _ = self.ask("answer Done.\n", "plan")
            self.assertTrue(events[0]["branch"].endswith("*"), self.git("status", "--short").stdout)

    def test_a_tracked_file_behind_a_linked_folder_is_not_read(self):
        """What lies there is no file of the tree: it is gone, as git says, and may be one that never ends."""
        other = os.path.join(self.folder, "other")
        shutil.copytree(self.path("src"), other)
        for folder in (self.path("src"), other):
            os.utime(os.path.join(folder, "one.c"), (1, 1))
        _, events, _ = self.ask("answer Done.\n", "plan")
        self.assertFalse(events[0]["branch"].endswith("*"), events[0])  # the control: touched, and hashed
        shutil.rmtree(self.path("src"))
        os.symlink(other, self.path("src"))
        self.assertIn(" D src/one.c", self.git("status", "--short").stdout)
        _, events, _ = self.ask("answer Done.\n", "plan")
        self.assertTrue(events[0]["branch"].endswith("*"), events[0])

    def endless_tree(self):
        for i in range(10):
            self.put(f"f{i}.txt", "words and more words that go on and on for a line\n" * 2000)
        return call("search", query=ENDLESS, regex=True) + "answer Done.\n"

    def test_a_pattern_without_end_is_given_up(self):
        _, _, results = self.ask(self.endless_tree(), "plan")
        self.assertEqual([r["status"] for r in results], ["refused"])
        self.assertIn("takes too long", results[0]["text"])

    def test_instructions_that_cannot_be_read_are_told_and_never_waited_for(self):
        def huge():
            self.put("AGENTS.md", "x")
            os.truncate(self.path("AGENTS.md"), 1 << 30)
        kinds = (huge, lambda: os.mkfifo(self.path("AGENTS.md")), lambda: os.symlink("/etc/passwd", self.path("AGENTS.md")),
                 lambda: os.symlink("/dev/zero", self.path("AGENTS.md")), lambda: os.mkdir(self.path("AGENTS.md")))
        for kind, make in enumerate(kinds):
            make()
            _, events, _ = self.ask("answer Done.\n", "plan")
            told = [e["text"] for e in events if e["event"] == "notice"]
            self.assertTrue(any(t.startswith("the project's instructions are not read: AGENTS.md ") for t in told), (kind, told))
            self.assertNotIn("root:", json.dumps(events))
            (os.rmdir if os.path.isdir(self.path("AGENTS.md")) else os.remove)(self.path("AGENTS.md"))
        for text in (None, "Be kind.\n"):  # the control
            if text:
                self.put("AGENTS.md", text)
            _, events, _ = self.ask("answer Done.\n", "plan")
            self.assertEqual([e["text"] for e in events if e["event"] == "notice" and "instructions" in e["text"]], [])
            self.assertEqual("Be kind." in json.dumps(events), bool(text))

    def test_a_nul_byte_hides_nothing_of_a_change(self):
        """The question's text would end there: below it could stand anything."""
        text = "int a;\n" + "/* filler */\n" * 800
        hidden = text + "/* \0 */\nint b;\n"
        for name, bytes_, status in (("late.c", hidden, "refused"), ("plain.c", hidden.replace("\0", "x"), "ok")):
            self.put(name, bytes_)
            _, _, results = self.ask(call("edit", "<<<<<<< OLD\nint b;\n=======\nint c;\n>>>>>>> NEW", path=name) + "answer Done.\n", "edits")
            _, _, results = self.ask(call("read", path=name, **{"from": 800}) + call("edit", "<<<<<<< OLD\nint b;\n=======\nint c;\n>>>>>>> NEW", path=name) +
                                     "answer Done.\n", "edits")
            self.assertEqual([r["status"] == "ok" for r in results], [status == "ok"] * 2, (name, results))
        self.assertEqual(self.get("late.c"), hidden.encode())

    def test_an_interrupt_ends_a_search(self):
        script = self.script(self.endless_tree() + call("search", query=ENDLESS + "{2}", regex=True) * 4)
        process = subprocess.Popen([KVIST, "-p", "Go.", "--json", "--mode", "plan", "--fake-script", script], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.env, cwd=self.tree, text=True)
        for line in process.stdout:
            if '"tool_call"' in line:
                process.send_signal(signal.SIGINT)
                break
        rest, _ = process.communicate(timeout=PATIENCE)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn('"status":"interrupted"', rest)

    def test_odd_kinds_of_files_are_told_and_never_waited_for(self):
        os.mkfifo(self.path("pipe"))
        os.symlink("/etc/passwd", self.path("link"))
        os.symlink(self.folder, self.path("out"))
        os.symlink("loop", self.path("loop"))
        secret = os.path.join(self.folder, "secret")
        with open(secret, "w") as f:
            f.write("marmalade\n")
        names = ("pipe", "link", "out/secret", "loop", "/etc/passwd", "../secret", secret, ".git/config", "src/../../secret", "/dev/stdin")
        _, _, results = self.ask("".join(call("read", path=name) for name in names[:6]) + "answer Done.\n", "plan")
        _, _, more = self.ask("".join(call("read", path=name) for name in names[6:]) + "answer Done.\n", "plan")
        results += more
        self.assertEqual(len(results), len(names))
        for name, r in zip(names, results):
            self.assertIn(r["status"], ("failed", "refused"), name)
            self.assertNotIn("marmalade", r["text"])
            self.assertNotIn("root:", r["text"])
        _, _, results = self.ask("".join(call("write", "x", path=name) for name in names[:6]) + "answer Done.\n", "edits")
        self.assertEqual({r["status"] for r in results}, {"refused", "failed"} & {r["status"] for r in results})
        with open(secret) as f:
            self.assertEqual(f.read(), "marmalade\n")

    def test_an_edit_opens_a_file_to_nobody_else(self):
        """Access lists: the folder's own would give the new file to a neighbour, the file's mask would give it to the group."""
        def entries(*them):
            return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in them)
        none, neighbour = 0xffffffff, (2, 6, NOBODY)
        wide = entries((1, 6, none), neighbour, (4, 6, none), (16, 6, none), (32, 0, none))
        narrow = entries((1, 6, none), neighbour, (4, 0, none), (16, 6, none), (32, 0, none))  # its owning group may do nothing
        edit = call("read", path="src/one.c") + call("edit", "<<<<<<< OLD\n    return 2 * x;\n=======\n    return x + x;\n>>>>>>> NEW",
                                                     path="src/one.c") + "answer Done.\n"
        first, name = self.get("src/one.c"), "system.posix_acl_access"
        for theirs in (None, narrow):
            self.put("src/one.c", first)
            os.chmod(self.path("src/one.c"), 0o660)
            try:
                if theirs:
                    os.setxattr(self.path("src/one.c"), name, theirs)
                os.setxattr(self.path("src"), "system.posix_acl_default", wide)
            except OSError as e:
                self.skipTest(f"no access lists here: {e}")
            self.put("src/copy.c", "")
            self.assertIn(name, os.listxattr(self.path("src/copy.c")))  # the control: a new file is the neighbour's too
            _, _, results = self.ask(edit, "edits")
            self.assertEqual([r["status"] for r in results], ["ok", "ok"])
            self.assertNotEqual(self.get("src/one.c"), first)
            now = os.getxattr(self.path("src/one.c"), name) if name in os.listxattr(self.path("src/one.c")) else None
            self.assertEqual(now, theirs)
            self.assertEqual(os.stat(self.path("src/one.c")).st_mode & 0o777, 0o660)

    def test_git_by_other_spellings(self):
        for name in (".git/hooks/x", ".GIT/hooks/x", ".git./hooks/x", "git~1/hooks/x", "src/../.git/hooks/x", ".git /hooks/x", "sub/.git/config"):
            _, _, results = self.ask(call("write", "#!/bin/sh", path=name) + "answer Done.\n", "edits")
            self.assertNotEqual(results[0]["status"], "ok", name)
            self.assertFalse(self.has(".git/hooks/x"), name)

    def test_a_file_that_changes_between_the_question_and_the_yes(self):
        """The person sees one text; what they say yes to is that text and no other."""
        script = self.script(call("read", path="src/one.c") +
                             call("rewrite", "int twice(int x)\n{\n    return x + x;\n}", path="src/one.c", name="twice") + "answer Done.\n")
        process = subprocess.Popen([KVIST, "--linear", "--mode", "ask", "--fake-script", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env=self.env, cwd=self.tree)
        process.stdin.write(b"Go.\n")
        process.stdin.flush()
        seen = b""
        while b"allow?" not in seen and b"[y]" not in seen:
            piece = os.read(process.stdout.fileno(), 4096)
            self.assertTrue(piece, seen)
            seen += piece
        other = b"int twice(int x)\n{\n    return 0; /* somebody else's work */\n}\n"
        self.put("src/one.c", other)
        time.sleep(0.6)  # a key that comes with the question is no answer to it
        process.stdin.write(b"y\n")
        process.stdin.flush()
        process.stdin.close()
        rest = process.stdout.read()
        process.wait(timeout=PATIENCE)
        process.stdout.close()
        self.assertEqual(self.get("src/one.c"), other, rest)

    def test_a_line_that_is_suggested_names_one_file(self):
        name = "a'; touch fired; '.txt"
        with open(self.path(name), "w") as f:
            f.truncate(64 << 20)
        _, _, results = self.ask(call("read", path=name) + "answer Done.\n", "plan")
        command = json.loads(results[0]["text"].split("Next: shell ")[1])["command"]
        subprocess.run(["sh", "-c", command], cwd=self.tree, stdout=subprocess.DEVNULL, check=True)
        self.assertFalse(self.has("fired"), command)
        subprocess.run(["sh", "-c", f"sed -n '1,40p' -- '{name}'"], cwd=self.tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertTrue(self.has("fired"))  # the control: in quotes only

    def test_names_that_are_no_text(self):
        for name in (b"new\nline.txt", b"esc\x1b[31m.txt", b"\xff\xfe.txt", "bidi\u202etxt.exe".encode(), b"-rf", b"a b'c\".txt"):
            with open(os.path.join(self.tree.encode(), name), "w") as f:
                f.write("needle\n")
        run, events, results = self.ask(call("search", query="needle") + call("list") + "answer Done.\n", "plan")
        self.assertEqual([r["status"] for r in results], ["ok", "ok"], run.stderr)
        for r in results:
            self.assertNotIn("\x1b", r["text"])
            self.assertNotIn("\u202e", r["text"])
        self.assertIn('"new\\nline.txt":1: needle', results[0]["text"])


main()
