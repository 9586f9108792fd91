#!/usr/bin/env python3
"""What comes over the network: changed on the way, cut off, another file, without end."""
import hashlib
import http.server
import os
import shutil
import threading

from kit import SMALL, Hostile, main


class Download(Hostile):
    def setUp(self):
        super().setUp()
        self.served = os.path.join(self.folder, "served")
        os.mkdir(self.served)
        served = self.served

        class Quiet(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *words, **more):
                super().__init__(*words, directory=served, **more)

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.models = os.path.join(self.home, "data", "models")

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()
        super().tearDown()

    def serve(self, name, data):
        with open(os.path.join(self.served, name), "wb") as f:
            f.write(data)
        return hashlib.sha256(data).hexdigest()

    def get(self, name, *words):
        return self.kvist("model", "get", self.url + name, *words)

    def test_http_needs_a_hash(self):
        self.serve("m.gguf", b"GGUF" + bytes(100))
        for url in (self.url, self.url.replace("http:", "HTTP:")):
            run = self.kvist("model", "get", url + "m.gguf")
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn("--sha256", run.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.models, "m.gguf")))

    def test_a_file_that_nobody_vouched_for_is_named_and_remembered(self):
        if not os.path.exists(SMALL):
            self.skipTest("scripts/fetch small")
        with open(SMALL, "rb") as f:
            data = f.read()
        found, path = self.serve("m.gguf", data), os.path.join(self.models, "m.gguf")
        url = "file://" + os.path.join(self.served, "m.gguf")  # as https: whoever answers is known, what comes is not
        run = self.kvist("model", "get", url)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"sha256 {found}: nobody said what it has to be", run.stdout)
        with open(path + ".sha256") as f:
            self.assertEqual(f.read(), f"{found}  m.gguf\n")
        self.assertIn(", sha256)", self.kvist("model", "check", path).stdout)  # the control
        changed = bytearray(data)
        changed[-1] ^= 1
        with open(path, "wb") as f:
            f.write(changed)
        run = self.kvist("model", "check", path)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("was " + found, run.stderr)
        os.remove(path)
        self.serve("m.gguf", bytes(changed))
        run = self.kvist("model", "get", url)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("not what was fetched before", run.stderr)
        self.assertFalse(os.path.exists(path))
        self.serve("m.gguf", data)
        self.assertIn("as when it was fetched before", self.kvist("model", "get", url).stdout)

    def test_another_file_than_was_promised_is_removed(self):
        self.serve("m.gguf", b"GGUF evil")
        run = self.get("m.gguf", "--sha256", hashlib.sha256(b"GGUF good").hexdigest())
        self.assertEqual(run.returncode, 1)
        self.assertIn("sha256", run.stderr)
        self.assertEqual([name for name in os.listdir(self.models)], [])

    def test_what_is_no_model_does_not_block_the_next_attempt(self):
        for data in (b"GGUF" + bytes(100), b"<html>not found</html>", b""):
            run = self.get("m.gguf", "--sha256", self.serve("m.gguf", data))
            self.assertEqual(run.returncode, 1, data)
            self.assertFalse(os.path.exists(os.path.join(self.models, "m.gguf")), data)
        self.assertIn("m.gguf.damaged", os.listdir(self.models))
        if os.path.exists(SMALL):  # the control: what is a model is kept
            shutil.copy(SMALL, os.path.join(self.served, "m.gguf"))
            with open(SMALL, "rb") as f:
                run = self.get("m.gguf", "--sha256", hashlib.sha256(f.read()).hexdigest())
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertTrue(os.path.exists(os.path.join(self.models, "m.gguf")))

    def test_names_that_lead_elsewhere(self):
        for name in ("../x.gguf", "..%2fx.gguf", ".x.gguf", "-x.gguf", "a%00.gguf", "x.gguf/", "x;y.gguf", "x y.gguf", "\u202ex.gguf"):
            run = self.get(name, "--sha256", "0" * 64)
            self.assertNotEqual(run.returncode, 0, name)
        for folder, _, names in os.walk(self.folder):
            self.assertFalse([n for n in names if n.endswith(".gguf") and folder != self.served], folder)

    def test_a_link_in_the_place_of_the_part_is_not_followed(self):
        os.makedirs(self.models)
        target = os.path.join(self.folder, "precious")
        with open(target, "w") as f:
            f.write("precious")
        os.symlink(target, os.path.join(self.models, "m.gguf.part"))
        run = self.get("m.gguf", "--sha256", self.serve("m.gguf", b"GGUF evil"))
        self.assertEqual(run.returncode, 1)
        with open(target) as f:
            self.assertEqual(f.read(), "precious")


main()
