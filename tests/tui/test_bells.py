#!/usr/bin/env python3
"""What the program sends to a terminal beside its screen, and what it takes from one that is no key: the real binary on a pseudo terminal.

usage: test_bells.py KVIST
"""
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

KVIST = os.path.abspath(sys.argv[1])
PATIENCE = 60 * int(os.environ.get("KVIST_TEST_PATIENCE", "1"))  # seconds: a guard against hanging, no expectation
QUESTION = b"\x1b]11;?\x1b\\"
BELL, OSC777 = b"\a", b"\x1b]777;notify;kvist;"


class Terminal:
    """kvist on a pseudo terminal of 80x24; everything it writes is in .seen"""

    def __init__(self, folder, *words, answer=None, behind="", **env):
        self.seen, self.answer, self.typed = b"", answer, b""
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.pop("COLORFGBG", None)
            os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "KVIST_HOME": os.path.join(folder, "home"), **env})
            os.execv("/bin/sh", ["sh", "-c", f'"$@"; status=$?; {behind or ":"}; exit $status', "sh", KVIST, os.path.join(folder, "tree"), *words])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def read(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                return
            try:
                got = os.read(self.fd, 65536)
            except OSError:
                return
            if not got:
                return
            self.seen += got
            if self.answer and QUESTION in self.seen:
                os.write(self.fd, self.answer)
                self.answer = None

    def wait(self, what, least=1):
        end = time.monotonic() + PATIENCE
        while self.seen.count(what) < least:
            if time.monotonic() > end:
                raise AssertionError(f"never seen: {what!r} in {self.seen[-3000:]!r}")
            self.read(0.1)

    def type(self, text):
        os.write(self.fd, text)

    def close(self):
        """Its exit status; all that it said is read."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError("it did not end")


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kvist-bell-")
        tree = os.path.join(self.folder, "tree")
        os.makedirs(tree)
        with open(os.path.join(tree, "one.c"), "w") as f:
            f.write("int twice(int x) { return 2 * x; }\n")
        subprocess.run(["git", "init", "-q", "-b", "main", tree], check=True)
        self.script = os.path.join(self.folder, "script")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, script, *words, **more):
        with open(self.script, "w") as f:
            f.write(script)
        t = Terminal(self.folder, "--fake-script", self.script, "--ephemeral", *words, **more)
        t.wait(b"Ask about this tree")
        return t


class Bells(Case):
    """A turn that takes as long as --notify-after says, and one that is over sooner."""

    def after(self, seconds, *words):
        t = self.start(f'answer <<END\n<tools>{{"name": "shell", "arguments": {{"command": "sleep {seconds}"}}}}</tools>\nEND\nanswer Over now.\n',
                       "--mode", "all", "--context", "off", *words)
        before = len(t.seen)
        t.type(b"go\r")
        t.wait(b"Over now.")
        t.read(1)
        said = t.seen[before:]
        t.type(b"\x04")
        self.assertEqual(t.close(), 0)
        return said

    def test_a_long_turn_rings(self):
        self.assertEqual(self.after(1.2, "--notify", "bell", "--notify-after", "1").count(BELL), 1)

    def test_a_long_turn_notifies(self):
        said = self.after(1.2, "--notify", "osc777", "--notify-after", "1")
        self.assertEqual(said.count(OSC777), 1)
        self.assertIn(OSC777 + b"the turn has ended\x1b\\", said)
        self.assertNotIn(BELL, said)

    def test_a_short_turn_and_who_wants_none_are_quiet(self):
        for said in (self.after(0, "--notify", "bell"), self.after(0, "--notify", "osc777"), self.after(1.2, "--notify-after", "1")):
            self.assertNotIn(BELL, said)
            self.assertNotIn(OSC777, said)


class Background(Case):
    def colours(self, **more):
        """The screen's bytes behind an answer, and what stood in the input line then."""
        t = self.start("answer Fine.\n", **more)
        t.read(0.5)
        before = len(t.seen)
        t.type(b"xyz")
        t.wait(b"xyz")
        t.type(b"\x0c")  # everything again
        t.read(0.5)
        after = t.seen[before:]
        t.type(b"\x03\x04")
        self.assertEqual(t.close(), 0)
        return t.seen, after

    def test_the_terminal_is_asked_and_its_answer_is_no_key(self):
        for answer in (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\", b"\x1b]11;rgb:0000/0000/0000\a"):
            seen, after = self.colours(answer=answer)
            self.assertEqual(seen.count(QUESTION), 1)
            self.assertNotIn(b"rgb:", seen)
            self.assertNotIn(b"11;", after)

    def test_light_and_dark_and_no_answer_have_colours_of_their_own(self):
        shown = [self.colours(answer=answer)[1] for answer in (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\", b"\x1b]11;rgb:0000/0000/0000\x1b\\", None)]
        palettes = [frozenset(part.split(b"m")[0] for part in text.split(b"\x1b[38;5;")[1:]) for text in shown]
        self.assertEqual(len(set(palettes)), 3, palettes)

    def test_nonsense_for_an_answer_changes_nothing(self):
        none = self.colours()[1]
        for answer in (b"\x1b]11;\x1b\\", b"\x1b]11;rgb:zz/zz/zz\a", b"\x1b]11;" + b"f" * 60 + b"\a"):
            seen, after = self.colours(answer=answer)
            self.assertNotIn(b"rgb:", seen)
            self.assertNotIn(b"fff", after)
            pick = lambda text: {part.split(b"m")[0] for part in text.split(b"\x1b[38;5;")[1:]}
            self.assertEqual(pick(after), pick(none))

    def typed(self, sent):
        """What is drawn behind these bytes and two letters."""
        t = self.start("answer Fine.\n")
        t.read(0.3)
        before = len(t.seen)
        t.type(sent)
        t.type(b"XQ\x0c")  # and everything again
        t.wait(b"XQ")
        t.read(1.5)
        shown = t.seen[before:]
        t.type(b"\x03\x04")
        self.assertEqual(t.close(), 0)
        return shown

    def test_what_a_terminal_says_for_itself_is_no_key(self):
        strings = [begin + b"52;c;d29yZHM=words" + end for begin in (b"\x1b]", b"\x1bP", b"\x1bX", b"\x1b^", b"\x1b_")
                   for end in (b"\a", b"\x1b\\")]
        c1 = [chr(c).encode() + b"52;words" + chr(0x9c).encode() for c in (0x90, 0x98, 0x9d, 0x9e, 0x9f)]
        others = [b"\x1b[?64;44c", b"\x1b[I", b"\x1b[<0;44;44M", b"\x1b[M !!", b"\x1b[27;5;44~", b"\xc2\x9b44;44R", b"\x1bOq",
                  b"\x1b]0;words\x1b[44;44R", b"\x1b]0;words\x18", b"\x1b]" + b"words" * 900 + b"\a"]
        shown = self.typed(b"".join(strings + c1 + others))
        for part in (b"words", b"52;", b"44", b"!!"):
            self.assertNotIn(part, shown)

    def test_a_string_without_an_end_takes_no_key_for_ever(self):
        shown = self.typed(b"\x1b]0;words\x03")  # Ctrl+C is heard in it
        self.assertNotIn(b"words", shown)
        self.assertIn(b"words", self.typed(b"words"))  # the control

    def test_who_says_it_by_other_means_is_not_asked(self):
        for env, words in (({"COLORFGBG": "15;0"}, ()), ({"NO_COLOR": "1"}, ()), ({"TERM": "linux"}, ()), ({"TERM": "vt100"}, ())):
            t = self.start("answer Fine.\n", *words, **env)
            t.type(b"\x04")
            self.assertEqual(t.close(), 0)
            self.assertNotIn(QUESTION, t.seen, env)

    def test_an_answer_that_comes_while_it_ends_is_for_nobody_else(self):
        left = os.path.join(self.folder, "left.py")
        with open(left, "w") as f:  # the next program, which reads keys
            f.write("import os, select, termios, tty\ntty.setcbreak(0, termios.TCSANOW)\nn = select.select([0], [], [], 0.5)[0]\n"
                    "print('LEFT', os.read(0, 99) if n else None, flush=True)\n")
        for typed, wanted in ((b"\x04" + b"\x1b]11;rgb:0000/0000/0000\x1b\\", b"LEFT None"), (b"\x04", b"LEFT None")):
            t = self.start("answer Fine.\n", behind=f"'{sys.executable}' '{left}'")
            t.type(typed)
            self.assertEqual(t.close(), 0)
            self.assertIn(wanted, t.seen)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
