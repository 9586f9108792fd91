"""What the tests of kvist across HTTP share: the real binary, a small git tree, a scripted server with every fault that a network has."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server import Server  # noqa: E402

KVIST = os.path.abspath(sys.argv[1])
PATIENCE = 300 * int(os.environ.get("KVIST_TEST_PATIENCE", "1"))  # seconds: a guard against hanging, no expectation
DATA = os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share"), "kvist")


def call(name, payload=None, **arguments):
    text = json.dumps({"name": name, "arguments": arguments})
    return text + (f"\n```\n{payload}\n```\n" if payload is not None else "")


class Remote(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kvist-remote-")
        self.tree, self.home = os.path.join(self.folder, "tree"), os.path.join(self.folder, "home")
        os.makedirs(os.path.join(self.tree, "src"))
        self.put("src/one.c", "/* Doubles a number. */\nint twice(int x)\n{\n    return 2 * x;\n}\n")
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
            subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-C", self.tree, *words], check=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KVIST_") and "proxy" not in k.lower()}
        self.env.update(KVIST_HOME=self.home, KVIST_GRAMMAR_PATH=os.path.join(DATA, "grammars"))
        self.servers = []

    def tearDown(self):
        for s in self.servers:
            s.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def put(self, name, text):
        with open(os.path.join(self.tree, name), "w") as f:
            f.write(text)

    def serve(self, *args, **kw):
        self.servers.append(Server(*args, **kw))
        return self.servers[-1]

    def kvist(self, *words, stdin="", env=None):
        run = subprocess.run([KVIST, *words], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                             env=dict(self.env, **(env or {})), cwd=self.tree, timeout=PATIENCE)
        self.assertGreaterEqual(run.returncode, 0, run.stderr)
        return run

    def ask(self, server, *words, text="What is twice?", env=None):
        run = self.kvist("-p", text, "--json", "--endpoint", server.url, *words, env=env)
        events = [json.loads(line) for line in run.stdout.splitlines()]
        return run, events

    def of(self, events, kind):
        return [e for e in events if e["event"] == kind]

    def answer(self, events):
        return "".join(e["text"] for e in self.of(events, "answer"))

    def last_session(self):
        return sorted(os.listdir(os.path.join(self.home, "data", "sessions")))[-1]


def main():
    """Runs the file's tests: all, or those that are named behind the program."""
    unittest.main(module="__main__", argv=sys.argv[:1] + sys.argv[2:])
