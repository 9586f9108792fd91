"""What the hostile suite's Python files share: a tree, a home of its own, the real binary on a scripted engine.

Every test tries what somebody who means harm would, through a file of the tree, the model, the network or a neighbour on the same
machine. Where the attack works against something else (plain git, plain pip), a control shows that it is one.
"""
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

KVIST, TOP = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PATIENCE = 300 * int(os.environ.get("KVIST_TEST_PATIENCE", "1"))  # seconds: a guard against hanging, no expectation
DATA = os.path.join(os.environ["KVIST_HOME"], "data") if os.environ.get("KVIST_HOME") else os.path.join(
    os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share"), "kvist")
SMALL = os.path.join(DATA, "models", "SmolLM2-135M-Instruct.Q4_1.gguf")
SHORT = os.environ.get("KVIST_SHORT_MODEL", SMALL) if not os.environ.get("KVIST_TEST_LONG") else SMALL  # what it says means nothing
USER, NOBODY = 1000, 65534
READ_ONE = 'answer <<END\n<tools>{"name": "read", "arguments": {"path": "src/one.c"}}</tools>\nEND\n'


def call(tool, payload=None, **arguments):
    """One scripted answer that calls a tool."""
    text = "answer <<END\n<tools>" + json.dumps({"name": tool, "arguments": arguments}) + "</tools>\n"
    return text + (f"```\n{payload}\n```\n" if payload is not None else "") + "END\n"


class Hostile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kvist-hostile-")
        self.tree = os.path.join(self.folder, "tree")
        self.home = os.path.join(self.folder, "home")
        os.makedirs(os.path.join(self.tree, "src"))
        self.put("src/one.c", "/* Doubles a number. */\nint twice(int x)\n{\n    return 2 * x;\n}\n")
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "one")
        self.env = dict(os.environ, KVIST_HOME=self.home, KVIST_GRAMMAR_PATH=os.path.join(DATA, "grammars"))
        self.env.pop("KVIST_MODEL", None)

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def git(self, *words, check=True):
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-C", self.tree, *words], check=check,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def path(self, name):
        return os.path.join(self.tree, name)

    def put(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())

    def get(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def has(self, name):
        return os.path.lexists(self.path(name))

    def script(self, text):
        path = os.path.join(self.folder, "script")
        with open(path, "w") as f:
            f.write(text)
        return path

    def kvist(self, *words, stdin="", env=None, **more):
        """The binary's run, which must end by itself: neither by a signal nor by a sanitizer."""
        run = subprocess.run([KVIST, *words], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                             env=env or self.env, cwd=self.tree, timeout=PATIENCE, **more)
        self.assertGreaterEqual(run.returncode, 0, run.stderr)
        return run

    def ask(self, script, mode, text="Go.", *words):
        """One request without a screen: the run, its events, the results of its tools."""
        run = self.kvist("-p", text, "--json", "--mode", mode, "--fake-script", self.script(script), *words)
        events = [json.loads(line) for line in run.stdout.splitlines()]
        return run, events, [e for e in events if e["event"] == "tool_result"]


def as_nobody(command):
    """The words that run a command as an ordinary user who owns nothing here; None where we are none ourselves."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return None
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", *command]


def become_ordinary():
    """
    Where root starts the tests: a user of a namespace who owns what root does and may no more than any user. Data, the build and what
    lies in root's home stay in reach. A neighbour's id is there too. Where there are no such namespaces, root goes on.
    """
    if os.geteuid() != 0:
        return
    libc, new_user = ctypes.CDLL(None), 0x10000000
    asked, given = os.pipe(), os.pipe()
    child = os.fork()
    if child:
        os.close(asked[1])
        if os.read(asked[0], 1) == b"y":
            for kind in ("uid_map", "gid_map"):
                with open(f"/proc/{child}/{kind}", "w") as f:
                    f.write(f"{USER} 0 1\n{NOBODY - 1} {NOBODY - 1} 2\n")
        os.write(given[1], b"y")
        for one in (asked[0], *given):
            os.close(one)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.exit(status if status >= 0 else 128 - status)
    libc.prctl(1, signal.SIGKILL)  # whoever stops the test stops it
    may = not libc.unshare(new_user)
    os.write(asked[1], b"y" if may else b"n")
    os.read(given[0], 1)
    for one in (*asked, *given):
        os.close(one)
    if may:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
        libc.prctl(1, signal.SIGKILL)
        os.execv(sys.executable, [sys.executable, "-B", *sys.argv])  # what root may ends here


def main(as_root=False):
    """as_root: what it attacks belongs to another user, which root alone can arrange."""
    if not as_root:
        become_ordinary()
    unittest.main(argv=sys.argv[:1], verbosity=2)
