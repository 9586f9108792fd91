"""What an engine publishes of its cache (--engine-events): which blocks are where."""
import json
import struct
import threading

from remote_case import PATIENCE, Remote, call, main
from server import Publisher


class Published(Remote):
    def test_blocks_are_listened_to(self):
        """Where an engine publishes what its cache holds, each turn's ledger says where that is; so it does where that comes behind the answer."""
        for kind, late in (("vllm", 0), ("sglang", 0), ("vllm", .2)):
            s = self.serve(kind, ["One.", "Two.", "Three."])
            s.block, s.publisher = 32, Publisher()
            s.publisher.late = late
            run = self.kvist("--linear", "--endpoint", s.url, "--engine-events", s.publisher.address, "--context", "off",
                             stdin="One?\nTwo?\nThree?\n")
            s.publisher.close()
            if "built without ZeroMQ" in run.stderr:
                return
            log = [json.loads(line) for line in self.kvist("log", "export", self.last_session()).stdout.splitlines()]
            asked = self.of(log, "request")
            self.assertEqual(len(asked), 3, run.stdout + run.stderr)
            for r, sent in zip(asked, s.requests):
                self.assertEqual(r["cached"], r["predicted"])
                n = len(sent["prompt"]) + {0: 4, 1: 4, 2: 6}[asked.index(r)]
                self.assertEqual((r["gpu"], r.get("gone", 0)), (n // 32 * 32, 0), r)
                self.assertEqual(r["blocks"], [[0, r["gpu"], "gpu"], [r["gpu"], r["gpu"] + r["unknown"], "unknown"]])
                found = [[0, r["cached"], "found"]] if r["cached"] else []
                self.assertEqual(r["parts"], found + [[r["cached"], r["sent"], "computed"]])
                self.assertLess(r["unknown"], 32 + 2)
            self.assertIn("of all on the GPU", run.stdout)

    def test_what_is_published_without_end_is_not_read_without_end(self):
        s = self.serve("vllm", ["One."])
        s.block, s.publisher = 32, Publisher()
        s.publisher.send = lambda events: None  # an event of the server's own would wait behind the flood, and the answer behind it
        ended = threading.Event()

        def flood():
            many, one = b"\xcc\x80" * 100000, struct.pack(">Q", 0)  # numbers, each a token of what is no event
            payload = b"\x92\xc0\xdc\x00\x01\xdd" + struct.pack(">I", 100000) + many
            message = b"\x01\x00" + b"\x01\x08" + one + b"\x02" + struct.pack(">Q", len(payload)) + payload
            s.publisher.subscribed.wait(PATIENCE)
            try:
                while not ended.is_set():
                    s.publisher.listeners[0].sendall(message)
            except OSError:
                pass
        threading.Thread(target=flood, daemon=True).start()
        run, events = self.ask(s, "--engine-events", s.publisher.address, "--context", "off", "--ephemeral")
        ended.set()
        if "built without ZeroMQ" not in run.stderr:
            self.assertEqual(len(self.of(events, "request")), 1, run.stderr)

    def test_blocks_that_are_gone(self):
        s = self.serve("vllm", [{"text": call("read", path="src/one.c"), "drops": 2}, "Two."])
        s.block, s.publisher = 32, Publisher()
        run, events = self.ask(s, "--engine-events", s.publisher.address, "--context", "off", "--ephemeral")
        if "built without ZeroMQ" in run.stderr:
            return
        one, two = self.of(events, "request")
        self.assertEqual((one["gpu"], one["gone"] > 1000), (64, True))
        self.assertEqual(one["blocks"][:2], [[0, 64, "gpu"], [64, 64 + one["gone"], "gone"]])
        self.assertEqual((two["predicted"], two["cached"], two.get("gone", 0)), (64, 64, 0))
        for address, words in (("tcp://*:5557", "where the engine publishes"), ("127.0.0.1:5557", "where the engine publishes"),
                               ("tcp://nowhere:x", "--engine-events tcp://nowhere:x: ")):
            run = self.kvist("-p", "x", "--endpoint", s.url, "--engine-events", address, "--ephemeral")
            self.assertIn(words, run.stderr)
            self.assertEqual(run.returncode, 2, run.stderr)


if __name__ == "__main__":
    main()
