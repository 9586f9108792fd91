#!/usr/bin/env python3
"""What a tree's .gitmodules says: programs, options in place of a URL, ways out of the tree, bombs of includes, names that move a cursor.
Nothing of it runs, is read or reaches the terminal, by listing, git's tool, a command, a commit or undo."""
import json
import os
import subprocess

from kit import Hostile, call, main

SCRIPT = (call("list") + call("git", op="status") + call("git", op="diff") + call("search", query="marmalade") +
          call("shell", command="touch new; true") + "answer Done.\n")


class Submodules(Hostile):
    def setUp(self):
        super().setUp()
        self.first = self.git("rev-parse", "HEAD").stdout.strip()
        self.secret, self.canary = os.path.join(self.folder, "secret"), os.path.join(self.folder, "canary")
        subprocess.run(["git", "clone", "-q", self.tree, self.secret], check=True)
        with open(os.path.join(self.secret, "key"), "w") as f:
            f.write("sweet marmalade\n")

    def lay(self, text, link="a"):
        self.git("reset", "-q", "--hard", self.first)
        self.git("clean", "-qfdx")
        self.put(".gitmodules", text)
        if link:
            self.git("update-index", "--add", "--cacheinfo", f"160000,{self.first},{link}")
        self.git("add", ".gitmodules", check=False)  # git itself refuses some

    def said(self, text, link):
        self.lay(text, link)
        run, _, results = self.ask(SCRIPT, "all")
        self.assertEqual(results[0]["status"], "ok", results)
        more = self.kvist("--linear", "--mode", "ask", "--context", "off", "--fake-script", self.script("answer Add it\n"), stdin="/commit\nn\n/undo\n")
        self.assertEqual((run.returncode, more.returncode), (0, 0), run.stderr + more.stderr)
        return run.stdout + run.stderr + more.stdout + more.stderr

    def test_what_it_may_say(self):
        entry = '[submodule "{0}"]\n\tpath = {1}\n\turl = {2}\n{3}'
        variants = {
            "a program that updates": entry.format("a", "a", "./a", f"\tupdate = !touch {self.canary}\n"),
            "a program in place of a server": entry.format("a", "a", f"ext::touch {self.canary}", ""),
            "an option in place of a server": entry.format("a", "a", f"--upload-pack=touch {self.canary}", ""),
            "an option in place of a folder": entry.format("a", f"--upload-pack=touch {self.canary}", "./a", ""),
            "a name out of .git": entry.format("../../../secret/.git", "a", "./a", ""),
            "a folder out of the tree": entry.format("a", "../secret", "./a", ""),
            "a folder from the root": entry.format("a", self.secret, "./a", ""),
            "git's folder": entry.format("a", ".git", "./a", ""),
            "another tree's configuration": f"[include]\n\tpath = {self.secret}/.git/config\n[include]\n\tpath = {self.secret}/key\n",
            "a folder with a line's end": entry.format("a", '"a\r"', "./a", ""),
            "what moves a cursor": entry.format("\x1b[31m\u202e", '"\x1b]52;c;eA==\x07"', "./a", ""),
            "a NUL byte": entry.format("a", "a\0b", "./a", ""),
            "files that include themselves": "[include]\n\tpath = .gitmodules\n" * 50,
            "more than anybody has": "".join(entry.format(f"m{i}", f"m{i}", "./m", "") for i in range(100000)),
            "changes that are not told": entry.format("a", "src", "./a", "\tignore = all\n"),
        }
        for link in ("a", None):
            for name, text in variants.items():
                with self.subTest(name=name, link=link):
                    said = self.said(text, link)
                    self.assertFalse(os.path.exists(self.canary))
                    self.assertEqual([word for word in ("sweet", "\x1b", "\u202e") if word in said], [])
        # The controls: git itself runs such a program where it is allowed to, and such a file is another tree's.
        self.lay(variants["a program in place of a server"])
        self.git("-c", "protocol.ext.allow=always", "submodule", "update", "--init", check=False)
        self.assertTrue(os.path.exists(self.canary))
        self.assertIn("sweet", subprocess.run(["git", "-C", self.secret, "grep", "--no-index", "marmalade"], stdout=subprocess.PIPE, text=True, check=True).stdout)

    def test_it_is_no_file(self):
        """A link, a folder, a pipe."""
        makers = {"a link out of the tree": lambda path: os.symlink(os.path.join(self.secret, "key"), path), "a folder": os.mkdir, "a pipe": os.mkfifo}
        for name, make in makers.items():
            with self.subTest(name=name):
                self.lay("", None)
                os.remove(self.path(".gitmodules"))
                make(self.path(".gitmodules"))
                run, events, results = self.ask(SCRIPT, "all")
                self.assertEqual((run.returncode, results[0]["status"]), (0, "ok"), results)
                self.assertNotIn("sweet", json.dumps(events) + run.stderr)
        self.lay("", None)
        self.put("plain", "sweet marmalade\n")
        _, events, _ = self.ask(SCRIPT, "all")
        self.assertIn("sweet", json.dumps(events))  # the control: what lies in the tree is found


main()
