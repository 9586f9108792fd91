"""A budget in spans: what is cut, what that costs on this server, what comes back."""
import json
import os

from remote_case import Remote, main
from server import bytes_of


class Budget(Remote):
    FILES = 8

    def put_big_files(self):
        """Of 1,500 bytes each, so of as many tokens here, each with a name of its own in it."""
        for i in range(self.FILES):
            body = "".join(f"    total{i} += step{i}({k});\n" for k in range(48))
            self.put(f"src/f{i}.c", f"int walrus{i}(int x)\n{{\n{body}    return x;\n}}\n")

    def long_session(self, server, *words, more=()):
        """One file a turn; what the log says, request by request."""
        self.put_big_files()
        lines = [f"What does @src/f{i}.c do?" for i in range(self.FILES)] + list(more)
        run = self.kvist("--linear", "--endpoint", server.url, "--context", "off", *(() if "--mode" in words else ("--mode", "edits")),
                         *words, stdin="\n".join(lines) + "\n")
        log = [json.loads(line) for line in self.kvist("log", "export", self.last_session()).stdout.splitlines()]
        return run, log

    def is_part(self, part, whole):
        rest = iter(whole)
        return all(any(x == y for y in rest) for x in part)

    def cuts(self, log):
        return [e for e in self.of(log, "plan") if e["cause"] == "evict"]

    def check_requests(self, log, budget):
        """Never above the budget by more than a message; each hit as predicted, but for the first that shows whether rows move."""
        requests = self.of(log, "request")
        for r in requests:
            self.assertLess(r["sent"], budget + 2500)
        return requests

    def test_what_is_sent_is_held_to_a_budget(self):
        budget = 9000
        s = self.serve("llama", [f"It sums {i}." for i in range(20)])
        run, log = self.long_session(s, "--kv-budget", str(budget))
        self.assertEqual(len(s.requests), self.FILES, run.stdout + run.stderr)
        cuts = self.cuts(log)
        self.assertGreaterEqual(len(cuts), 2, run.stdout)
        for cut in cuts:
            self.assertTrue(cut["runs"])
            self.assertEqual(cut["evicted"], sum(r[1] - r[0] for r in cut["runs"]))
        requests = self.check_requests(log, budget)
        paid = [r for r in requests if "were shown" in r.get("why", "")]
        self.assertEqual(len(paid), len(cuts))
        for r in paid:  # this server moves nothing, and two short requests told so
            self.assertNotIn("at most", r["why"])
            shown, cost = self.shown_and_paid(r)
            self.assertEqual(shown, cost, r["why"])
        for r in requests:
            self.assertEqual(r["cached"], r["predicted"], r)
        whole = bytes_of(s.requests[0]["prompt"]).decode()
        last = bytes_of(s.requests[-1]["prompt"]).decode()
        self.assertEqual(last[:whole.index("<|im_start|>user")], whole[:whole.index("<|im_start|>user")])  # the fixed prompt
        self.assertIn("int walrus7", last)
        self.assertLess(sum(f"int walrus{i}(" in last for i in range(self.FILES)), self.FILES - 1)
        self.assertIn("Put aside for lack of room", "".join(bytes_of(r["prompt"]).decode() for r in s.requests))
        self.assertEqual(last.count("<|im_start|>"), last.count("<|im_end|>") + 1)  # messages stay whole

    def shown_and_paid(self, request):
        words = request["why"].replace("at most ", "").split("a cut: ")[1].split()
        return tuple(int(words[at].replace(",", "")) for at in (0, words.index("shown,") + 1))

    def test_a_server_that_moves_rows(self):
        """Two short requests in front of the first tell; then nothing is shown and nothing is paid."""
        s = self.serve("llama", [f"It sums {i}." for i in range(20)])
        s.moves = True
        run, log = self.long_session(s, "--kv-budget", "9000")
        self.assertEqual([len(p["prompt"]) for p in s.probes], [36, 33])
        paid = [r["why"] for r in self.of(log, "request") if "were shown" in r.get("why", "")]
        self.assertGreaterEqual(len(paid), 2, run.stdout)
        for why in paid:
            self.assertNotIn("at most", why)
            shown, cost = self.shown_and_paid({"why": why})
            self.assertEqual(shown, cost)
            self.assertLess(cost, 100)
        for r in self.of(log, "request"):
            self.assertEqual(r["cached"], r["predicted"], r)
        self.assertEqual(["n_cache_reuse" in r for r in s.requests[:6]], [False] * 4 + [True] * 2)  # only behind a cut

    def test_a_server_of_which_the_probe_learns_nothing(self):
        """The first cut tells, as far as it can."""
        s = self.serve("llama", [f"It sums {i}." for i in range(20)])
        s.moves = None
        run, log = self.long_session(s, "--kv-budget", "9000")
        self.assertEqual(len(s.probes), 1)
        paid = [r["why"] for r in self.of(log, "request") if "were shown" in r.get("why", "")]
        self.assertGreaterEqual(len(paid), 2, run.stdout)
        self.assertEqual(["at most" in why for why in paid], [True] + [False] * (len(paid) - 1))
        for why in paid:
            shown, cost = self.shown_and_paid({"why": why})
            self.assertEqual(shown, cost, why)

    def test_what_was_put_aside_comes_back(self):
        s = self.serve("llama", [f"It sums {i}." for i in range(20)])
        run, log = self.long_session(s, "--kv-budget", "9000")
        seen = bytes_of(s.requests[-1]["prompt"]).decode()
        gone = next(i for i in range(self.FILES) if f"int walrus{i}(" not in seen)
        run, events = self.ask(s, "--resume", "--context", "off", text=f"What does walrus{gone} return for step{gone}?")
        last = bytes_of(s.requests[-1]["prompt"]).decode()
        self.assertIn(f"From earlier in this session (src/f{gone}.c:1-", last, run.stderr)
        self.assertTrue(last.startswith(seen))  # in front of the request, behind all that was sent
        back = [e for e in self.of(events, "append") if e.get("label") == "back"]
        self.assertEqual([e["path"] for e in back], [f"src/f{gone}.c"])
        self.ask(s, "--resume", "--context", "off", text="What is the weather like?")
        self.assertTrue(bytes_of(s.requests[-1]["prompt"]).decode().startswith(last))

    def test_a_resumed_session_sends_what_it_sent(self):
        s = self.serve("llama", [f"It sums {i}." for i in range(20)])
        self.long_session(s, "--kv-budget", "9000")
        before = s.requests[-1]["prompt"]
        run, events = self.ask(s, "--resume", "--context", "off", text="And?")
        after = s.requests[-1]["prompt"]
        self.assertEqual(after[:len(before)], before, run.stderr)
        self.assertEqual(self.of(events, "ledger")[-1]["budget"], 9000)

    def test_a_rewind_takes_tokens_that_are_out_along(self):
        s = self.serve("llama", [f"It sums {i}." for i in range(20)])
        run, log = self.long_session(s, "--kv-budget", "9000", more=["/rewind 2", "What now?"])
        last = bytes_of(s.requests[-1]["prompt"]).decode()
        self.assertIn("What now?", last, run.stdout)
        self.assertNotIn("walrus3", last)

    def test_the_price_is_asked_for(self):
        """In mode ask: no, then nothing until there is a tenth more; then yes."""
        self.put_big_files()
        s = self.serve("llama", [f"It sums {i}." for i in range(20)])
        lines = [f"What does @src/f{i}.c do?" for i in range(5)] + ["n"] + ["What does @src/f5.c do?", "y", "And?"]
        run = self.kvist("--linear", "--endpoint", s.url, "--context", "off", "--mode", "ask", "--kv-budget", "9000",
                         stdin="\n".join(lines) + "\n")
        log = [json.loads(line) for line in self.kvist("log", "export", self.last_session()).stdout.splitlines()]
        asked = self.of(log, "approval_request")
        self.assertEqual([e["decision"] for e in self.of(log, "approval")], ["no", "yes"], run.stdout)
        self.assertRegex(asked[0]["headline"], r"put aside [\d,]+ of [\d,]+ tokens; [\d,]+ tokens behind the cut are computed again")
        self.assertEqual([len(self.cuts(log)), len(s.requests)], [1, 7], run.stdout)

    def test_a_budget_below_the_prompt(self):
        """Told once, with a number that holds; no cut is made that frees next to nothing."""
        s = self.serve("llama", [f"It sums {i}." for i in range(20)], n_ctx=200000)
        run, log = self.long_session(s, "--kv-budget", "2000")
        told = [e["text"] for e in self.of(log, "notice") if "is too small" in e["text"]]
        self.assertEqual(len(told), 1, run.stdout)
        enough = told[0].split("At least ")[1].split()[0]
        for cut in self.cuts(log):
            self.assertGreaterEqual(cut["evicted"], 100)
        run, events = self.ask(s, "--ephemeral", "--kv-budget", enough)
        self.assertEqual([e["text"] for e in self.of(events, "notice") if "is too small" in e["text"]], [])

    def test_budgets_that_mean_nothing_elsewhere(self):
        s = self.serve("llama", ["Fine."])
        for words, said in (("200M", "held to a budget of tokens"), ("8192/4096", "held to a budget of tokens"),
                            ("300", "no room for the fixed prompt"), ("many", "a budget is rows")):
            run = self.kvist("-p", "x", "--endpoint", s.url, "--ephemeral", "--kv-budget", words)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(said, run.stderr)
        self.assertEqual(s.requests, [])

    def test_the_budget_is_told(self):
        s = self.serve("llama", [f"It sums {i}." for i in range(20)])
        run, log = self.long_session(s, "--kv-budget", "full", more=["/budget", "/budget 9000", "/budget 3%", "And?", "/budget full"])
        self.assertIn("no budget: all ", run.stdout)
        self.assertRegex(run.stdout, r"budget 9,000 tokens of a request; [\d,]+ are sent, 0 are put aside")
        self.assertRegex(run.stdout, r"a cut to 6,300 now would put [\d,]+ tokens aside \(.*; [\d,]+ tokens behind the cut are computed again")
        self.assertEqual(len(self.cuts(log)), 1)
        run = self.kvist("--linear", "--resume", self.last_session(), "--endpoint", s.url, stdin="/budget 12M\n")
        self.assertIn("held to a budget of tokens", run.stdout + run.stderr)

    def test_doctor_asks_what_a_cut_costs(self):
        for moves, words in ((True, "moved, not computed again (n_cache_reuse): 32 tokens found, 20"), (False, "is computed again"),
                             (None, "it does not tell")):
            s = self.serve("llama")
            s.moves = moves
            out = self.kvist("doctor", "--endpoint", s.url).stdout
            self.assertIn(words, out)
            self.assertEqual([len(p["prompt"]) for p in s.probes], [36] + [33] * (moves is not None))
            self.assertEqual(s.requests, [])
        s = self.serve("llama", n_ctx=73)
        self.assertIn("not known", self.kvist("doctor", "--endpoint", s.url).stdout)
        self.assertEqual(s.probes, [])
        s = self.serve("vllm")
        self.assertNotIn("cuts", self.kvist("doctor", "--endpoint", s.url).stdout)

    def test_what_a_cut_costs_is_asked_once_a_server(self):
        """Known by its address, model and build; doctor asks anew."""
        s = self.serve("llama")
        s.moves = True

        def probes_of(run):
            before = len(s.probes)
            run()
            return len(s.probes) - before

        def session():
            self.ask(s, "--ephemeral", "--context", "off")

        self.assertEqual([probes_of(session), probes_of(session)], [2, 0])
        s.build = "b2"
        self.assertEqual([probes_of(session), probes_of(session)], [2, 0])
        s.model, s.models = "other-1b", ["other-1b"]
        self.assertEqual([probes_of(session), probes_of(session)], [2, 0])
        self.assertEqual(probes_of(lambda: self.kvist("doctor", "--endpoint", s.url)), 2)
        other = self.serve("llama", model="other-1b")
        other.build = "b2"
        self.ask(other, "--ephemeral")
        self.assertEqual(len(other.probes), 2)  # another address
        rows = os.path.join(self.home, "data", "rows")
        kept = [os.path.join(rows, name) for name in os.listdir(rows) if name.endswith(".moves")]
        self.assertEqual(len(kept), 4)
        for path in kept:
            with open(path, "w") as f:
                f.write("moved\n\0 or not")
        self.assertEqual([probes_of(session), probes_of(session)], [2, 0])  # nonsense is as nothing

    def test_a_server_that_moves_rows_no_longer(self):
        """What was kept of it is wrong: the first cut shows that, and the next session asks again."""
        s = self.serve("llama", [f"It sums {i}." for i in range(40)])
        s.moves = True
        self.ask(s, "--ephemeral", "--context", "off")
        s.moves = False
        run, log = self.long_session(s, "--kv-budget", "9000")
        paid = [r["why"] for r in self.of(log, "request") if "were shown" in r.get("why", "")]
        self.assertGreaterEqual(len(paid), 2, run.stdout)
        (shown, cost), (later, cost_later) = [self.shown_and_paid({"why": why}) for why in paid[:2]]
        self.assertLess(shown + 1000, cost)
        self.assertEqual(["at most" in why for why in paid[:2]], [False, True], paid)  # not known any more
        self.assertLessEqual(cost_later, later)
        self.assertEqual(len(s.probes), 2)
        self.ask(s, "--ephemeral", "--context", "off")
        self.assertEqual(len(s.probes), 4)


if __name__ == "__main__":
    main()
