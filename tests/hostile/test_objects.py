#!/usr/bin/env python3
"""A repository whose objects are small where they lie and large when they are unpacked, or lie in another project of the person's."""
import hashlib
import os
import shutil
import struct
import subprocess
import zlib

from kit import KVIST, Hostile, call, main

LARGE = 200 << 20  # unpacked; a few hundred KB as it lies
KINDS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
WHO = b"author t <t@localhost> 1 +0000\ncommitter t <t@localhost> 1 +0000\n"


def number(n, first=0, bits=7):
    """A size as packs write it: low bits first, the highest of a byte says that more follow."""
    out, low = bytearray(), (1 << bits) - 1
    byte, n = first | (n & low), n >> bits
    while n:
        out.append(byte | 0x80)
        byte, n = n & 0x7F, n >> 7
    out.append(byte)
    return bytes(out)


def packed(body):
    return zlib.compress(body, 1)


class Objects(Hostile):
    def setUp(self):
        super().setUp()
        # libgit2 1.5 itself leaves a few hundred bytes behind where an allocation is refused.
        self.env["ASAN_OPTIONS"] = self.env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

    def loose(self, kind, body):
        """Into the repository as git would write it; its id."""
        whole = b"%s %d\0" % (kind.encode(), len(body)) + body
        name = hashlib.sha1(whole).hexdigest()
        self.put(f".git/objects/{name[:2]}/{name[2:]}", packed(whole))
        return name

    def pack(self, kind, base, delta, result):
        """A pack of an object and of another that is a delta of it; the id of the second."""
        name = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(base)) + base).digest()
        data = b"PACK" + struct.pack(">II", 2, 2) + number(len(base), KINDS[kind] << 4, 4) + packed(base)
        data += number(len(delta), 7 << 4, 4) + name + packed(delta)
        path = self.path(".git/objects/pack/pack-x.pack")
        with open(path, "wb") as f:
            f.write(data + hashlib.sha1(data).digest())
        subprocess.run(["git", "index-pack", path], check=True, stdout=subprocess.DEVNULL, cwd=self.tree)
        return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(result)) + result).hexdigest()

    def tree_now(self):
        return self.git("rev-parse", "HEAD^{tree}").stdout.strip()

    def peak(self, *words):
        """What a program ended with and the most memory that it had, in MiB."""
        out = os.path.join(self.folder, "out")
        with open(out, "wb") as f:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.STDOUT, cwd=self.tree, env=self.env)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        with open(out, errors="replace") as f:
            return process.returncode, f.read(), used.ru_maxrss >> 10

    def look(self, rev, *more):
        script = "".join([call("list"), call("git", op="status"), call("git", op="log"), call("git", op="log", rev=f"HEAD..{rev}"),
                          call("git", op="log", path="src/one.c"), call("git", op="show", rev=rev), call("git", op="diff", rev=rev), *more])
        return self.peak(KVIST, "-p", "Go.", "--json", "--mode", "plan", "--fake-script", self.script(script + "answer Done.\n"))

    def check(self, name, rev, *more):
        """kvist looks at everything and holds none of it; the control: plain git does."""
        plain, _, usual = self.look("HEAD")
        ended, text, most = self.look(rev, *more)
        self.assertEqual((plain, ended), (0, 0), text[-2000:])
        self.assertTrue("is not read: unpacking it" in text and "Done." in text, name)
        self.assertLess(most, usual + 100, name)
        _, _, control = self.peak("git", "-c", "core.bigFileThreshold=4g", "cat-file", "-p", rev)
        self.assertGreater(control, (LARGE >> 20) - 50, name)

    def test_a_commit(self):
        big = self.loose("commit", f"tree {self.tree_now()}\n".encode() + WHO + b"\nsubject\n\n" + b"a" * LARGE)
        self.check("beside", big)
        self.git("update-ref", "refs/heads/main", big)
        self.check("checked out", "main")

    def test_a_tree(self):
        tree = self.loose("tree", (b"100644 f\0" + bytes(20)) * (LARGE // 29))
        commit = self.loose("commit", f"tree {tree}\n".encode() + WHO + b"\nsubject\n")
        self.git("update-ref", "refs/heads/main", commit)
        self.check("checked out", "main^{tree}", call("git", op="show", rev="main"))

    def test_a_tag_and_a_blob(self):
        tag = self.loose("tag", f"object {self.tree_now()}\ntype tree\ntag big\ntagger t <t@localhost> 1 +0000\n\n".encode() + b"a" * LARGE)
        self.git("update-ref", "refs/tags/big", tag)
        self.check("a tag", "refs/tags/big")
        blob = self.loose("blob", b"a" * LARGE)
        tree = self.loose("tree", b"100644 f\0" + bytes.fromhex(blob))
        commit = self.loose("commit", f"tree {tree}\n".encode() + WHO + b"\nsubject\n")
        self.git("update-ref", "refs/heads/big", commit)
        self.check("a blob", "big:f")

    def test_a_small_commit_that_is_made_from_a_large_one(self):
        head = f"tree {self.tree_now()}\n".encode() + WHO + b"\nsmall\n"
        base = head + b"a" * LARGE
        delta = number(len(base)) + number(len(head)) + bytes([0x80 | 0x10 | 0x20, len(head) & 0xFF, len(head) >> 8])  # copy its beginning
        small = self.pack("commit", base, delta, head)
        self.git("update-ref", "refs/heads/small", small)
        self.assertLess(int(self.git("cat-file", "-s", "small").stdout), 1000)  # asking for its size would say nothing
        self.check("small", "small")

    def test_a_large_commit_that_is_made_from_a_small_one(self):
        base = f"tree {self.tree_now()}\n".encode() + WHO + b"\n" + b"a" * (1 << 20)
        n, part = LARGE >> 20, 0xFFFFF
        whole = bytes([0x80 | 0x10 | 0x20 | 0x40, part & 0xFF, part >> 8 & 0xFF, part >> 16])
        result = base[:part] * n
        large = self.pack("commit", base, number(len(base)) + number(len(result)) + whole * n, result)
        self.git("update-ref", "refs/heads/large", large)
        self.check("large", "large")

    def test_what_is_staged(self):
        """The question of /commit: nothing is drafted from half of what is staged."""
        big = self.loose("commit", f"tree {self.tree_now()}\n".encode() + WHO + b"\nsubject\n\n" + b"a" * LARGE)
        self.git("update-ref", "refs/heads/main", big)
        self.put("src/two.c", "int two;\n")
        self.git("update-index", "--add", "src/two.c")
        script = self.script("answer A subject\n")
        run = self.kvist("--linear", "--mode", "edits", "--fake-script", script, stdin="/commit\nn\n")
        self.assertIn("would be unpacked", run.stdout + run.stderr)

    def test_an_index_without_end(self):
        with open(self.path(".git/index"), "ab") as f:
            f.truncate(3 << 30)
        _, _, usual = self.peak(KVIST, "--version")
        ended, text, most = self.look("HEAD")
        self.assertEqual(ended, 0, text[-2000:])
        self.assertLess(most, usual + 300)


class Elsewhere(Hostile):
    """A tree that came in an archive says that its repository is another project's, of which the model is to see nothing."""

    def setUp(self):
        super().setUp()
        self.other = os.path.join(self.folder, "other")
        self.run_git("init", "-q", "-b", "main", self.other)
        with open(os.path.join(self.other, "secret.txt"), "w") as f:
            f.write("the secret\n")
        self.run_git("-C", self.other, "add", "-A")
        self.run_git("-C", self.other, "commit", "-q", "-m", "precious")
        self.run_git("-C", self.other, "repack", "-q", "-a", "-d")
        self.id = self.run_git("-C", self.other, "rev-parse", "HEAD").strip()

    def run_git(self, *words):
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always", *words], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout

    def show(self, mode="plan", *more):
        return self.ask(call("git", op="show", rev=self.id) + call("git", op="log") + call("list") + "answer Done.\n", mode, "Go.", *more)

    def plants(self):
        theirs, ours = os.path.join(self.other, ".git"), self.path(".git")
        objects = os.path.join(ours, "objects")

        def line(path, text):
            with open(path, "w") as f:
                f.write(text + "\n")

        def instead(path, target):
            shutil.rmtree(path)
            os.symlink(target, path)
        yield "a .git file", lambda: (shutil.rmtree(ours), line(ours, f"gitdir: {theirs}"))
        yield "a .git file, relative", lambda: (shutil.rmtree(ours), line(ours, "gitdir: ../other/.git"))
        yield "a .git link", lambda: instead(ours, theirs)
        yield "a way through the tree", lambda: (shutil.rmtree(ours), os.symlink("../other", self.path("d")), line(ours, "gitdir: d/.git"))
        yield "commondir", lambda: line(os.path.join(ours, "commondir"), theirs)
        yield "linked objects", lambda: instead(objects, os.path.join(theirs, "objects"))
        yield "linked packs", lambda: instead(os.path.join(objects, "pack"), os.path.join(theirs, "objects", "pack"))
        yield "alternates", lambda: line(os.path.join(objects, "info", "alternates"), os.path.join(theirs, "objects"))
        yield "alternates, relative", lambda: line(os.path.join(objects, "info", "alternates"), "# x\n../../../other/.git/objects")
        yield "alternates of alternates", lambda: (os.makedirs(self.path("o/info")), line(os.path.join(objects, "info", "alternates"), "../../o"),
                                                   line(self.path("o/info/alternates"), os.path.join(theirs, "objects")))

    def test_no_way_shows_another_project(self):
        kept = os.path.join(self.folder, "kept")
        shutil.copytree(self.tree, kept, symlinks=True)
        for name, plant in self.plants():
            with self.subTest(plant=name):
                plant()
                self.assertIn("the secret", self.git("show", self.id).stdout)  # the control
                run, _, results = self.show()
                self.assertNotIn("the secret", run.stdout + run.stderr)
                self.assertNotIn("precious", run.stdout)
                self.assertIn("outside of the tree, which does not know this tree", run.stdout + run.stderr)
                self.assertEqual([r["status"] for r in results], ["refused", "refused", "ok"], results)
                shutil.rmtree(self.tree)
                shutil.copytree(kept, self.tree, symlinks=True)

    def test_alternates_without_end(self):
        self.put(".git/objects/info/alternates", "\n".join(["."] * 2000))
        run, _, results = self.show()
        self.assertEqual(results[2]["status"], "ok", results)

    def test_what_belongs_to_the_tree_is_used(self):
        """A worktree and a submodule; a repository that lies apart, and a clone with borrowed objects, once that is allowed."""
        ways = {"worktree": lambda to: self.run_git("-C", self.other, "worktree", "add", "-q", to),
                "module": lambda to: (self.run_git("init", "-q", os.path.dirname(to)),
                                      self.run_git("-C", os.path.dirname(to), "submodule", "add", "-q", self.other, os.path.basename(to)))}
        for name, make in ways.items():
            with self.subTest(way=name):
                self.tree = os.path.join(self.folder, "made " + name, "t")
                make(self.tree)
                run, _, results = self.show()
                self.assertEqual([r["status"] for r in results], ["ok"] * 3, (results, run.stderr))
                self.assertIn("the secret", results[0]["text"])
        for name, words, allowed in (("borrows", ["--shared"], os.path.join(self.other, ".git", "objects")),
                                     ("apart", ["--separate-git-dir", os.path.join(self.folder, "apart.git")], os.path.join(self.folder, "apart.git"))):
            with self.subTest(way=name):
                self.tree = os.path.join(self.folder, name)
                self.run_git("clone", "-q", *words, self.other, self.tree)
                _, _, results = self.show()
                self.assertEqual(results[0]["status"], "refused", results)
                _, _, results = self.show("plan", "--allow-read", allowed)
                self.assertEqual(results[0]["status"], "ok", results)


main()
