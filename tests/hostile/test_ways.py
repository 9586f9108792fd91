#!/usr/bin/env python3
"""Ways to toolchains that lead through the tree, by another name of it: a command puts a link of its own there, and the next one would
see what it leads to. What a command may read is decided by what the person named, and nobody else writes what they named."""
import os
import shutil

from kit import Hostile, call, main


class Ways(Hostile):
    def setUp(self):
        super().setUp()
        self.private, self.link, self.me = (os.path.join(self.folder, name) for name in ("private", "link", "me"))
        os.mkdir(self.private)
        os.makedirs(os.path.join(self.me, "bin"))
        with open(os.path.join(self.private, "secret"), "w") as f:
            f.write("marmalade\n")
        os.symlink(self.tree, self.link)
        os.symlink("link", self.link + "2")
        self.put("tools/t", "#!/bin/sh\n")
        self.put(".venv/bin/x", "")
        self.put("Makefile", f"check:\n\tcat {self.private}/secret\n")
        os.symlink(self.path("tools/t"), os.path.join(self.me, "bin", "t"))
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "more")
        self.usual = ":" + os.environ["PATH"]

    def read(self, command, *words, text="Go.", **env):
        """What commands print behind one that puts links."""
        self.env.update(env)
        script = self.script(call("shell", command=command) + call("shell", command=f"cat {self.private}/secret") + call(
            "rewrite", "int twice(int x)\n{\n    return x + x;\n}", path="src/one.c", name="twice") + "answer Done.\n" * 3)
        run = self.kvist("-p", text, "--json", "--mode", "all", "--fake-script", script, *words, env=self.env)
        self.git("clean", "-qfdx")
        self.git("checkout", "-q", ".")
        return run.stdout

    def test_of_the_environment(self):
        go, bin_ = self.link + "2/../tree", self.link + "/.venv/bin"
        for name, command, env in (
                ("an environment", f"rm -r .venv; ln -s {self.private} .venv", {"VIRTUAL_ENV": self.link + "/.venv"}),
                ("a folder of PATH", f"rm -r .venv/bin; ln -s {self.private} .venv/bin", {"PATH": bin_ + self.usual}),
                ("by two links", f"rm -r .venv/bin; ln -s {self.private} .venv/bin", {"PATH": self.link + "2/.venv/bin" + self.usual}),
                ("up and down", f"ln -s {self.private} java", {"JAVA_HOME": go + "/java"}),
                ("a toolchain", f"ln -s {self.private} go", {"GOPATH": self.link + "/go"}),
                ("what a link of a folder of PATH leads to", f"rm tools/t; ln -s {self.private}/secret tools/t",
                 {"HOME": self.me, "PATH": os.path.join(self.me, "bin") + self.usual})):
            with self.subTest(name=name):
                self.env["HOME"] = os.environ["HOME"]
                self.assertNotIn("marmalade", self.read(command, **env))
        # The control: a way of the person's own, outside of the tree, is seen.
        self.assertIn("marmalade", self.read("true", JAVA_HOME=self.private))

    def test_for_what_judges_in_a_copy(self):
        self.env["PATH"] = self.link + "/.venv/bin" + self.usual
        for command, env, is_seen in ((f"rm -r .venv/bin; ln -s {self.private} .venv/bin", {}, False),
                                      ("true", {"JAVA_HOME": self.private}, True)):  # the control
            self.ask(call("shell", command=command) + "answer Done.\n", "all")
            run = self.kvist("-p", "twice is wrong; fix it. `make check` has to pass.", "--json", "--mode", "all", "--fake-script",
                             self.script("answer No.\n" * 9), env=dict(self.env, **env))
            self.assertIn("cat " + self.private, run.stdout)  # make ran
            self.assertEqual("marmalade" in run.stdout, is_seen, run.stdout)

    def test_what_was_allowed(self):
        """--allow-read of a folder that lies in the tree (it needs no such word) is not the folder that stands there later."""
        os.mkdir(self.path("ext"))
        said = self.read(f"rmdir ext; ln -s {self.private} ext", "--allow-read", self.path("ext"))
        self.assertNotIn("marmalade", said)
        shutil.rmtree(self.home, ignore_errors=True)
        self.assertIn("marmalade", self.read("true", "--allow-read", self.private))  # the control


main()
