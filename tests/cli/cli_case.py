"""What the tests of the command line share: the real binary as scripts and users start it, on a scripted engine where a model would answer.

usage of each: test_NAME.py KVIST KVIST-BENCH SHARED [TEST...]
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

KVIST, BENCH, SHARED = (os.path.abspath(word) for word in sys.argv[1:4])  # Meson gives paths from its build folder
DATA = os.path.join(os.environ.get("KVIST_HOME") or "", "data") if os.environ.get("KVIST_HOME") else os.path.join(
    os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share"), "kvist")
PATIENCE = 300 * int(os.environ.get("KVIST_TEST_PATIENCE", "1"))  # seconds: a guard against hanging, no expectation
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SMALL = os.path.join(DATA, "models", "SmolLM2-135M-Instruct.Q4_1.gguf")
SHORT = os.environ.get("KVIST_SHORT_MODEL", SMALL) if not os.environ.get("KVIST_TEST_LONG") else SMALL  # what it says means nothing

SCRIPT = """
budget 700
answer <<END
<tools>{"name": "read", "arguments": {"path": "src/one.c"}}</tools>
END
answer The function `twice` doubles a number.
answer <<END
<tools>{"name": "write", "arguments": {"path": "new.txt"}}</tools>
```
hello
```
END
answer Done.
answer Nothing more.
"""


def call(name, arguments, payload=None):
    """One scripted answer that calls a tool."""
    text = "answer <<END\n<tools>" + json.dumps({"name": name, "arguments": arguments}) + "</tools>\n"
    return text + (f"```\n{payload}\n```\n" if payload is not None else "") + "END\n"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kvist-cli-")
        self.tree = os.path.join(self.folder, "tree")
        os.makedirs(os.path.join(self.tree, "src"))
        with open(os.path.join(self.tree, "src", "one.c"), "w") as f:
            f.write("/* Doubles a number. */\nint twice(int x)\n{\n    return 2 * x;\n}\n")
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-C", self.tree]
        subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "one"], check=True)
        self.script = os.path.join(self.folder, "script")
        with open(self.script, "w") as f:
            f.write(SCRIPT)
        self.env = dict(os.environ, KVIST_HOME=os.path.join(self.folder, "home"), KVIST_GRAMMAR_PATH=os.path.join(DATA, "grammars"))
        self.env.pop("KVIST_MODEL", None)

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_kvist(self, *words, stdin="", program=KVIST):
        return subprocess.run([program, *words], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=self.env, cwd=self.tree, timeout=PATIENCE)

    def run_bench(self, *words):
        return self.run_kvist(*words, program=BENCH)

    def ask(self, text, *words):
        """One request on the scripted engine; its events."""
        run = self.run_kvist("-p", text, "--json", "--fake-script", self.script, *words)
        return run, [json.loads(line) for line in run.stdout.splitlines()]


def main():
    """Runs the file's tests: all, or those that are named behind the program's arguments."""
    unittest.main(module="__main__", argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
