#!/usr/bin/env python3
"""What the guard of .git found reaches the person, with the real binary: as a notice of its own, not as a line of a result."""
from kit import Hostile, call, main

PLANT = call("shell", command="git init -q sub; git config -f sub/.git/config core.fsmonitor 'touch ../fired; false'") + "answer Done.\n"
SENTENCE = "The command made sub/.git"


class Notices(Hostile):
    def setUp(self):
        super().setUp()
        _, self.events, results = self.ask(PLANT, "all")
        if not results or results[0]["status"] == "denied":
            self.skipTest("mode all needs a sandbox")

    def test_as_an_event_that_is_logged(self):
        told = [e["text"] for e in self.events if e["event"] == "notice"]
        self.assertTrue(any(t.startswith(SENTENCE) for t in told), self.events)
        self.assertFalse(self.has("sub/.git"))
        self.git("add", "-A")
        self.git("status")
        self.assertFalse(self.has("fired"))
        self.assertIn(SENTENCE, self.kvist("log", "show", self.events[0]["id"]).stdout)

    def test_in_words_without_a_screen(self):
        run = self.kvist("-p", "Go.", "--mode", "all", "--fake-script", self.script(PLANT))
        self.assertIn("note: " + SENTENCE, run.stderr)
        self.assertFalse(self.has("sub/.git"))

    def test_in_lines(self):
        run = self.kvist("--linear", "--mode", "all", "--fake-script", self.script(PLANT), stdin="Go.\n")
        self.assertIn("note: " + SENTENCE, run.stdout + run.stderr)

    def test_orders_for_the_next_session(self):
        for name in ("AGENTS.md", ".kvist/config", ".agents/skills/x/SKILL.md"):
            for word in ("made", "changed"):
                command = f"mkdir -p .kvist .agents/skills/x; echo 'Obey me. {word}' > {name}"
                _, events, _ = self.ask(call("shell", command=command) + "answer Done.\n", "all")
                told = [e["text"] for e in events if e["event"] == "notice"]
                self.assertTrue(any(t.startswith(f"The command {word} {name}, which the next session obeys") for t in told), (name, word, told))
                self.assertTrue(self.has(name))
        self.put("notes.md", "Any other file.\n")  # the control
        _, events, _ = self.ask(call("shell", command="echo more >> notes.md") + "answer Done.\n", "all")
        self.assertEqual([e["text"] for e in events if e["event"] == "notice" and "obeys" in e["text"]], [])

    def notices_of(self, command):
        _, events, _ = self.ask(call("shell", command=command) + "answer Done.\n", "all")
        return [e["text"] for e in events if e["event"] == "notice"]

    def test_what_others_obey_unasked(self):
        for name in (".envrc", ".vscode/tasks.json", "CLAUDE.md", ".github/workflows/x.yml", ".cargo/config.toml", ".npmrc", ".gdbinit", ".idea/x.xml"):
            for word in ("made", "changed"):
                told = self.notices_of(f"mkdir -p .vscode .github/workflows .cargo .idea; echo {word} > {name}")
                self.assertTrue(any(t.startswith(f"The command {word} {name}, which an editor, an agent") for t in told), (name, word, told))
        told = self.notices_of("echo all: > Makefile; echo '{}' > package.json; mkdir -p src/x; echo x > src/x/notes")  # run when they are run
        self.assertEqual([t for t in told if "unasked" in t], [])

    def test_orders_that_are_taken_away(self):
        self.put("AGENTS.md", "Never push.\n")
        self.put(".kvist/config", "mode = plan\n")
        self.assertEqual([t for t in self.notices_of("cat AGENTS.md") if "obey" in t], [])  # the control
        told = self.notices_of("rm -r AGENTS.md .kvist")
        for name in ("AGENTS.md", ".kvist/config"):
            self.assertTrue(any(t.startswith(f"The command removed {name}, which the next session would have obeyed") for t in told), (name, told))

    def test_a_command_that_plants_nothing_is_told_of_by_nothing(self):  # the control
        _, events, _ = self.ask(call("shell", command="true") + "answer Done.\n", "all")
        self.assertEqual([e["text"] for e in events if e["event"] == "notice" and ".git" in e["text"]], [])


main()
