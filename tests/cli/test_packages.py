#!/usr/bin/env python3
"""What a machine without kvist meets: scripts/run on other systems, and what an installation holds.

usage: test_packages.py SOURCE BUILD PREFIX MESON...
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PREFIX, MESON = sys.argv[3].strip("/"), sys.argv[4:]


class Systems(unittest.TestCase):
    """scripts/run with a PATH on which nothing is but a shell's helpers, and an os-release of our own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kvist-system-")
        self.path = os.path.join(self.folder, "bin")
        os.makedirs(self.path)
        for name in ("dirname", "tr", "uname", "sh"):
            os.symlink(shutil.which(name), os.path.join(self.path, name))
        self.fake("id", "echo 1000")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def fake(self, name, script):
        path = os.path.join(self.path, name)
        if os.path.lexists(path):
            os.remove(path)
        with open(path, "w") as f:
            f.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)

    def start(self, release):
        """The sentence that ends scripts/run there."""
        with open(os.path.join(self.folder, "os-release"), "w") as f:
            f.write(release)
        run = subprocess.run(["/bin/sh", os.path.join(SOURCE, "scripts", "run")], capture_output=True, text=True,
                             env={"PATH": self.path, "HOME": self.folder, "KVIST_OS_RELEASE": os.path.join(self.folder, "os-release")})
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(run.stdout, "")
        return run.stderr.splitlines()[-1]

    def test_each_system_gets_its_own_command(self):
        for release, command, some in (
                ('ID=fedora\n', "as root: dnf install gcc meson ninja-build pkgconf-pkg-config ncurses-devel", "libtree-sitter-devel"),
                ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "as root: dnf install gcc", "pcre2-devel"),
                ('ID=arch\n', "as root: pacman -S --needed gcc meson ninja pkgconf ncurses libgit2 curl sqlite zstd", "python-pip"),
                ('ID=manjaro\nID_LIKE=arch\n', "as root: pacman -S --needed gcc", "tree-sitter"),
                ('ID=alpine\n', "as root: apk add gcc musl-dev linux-headers meson", "py3-pip"),
                ('ID=debian\n', "as root: apt-get install gcc meson ninja-build", "libgit2-dev"),
                ('ID=ubuntu\nID_LIKE=debian\n', "as root: apt-get install gcc meson ninja-build", "python3-pip"),
                ('ID=plan9\n', "this system is not known here; please install what Debian calls gcc meson", "libseccomp-dev"),
                ('', "this system is not known here", "libseccomp-dev")):
            said = self.start(release)
            self.assertIn(command, said)
            self.assertIn(" " + some, said)

    def test_root_is_not_told_to_become_root(self):
        self.fake("id", "echo 0")
        self.assertIn("please run dnf install gcc", self.start("ID=fedora\n"))

    def test_macos_is_not_supported(self):
        self.fake("uname", "echo Darwin")
        self.assertIn("macOS is not supported: kvist needs Linux", self.start(""))

    def test_every_package_has_a_name_everywhere(self):
        with open(os.path.join(SOURCE, "scripts", "setup-lib")) as f:
            text = f.read()
        names = text.split("other_names='")[1].split("'")[0].split("\n")
        rows = {line.split()[0]: line.split() for line in names if line}
        for part in ("\npackages='", "\ntest_packages='"):
            for line in text.split(part)[1].split("'")[0].strip().splitlines():
                self.assertEqual(len(rows[line.split(":")[0]]), 4, line)


class FetchManual(unittest.TestCase):
    def test_its_page_says_what_the_program_says(self):
        fetch = os.path.join(SOURCE, "scripts", "fetch")

        def run(*words):
            return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True).stdout
        about, told = json.loads(run(fetch, "--describe")), " ".join(run(fetch, "--help").split())
        page = run(os.path.join(SOURCE, "scripts", "make-manual"), fetch, "fetch")
        self.assertLessEqual({"default", "small", "grammars"}, {row["name"] for row in about["names"]})
        for row in about["names"]:
            self.assertIn(f"{row['name']} {row['about']}", told)
            self.assertIn(f"\\fB{row['name']}\\fR\n{row['about']}\n".replace("-", "\\-"), page)
        for text in about["text"] + [option["name"] for option in about["options"]]:
            self.assertIn(text, told)
            self.assertIn(text.replace("-", "\\-"), page)
        wrong = subprocess.run([sys.executable, fetch, "no-such"], capture_output=True, text=True)
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("nothing is called no-such; there are default,", wrong.stderr)
        if not (shutil.which("man") and shutil.which("groff")):
            self.skipTest("no man, no groff: the page was not shown")
        with tempfile.NamedTemporaryFile("w", suffix=".1") as file:
            file.write(page)
            file.flush()
            shown = subprocess.run(["man", "--warnings", "-l", file.name], capture_output=True, text=True, env=dict(os.environ, MANPAGER="cat", LC_ALL="C.UTF-8"))
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))


class Installation(unittest.TestCase):
    def test_a_staged_installation_holds_all_and_nothing_beside_its_prefix(self):
        with tempfile.TemporaryDirectory() as stage:
            run = subprocess.run([*MESON, "install", "-C", BUILD, "--no-rebuild", "--destdir", stage], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            files = sorted(os.path.relpath(os.path.join(folder, name), stage) for folder, _, names in os.walk(stage) for name in names)
            self.assertEqual([name for name in files if not name.startswith(PREFIX + "/")], [])
            for name in ("bin/kvist", "bin/kvist-fetch", "share/man/man1/kvist.1", "share/man/man1/kvist-fetch.1", "share/bash-completion/completions/kvist",
                         "share/zsh/site-functions/_kvist", "share/fish/vendor_completions.d/kvist.fish"):
                self.assertIn(f"{PREFIX}/{name}", files)
            kvist = os.path.join(stage, PREFIX, "bin/kvist")
            self.assertIn("kvist", subprocess.run([kvist, "--version"], capture_output=True, text=True, check=True).stdout)
            self.assertIn("grammars", subprocess.run([kvist + "-fetch", "--help"], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
