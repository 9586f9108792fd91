"""Between a question and its yes somebody else changes what it is about: what they wrote stays, and nothing else happens either.

For everything that a person says yes to. The control: without the change the yes does it.
"""
import ctypes
import os
import select
import shutil
import subprocess
import threading
import time

from kit import KVIST, PATIENCE, Hostile, call, main

OTHER = b"int twice(int x)\n{\n    return 0; /* somebody else's work */\n}\n"


class Between(Hostile):
    def setUp(self):
        super().setUp()
        self.put("src/two.c", "int twice(int x);\n\nint four(int x)\n{\n    return twice(twice(x));\n}\n")
        self.put("src/three.c", "int three(void)\n{\n    return 3;\n}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "two")

    def files(self):
        """What the tree holds, git's own files apart."""
        found = {}
        for folder, folders, names in os.walk(self.tree):
            folders[:] = [name for name in folders if name != ".git"]
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), self.tree)
                found[path] = self.get(path)
        return found

    def talk(self, lines, script, mode, between):
        """Sends the lines; at the last question something happens, then a yes. What was said."""
        process = subprocess.Popen([KVIST, "--linear", "--mode", mode, "--fake-script", self.script(script)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.env, cwd=self.tree)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        seen = b""
        process.stdin.write("".join(line + "\n" for line in lines).encode())
        process.stdin.flush()
        while b"allow? " not in seen:
            if not select.select([process.stdout], [], [], PATIENCE)[0]:
                process.kill()  # and what it said is shown
            piece = os.read(process.stdout.fileno(), 4096)
            if not piece:
                process.stdin.close()
            self.assertTrue(piece, seen.decode(errors="replace"))
            seen += piece
        self.asked = self.files()
        if between:
            between()
        process.stdin.write(b"y\n")
        process.stdin.close()
        rest = process.stdout.read()
        self.assertEqual(process.wait(timeout=PATIENCE), 0)
        return (seen + rest).decode(errors="replace")

    def check(self, *lines, script="answer Yes.\n", mode="ask", changes=(("src/one.c", OTHER),)):
        """Once without a change: then it happens. Then with each: then nothing does."""
        self.home = os.path.join(self.folder, "home-control")
        self.env["KVIST_HOME"] = self.home
        said = self.talk(lines, script, mode, None)
        self.assertNotEqual(self.files(), self.asked, said)
        for i, (name, text) in enumerate(changes):
            with self.subTest(lines=lines, name=name):
                self.git("reset", "-q", "--hard")
                self.git("clean", "-qfd")
                self.env["KVIST_HOME"] = os.path.join(self.folder, f"home-{i}")
                said = self.talk(lines, script, mode, lambda: self.put(name, text) if text is not None else os.remove(self.path(name)))
                wanted = dict(self.asked)
                wanted[name] = text
                if text is None:
                    del wanted[name]
                self.assertEqual(self.files(), wanted, said)

    CALLER = b"int twice(int x);\n\nint four(int x)\n{\n    return 4 * x + 0 * twice(x);\n}\n"

    def test_a_rename(self):
        self.check("/rename twice doubled", changes=(("src/one.c", OTHER), ("src/two.c", self.CALLER), ("src/two.c", None)))

    def test_a_move(self):
        self.check("/move three src/one.c", changes=(("src/one.c", OTHER), ("src/three.c", b"int three(void) { return 33; }\n")))

    def test_a_move_into_a_new_file(self):
        self.check("/move three src/new.c", changes=(("src/new.c", b"somebody else's\n"), ("src/three.c", b"int other;\n")))

    def test_a_deletion(self):
        self.check("/delete three", changes=(("src/three.c", b"int three(void) { return 33; }\n"), ("src/three.c", None)))

    def test_a_signature(self):
        self.check('/signature twice 2 0 "int more"', changes=(("src/one.c", OTHER), ("src/two.c", self.CALLER)))

    def test_a_new_file(self):
        self.check("Go.", script=call("write", "mine\n", path="new.txt") + "answer Done.\n", changes=(("new.txt", b"somebody else's\n"),))

    EDIT = call("read", path="src/one.c") + call("rewrite", "int twice(int x)\n{\n    return x + x;\n}", path="src/one.c", name="twice") + \
        "answer Done.\n"

    def test_an_edit(self):
        self.check("Go.", script=self.EDIT, changes=(("src/one.c", OTHER), ("src/one.c", None)))

    def test_a_rewind_with_its_files(self):
        self.check("Go.", "/rewind 1", script=self.EDIT, mode="edits", changes=(("src/one.c", OTHER), ("src/one.c", None)))

    def places(self):
        """What a place of the tree becomes while a question waits: the way to it a link, itself one, a pipe, a second name, git's own folder."""
        out, src = os.path.join(self.folder, "out"), self.path("src")
        def each(make):
            os.makedirs(out)
            for name in os.listdir(src):
                make(os.path.join(src, name), os.path.join(out, name))
        def linked(at, to):
            os.rename(at, to)
            os.symlink(to, at)
        def piped(at, _):
            os.remove(at)
            os.mkfifo(at)
        def git():
            shutil.rmtree(src)
            os.symlink(".git", src)
        def new():
            os.makedirs(out)
            for name in ("new.txt", "src/new.c"):
                os.symlink(os.path.join(out, "new"), self.path(name))
        return {"a linked folder": lambda: linked(src, out), "linked files": lambda: each(linked), "pipes": lambda: each(piped),
                "second names": lambda: each(os.link), "git's folder": git, "links to what is not there": new}

    def test_a_place_that_leads_elsewhere_by_the_yes(self):
        out, kept = os.path.join(self.folder, "out"), os.path.join(self.folder, "kept")
        shutil.copytree(self.tree, kept)
        requests = {"rename": ("/rename twice doubled", "answer Yes.\n"), "move": ("/move three src/new.c", "answer Yes.\n"), "delete": ("/delete three", "answer Yes.\n"),
                    "write": ("Go.", call("write", "mine\n", path="src/new.c") + "answer Done.\n"), "edit": ("Go.", self.EDIT)}
        free = {"delete": {"links to what is not there"}, "edit": {"links to what is not there"}, "rename": {"links to what is not there"},
                "write": {"linked files", "pipes", "second names"}}  # where the place that counts is as it was
        for kind, (line, script) in requests.items():
            for name in [None, *self.places()]:
                with self.subTest(kind=kind, name=name):
                    for folder in (self.tree, out):
                        shutil.rmtree(folder, ignore_errors=True)
                    shutil.copytree(kept, self.tree)
                    self.env["KVIST_HOME"] = os.path.join(self.folder, f"home-{kind}-{name}")
                    seen = []
                    def between():
                        if name:
                            self.places()[name]()
                        seen.append((self.looked_at(out), self.looked_at(self.tree)))
                    self.talk([line], script, "ask", between)
                    now = (self.looked_at(out), self.looked_at(self.tree))
                    self.assertEqual(now[0], seen[0][0])
                    if name and name not in free.get(kind, ()):
                        self.assertEqual(now[1], seen[0][1])
                    if not name:
                        self.assertNotEqual(now[1], seen[0][1])  # the control: the yes does something

    @staticmethod
    def looked_at(top):
        """Of each name below: where it leads, its text, or that it is something else; none is waited for. git's journals of a look apart."""
        found = {}
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    found[path] = os.readlink(path)
                elif os.path.isfile(path):
                    with open(path, "rb") as f:
                        found[path] = f.read()
                else:
                    found[path] = None
        return found

    def test_a_folder_that_is_a_link_now_and_then(self):
        """Exchanged all the time by somebody else: what is written lies in the tree or nowhere."""
        out, src, spare = os.path.join(self.folder, "out"), self.path("src"), self.path("spare")
        shutil.copytree(src, out)
        os.symlink(out, spare)
        before, libc, ends = self.looked_at(out), ctypes.CDLL(None), threading.Event()
        at, exchange, pause = -100, 2, 0
        def swap():
            while not ends.is_set():
                libc.renameat2(at, src.encode(), at, spare.encode(), exchange)
                time.sleep(pause)
        thread = threading.Thread(target=swap)
        thread.start()
        written = 0
        try:
            for i in range(100):  # ever slower, for a machine on which no write is as quick as that
                pause = i / 200
                if written and i >= 8:
                    break
                script = "".join(call("write", "mine\n", path=f"src/new{i}_{k}.txt") for k in range(6)) + "answer Done.\n"
                _, _, results = self.ask(script, "edits")
                written += sum(r["status"] == "ok" for r in results)
        finally:
            ends.set()
            thread.join()
        self.assertEqual(self.looked_at(out), before)
        for folder in (src, spare):
            if not os.path.islink(folder):
                self.assertEqual(sum(name.startswith("new") for name in os.listdir(folder)), written)
        self.assertGreater(written, 0)  # the control: it did find its way

    def test_others_that_write_at_the_same_time(self):
        """Six at once rename there and back: each does all of it or nothing, and no lock stays that would keep the next one out."""
        done = 0
        for _ in range(4):
            running = []
            for i in range(6):
                name, to = ("twice", "doubled") if i % 2 else ("doubled", "twice")
                path = os.path.join(self.folder, f"script-{i}")
                with open(path, "w") as f:
                    f.write(call("refactor", operation="rename", name=name, to=to, path="src/one.c") + "answer Done.\n")
                running.append(subprocess.Popen([KVIST, "-p", "Go.", "--json", "--mode", "edits", "--fake-script", path], stdout=subprocess.PIPE,
                                                stderr=subprocess.PIPE, env=self.env, cwd=self.tree))
            for one in running:
                said, _ = one.communicate(timeout=PATIENCE)
                done += b'"status":"ok"' in said
            names = {(b"twice" in text, b"doubled" in text) for name, text in self.files().items() if name in ("src/one.c", "src/two.c")}
            self.assertIn(names, ({(True, False)}, {(False, True)}))
            self.assertEqual(os.listdir(os.path.join(self.home, "data", "pending")), [])
        self.assertGreater(done, 0)  # the control

    def test_an_undo(self):
        """It asks nobody: what was changed since stays."""
        self.put("now", "")
        for changed in (False, True):
            self.git("reset", "-q", "--hard")
            self.env["KVIST_HOME"] = os.path.join(self.folder, f"home-{changed}")
            before = self.get("src/one.c")
            run, events, _ = self.ask(self.EDIT, "edits")
            self.assertNotEqual(self.get("src/one.c"), before)
            if changed:
                self.put("src/one.c", OTHER)
            self.kvist("-p", "/undo", "--mode", "edits", "--resume", events[0]["id"], "--fake-script", self.script("answer Yes.\n"))
            self.assertEqual(self.get("src/one.c"), OTHER if changed else before)

    def draft(self):
        """A message that no commit has yet: one of the last would be drafted anew."""
        self.drafts = getattr(self, "drafts", 0) + 1
        return f"answer Add number {self.drafts}\n"

    def test_a_commit(self):
        for between in (None, lambda: (self.put("src/one.c", OTHER), self.git("add", "-A"))):
            self.git("reset", "-q", "--hard")
            self.put("src/new.c", f"int new_one; /* {between} */\n")
            self.git("add", "-A")
            before = self.git("rev-parse", "HEAD").stdout
            self.env.update(GIT_AUTHOR_NAME="t", GIT_AUTHOR_EMAIL="t@localhost", GIT_COMMITTER_NAME="t", GIT_COMMITTER_EMAIL="t@localhost")
            said = self.talk(["/commit"], self.draft(), "ask", between)
            after = self.git("rev-parse", "HEAD").stdout
            self.assertEqual(before == after, between is not None, said)
            if between:
                self.assertEqual(self.get("src/one.c"), OTHER)
                self.assertIn("src/one.c", self.git("diff", "--cached", "--name-only").stdout)

    def stage(self):
        self.git("reset", "-q", "--hard")
        self.git("clean", "-qfd")
        self.staged = getattr(self, "staged", 0) + 1
        self.put("src/new.c", f"int new_{self.staged};\n")
        self.git("add", "-A")
        self.env.update(GIT_AUTHOR_NAME="Ada", GIT_AUTHOR_EMAIL="t@localhost", GIT_COMMITTER_NAME="t", GIT_COMMITTER_EMAIL="t@localhost")
        return self.git("rev-parse", "HEAD").stdout

    def hook(self, word):
        self.put(".git/hooks/pre-commit", f"#!/bin/sh\necho {word} >> '{self.folder}/hooks'\n")
        os.chmod(self.path(".git/hooks/pre-commit"), 0o755)

    def test_a_hook_and_the_configuration_of_a_commit(self):
        def configure():
            self.git("config", "core.hooksPath", "/nowhere")
        for between in (None, lambda: self.hook("second"), configure):
            before = self.stage()
            self.hook("first")
            said = self.talk(["/commit"], self.draft(), "ask", between)
            self.assertEqual(self.git("rev-parse", "HEAD").stdout == before, between is not None, said)
            self.assertEqual("while the question waited" in said, between is not None, said)
        with open(os.path.join(self.folder, "hooks")) as f:
            self.assertEqual(f.read(), "first\n")  # the control's; neither of the others ran

    def test_what_a_hook_runs_of_the_tree(self):
        """A hook runs outside of the box, and so does what it runs in turn: what of that changed in the session stands in the question."""
        evil = f"touch {self.folder}/evil\n"
        self.env.update(GIT_AUTHOR_NAME="Ada", GIT_AUTHOR_EMAIL="t@localhost", GIT_COMMITTER_NAME="t", GIT_COMMITTER_EMAIL="t@localhost")
        hooks = os.path.join(self.folder, "hooks")
        os.makedirs(hooks)
        forms = (("sh scripts/lint.sh", "scripts/lint.sh", evil), ('exec "$(git rev-parse --show-toplevel)"/scripts/lint.sh', "scripts/lint.sh", evil),
                 ("make -s lint", "Makefile", "lint:\n\t" + evil), ("sh scripts/all.sh", "scripts/lint.sh", evil),
                 ("if [ -e scripts/more.sh ]; then sh scripts/more.sh; fi", "scripts/more.sh", evil),
                 ("grep -q touch .pre-commit-config.yaml && eval \"$(cat .pre-commit-config.yaml)\"; true", ".pre-commit-config.yaml", evil))
        for form in forms + (("elsewhere",) + forms[0][1:],):
            hook, path, text = form
            for changes in (True, False):
                with self.subTest(hook=hook, changes=changes):
                    self.stage()
                    for name, first in (("scripts/lint.sh", "#!/bin/sh\ntrue\n"), ("scripts/all.sh", "sh scripts/lint.sh\n"), ("Makefile", "lint:\n\t@true\n"),
                                        (".pre-commit-config.yaml", "true\n")):
                        self.put(name, first)
                    os.chmod(self.path("scripts/lint.sh"), 0o755)
                    elsewhere = hook == "elsewhere"
                    at = os.path.join(hooks if elsewhere else self.path(".git/hooks"), "pre-commit")
                    os.makedirs(os.path.dirname(at), exist_ok=True)
                    with open(at, "w") as f:
                        f.write("#!/bin/sh\n" + (forms[0][0] if elsewhere else hook) + "\n")
                    os.chmod(at, 0o755)
                    if elsewhere:
                        self.git("config", "core.hooksPath", hooks)
                    script = (call("shell", command=f"cat > {path} <<'X'\n{text}X\n") if changes else "") + "answer Done.\n" + self.draft()
                    run = self.kvist("--linear", "--mode", "ask", "--context", "off", "--fake-script", self.script(script),
                                     stdin="Go.\n" + "y\n" * changes + "/commit\ny\n")
                    self.assertIn("result: ok, committed", run.stdout)
                    self.assertEqual(f" {path}" in run.stdout.split("question: git")[-1].split("\n")[0], changes, run.stdout)
                    self.assertEqual(os.path.exists(os.path.join(self.folder, "evil")), changes)  # the control: this is what a yes lets it do
                    if changes:
                        os.remove(os.path.join(self.folder, "evil"))

    def test_no_variable_makes_a_commit_another(self):
        other = os.path.join(self.folder, "other")
        subprocess.run(["git", "init", "-q", other], check=True)
        theirs = {"GIT_DIR": os.path.join(other, ".git"), "GIT_WORK_TREE": self.tree, "GIT_INDEX_FILE": os.path.join(self.folder, "index")}
        for names in (["GIT_DIR", "GIT_WORK_TREE"], ["GIT_INDEX_FILE"]):
            before = self.stage()
            self.git("read-tree", "--index-output=" + theirs["GIT_INDEX_FILE"], "HEAD")
            self.git("reset", "-q", "--soft")
            self.git("add", "-A")
            clean = dict(self.env)
            chosen = {name: theirs[name] for name in names}
            plain = subprocess.run(["git", "-C", self.tree, "commit", "--allow-empty", "-qm", "x"], env={**clean, **chosen}, check=False)
            self.assertEqual(plain.returncode, 0)
            self.assertNotIn("src/new.c", self.git("show", "--name-only", "--format=", "HEAD").stdout)  # the control: git alone obeys them
            self.git("reset", "-q", "--soft", before.strip())
            self.env.update(chosen)
            said = self.talk(["/commit"], self.draft(), "ask", None)
            self.env = clean
            self.assertEqual(self.git("show", "--name-only", "--format=%an", "HEAD").stdout.split(), ["Ada", "src/new.c"], said)

    def test_an_export(self):
        """It asks nobody and replaces nothing, a link that leads nowhere neither."""
        os.symlink("nowhere", self.path("link.md"))
        self.put("there.md", "somebody else's\n")
        for name in ("there.md", "link.md", "new.md"):
            process = subprocess.run([KVIST, "--linear", "--mode", "plan", "--fake-script", self.script("answer Yes.\n")],
                                     input=f"Go.\n/export {name}\n".encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     env=self.env, cwd=self.tree, timeout=PATIENCE, check=False)
            self.assertEqual(b"exists already" in process.stdout, name != "new.md", process.stdout)
        self.assertEqual(self.get("there.md"), b"somebody else's\n")
        self.assertEqual(os.readlink(self.path("link.md")), "nowhere")
        self.assertIn(b"Go.", self.get("new.md"))  # the control


main()
