"""Who is asked, as whom, and what leaves the machine: models, keys, addresses, secrets; `kvist doctor --endpoint`."""
import json
import os
import pty
import subprocess
import time

from remote_case import KVIST, PATIENCE, Remote, main
from server import bytes_of


class Access(Remote):
    def test_several_models(self):
        s = self.serve("chat", ["Hi."], models=["a-7b", "b-7b"])
        run = self.kvist("-p", "x", "--endpoint", s.url, "--ephemeral")
        self.assertEqual(run.returncode, 2)
        self.assertIn("a-7b, b-7b", run.stderr)
        _, events = self.ask(s, "--ephemeral", "--model", "b-7b")
        self.assertEqual(s.requests[0]["model"], "b-7b")
        run = self.kvist("-p", "x", "--endpoint", s.url, "--model", "c", "--ephemeral")
        self.assertEqual(run.returncode, 2)

    def test_keys(self):
        s = self.serve("llama", ["Hi."] * 4, key="sk-secret-123")
        run = self.kvist("-p", "x", "--endpoint", s.url, "--ephemeral", env={"KVIST_API_KEY": "sk-wrong-999"})
        self.assertIn("does not accept the key", run.stderr)
        self.assertNotIn("sk-wrong", run.stdout + run.stderr)
        path = os.path.join(self.folder, "key")
        with open(path, "w") as f:
            f.write("sk-secret-123\n")
        os.chmod(path, 0o644)
        run = self.kvist("-p", "x", "--endpoint", s.url, "--api-key-file", path)
        self.assertIn("chmod 600", run.stderr)
        self.assertEqual(run.returncode, 2)
        os.chmod(path, 0o600)
        run, events = self.ask(s, "--api-key-file", path)
        self.assertEqual(self.answer(events), "Hi.")
        for base, _, names in os.walk(self.home):
            for name in names:
                with open(os.path.join(base, name), "rb") as f:
                    self.assertNotIn(b"sk-secret", f.read(), name)

    def test_environment_and_configuration(self):
        s = self.serve("llama", ["From there."] * 3)
        run = self.kvist("-p", "x", "--ephemeral", env={"KVIST_ENDPOINT": s.url})
        self.assertIn("From there.", run.stdout)
        os.makedirs(os.path.join(self.home, "config"), mode=0o700, exist_ok=True)
        with open(os.path.join(self.home, "config", "config"), "w") as f:
            f.write(f"endpoint = {s.url}\n")
        run = self.kvist("-p", "x", "--ephemeral")
        self.assertIn("From there.", run.stdout)
        os.makedirs(os.path.join(self.tree, ".kvist"))
        self.put(".kvist/config", "endpoint = http://127.0.0.1:1\n")  # a tree may not choose where it is sent
        run = self.kvist("-p", "x", "--ephemeral")
        self.assertIn("From there.", run.stdout)

    def test_addresses(self):
        for url, words in (("ftp://x", "http or https"), ("127.0.0.1", "http://127.0.0.1:8080"), ("http://a:b@h", "KVIST_API_KEY"),
                           ("http://8.8.8.8", "--insecure-http")):
            run = self.kvist("-p", "x", "--endpoint", url, "--ephemeral")
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(words, run.stderr)

    def test_nobody_can_be_asked(self):
        run = self.kvist("-p", "x", "--ephemeral", env={"KVIST_ENDPOINT": "https://192.0.2.1"})
        self.assertEqual(run.returncode, 2)
        self.assertIn("nobody can be asked", run.stderr)

    ELSEWHERE = "http://10.254.254.254:8080"  # reached by a proxy, which is the scripted server

    def test_secrets_and_ignored_files_stay(self):
        self.put(".env", "TOKEN=very-secret-1\n")
        self.put("src/deploy.pem", "very-secret-2\n")
        self.put(".gitignore", "private.txt\n")
        self.put("private.txt", "very-secret-3\n")
        words = "What do @.env and @src/deploy.pem and @private.txt and @src/one.c say?"
        s = self.serve("llama", ["Nothing."])
        run = self.kvist("-p", words, "--json", "--ephemeral", "--endpoint", self.ELSEWHERE, env={"http_proxy": s.url})
        events = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual(self.answer(events), "Nothing.", run.stderr)
        prompt = bytes_of(s.requests[0]["prompt"]).decode()
        self.assertNotIn("very-secret", prompt)
        self.assertIn("return 2 * x", prompt)
        notices = " ".join(e["text"] for e in self.of(events, "notice"))
        self.assertIn("@.env stays on this machine", notices)
        self.assertIn("@private.txt stays on this machine (git ignores it)", notices)
        s = self.serve("llama", ["All."])  # on this machine they are the person's to show
        self.ask(s, "--ephemeral", text=words)
        self.assertIn("very-secret-1", bytes_of(s.requests[0]["prompt"]).decode())

    def test_retrieval_takes_no_secrets_along(self):
        """A request that fits them best: files called as keys are, and what git ignores, are in front of it on this machine alone."""
        told = "def walrus_password(x):\n    return 'very-secret-1'\n"
        self.put("credentials.py", told)
        self.put("local_settings.py", told.replace("secret-1", "secret-2"))
        self.put("public.py", told.replace("very-secret-1", "public-3"))
        self.put(".gitignore", "local_settings.py\n")
        subprocess.run(["git", "-C", self.tree, "add", "-A"], check=True)
        words = "What does walrus_password return?"
        s = self.serve("llama", ["Nothing."])
        run = self.kvist("-p", words, "--json", "--ephemeral", "--endpoint", self.ELSEWHERE, env={"http_proxy": s.url})
        events = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual(self.answer(events), "Nothing.", run.stderr)
        sent = bytes_of(s.requests[0]["prompt"]).decode()
        self.assertIn("public-3", sent)  # the control: it is searched for
        self.assertNotIn("very-secret", sent)
        s = self.serve("llama", ["All."])
        self.ask(s, "--ephemeral", text=words)
        self.assertIn("very-secret-1", bytes_of(s.requests[0]["prompt"]).decode())

    def test_asked_once_for_each_tree(self):
        s = self.serve("llama", ["One."] * 3)
        for i, word in enumerate(("n", "y", None)):
            master, slave = pty.openpty()
            run = subprocess.Popen([KVIST, "-p", "x", "--ephemeral"], stdin=slave, stderr=slave, stdout=subprocess.PIPE,
                                   env=dict(self.env, KVIST_ENDPOINT=self.ELSEWHERE, http_proxy=s.url), cwd=self.tree)
            os.close(slave)
            if word:
                shown = b""
                while b"[y/N]" not in shown:
                    shown += os.read(master, 4096)
                self.assertIn(self.ELSEWHERE.encode(), shown)
                self.assertIn(b"WITHOUT ENCRYPTION", shown)
                os.write(master, word.encode() + b"\n")
            out = run.communicate(timeout=PATIENCE)[0]
            os.close(master)
            self.assertEqual(run.returncode, 3 if word == "n" else 0)
            self.assertEqual(out.strip(), b"" if word == "n" else b"One.")
            self.assertEqual(len(s.requests), i)

    def test_a_path_as_the_name_of_a_model(self):
        for name, shown in (("/models/small/toy-1b.gguf", "toy-1b.gguf"), ("m/toy.gguf", "toy.gguf"), ("some/Toy-1B", "some/Toy-1B")):
            s = self.serve("llama", model=name)
            run = self.kvist("doctor", "--endpoint", s.url)
            self.assertIn(f"serves {shown}, ", run.stdout)
            self.ask(s, "--ephemeral")
            self.assertEqual(len(s.requests), 1)

    def test_doctor(self):
        for kind, words in (("llama", "llama-server"), ("vllm", "vLLM 0.32.0"), ("sglang", "SGLang"), ("sglang_chat", "SGLang"), ("chat", "a chat endpoint")):
            run = self.kvist("doctor", "--endpoint", self.serve(kind).url)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(f"endpoint   {words} at http://127.0.0.1", run.stdout)
            self.assertIn("stays on this machine", run.stdout)
            self.assertIn("calls held to a grammar: " + ("no" if kind == "chat" else "yes"), run.stdout)
            self.assertIn("a budget in spans: " + ("no" if "chat" in kind else "yes"), run.stdout)
            self.assertIn("doubts     " + ("not told (asked by messages)" if "chat" in kind else "told: further attempts"), run.stdout)
        loading = self.serve("llama")
        loading.faults["/props"] = [lambda h: loading.fail(h, 503, "Loading model")] * 3
        run = self.kvist("doctor", "--endpoint", loading.url)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr.count("is not ready (503): Loading model (asked again, for at most 60 s)"), 1, run.stderr)
        self.assertIn("endpoint   llama-server at", run.stdout)
        late = self.serve("llama")
        late.faults["/props"] = [lambda h: time.sleep(4) or late.fail(h, 503, "Loading model"), lambda h: time.sleep(4) or late.llama(h, "/props", {})]
        run = self.kvist("doctor", "--endpoint", late.url)
        self.assertIn("endpoint   llama-server at", run.stdout)
        self.assertEqual(run.stderr.count("has sent nothing for 3 s: it may be loading its model"), 1, run.stderr)  # of two requests
        hung = self.serve("llama")
        hung.faults["/props"] = lambda h: h.connection.recv(1)
        run = self.kvist("doctor", "--endpoint", hung.url, "--endpoint-wait", "1")
        self.assertEqual(run.returncode, 1)
        self.assertIn("took the request and sent nothing for 1 s; it may be loading its model, or computing for somebody else", run.stdout)
        silent = self.serve("vllm")
        silent.tells_scores = False
        self.assertIn("doubts     not told (it does not tell how likely", self.kvist("doctor", "--endpoint", silent.url).stdout)
        several = self.serve("vllm", models=["a-1b", "b-1b"])
        self.assertIn("choose one with --model: a-1b, b-1b", self.kvist("doctor", "--endpoint", several.url).stdout)
        run = self.kvist("doctor", "--endpoint", several.url, "--model", "b-1b", "--json")
        self.assertIn("serves b-1b, ", json.loads(run.stdout)["endpoint"])
        self.assertEqual(json.loads(run.stdout)["there"]["where its blocks are"], "with --engine-events")
        run = self.kvist("doctor", "--endpoint", "http://127.0.0.1:1", "--endpoint-wait", "1", "--json")
        self.assertEqual(run.returncode, 1)
        self.assertIn("nothing answers", json.loads(run.stdout)["endpoint"])


if __name__ == "__main__":
    main()
