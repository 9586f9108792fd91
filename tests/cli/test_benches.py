"""A bench whose judge, model or data is missing says so and counts nothing."""
import os
import subprocess
import unittest

from cli_case import BENCH, KVIST, PATIENCE, SHARED, Case, main


class Benches(Case):
    def refuses(self, name, *words, **env):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", name)
        run = subprocess.run([path, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(self.env, **env),
                             cwd=self.tree, timeout=PATIENCE)
        self.assertEqual((run.returncode, run.stdout), (77, ""), run.stderr)
        return run.stderr

    def test_programs_and_data_that_are_missing(self):
        for words in (["bench-quixbugs", "--kvist", "none"], ["bench-questions", "--kvist", "none"], ["bench-shell", "--kvist", "none"]):
            self.assertIn("there is no program none", self.refuses(*words))
        for words in (["bench-quixbugs", "--data", "none"], ["bench-questions", "--data", "none"]):
            self.assertIn("there is no none", self.refuses(*words, "--kvist", KVIST))
        for words in (["bench-cache", "headline"], ["bench-structure"]):
            self.assertIn("there is no none", self.refuses(*words, KVIST_BENCH="none"))
            self.assertIn("there is no none/data", self.refuses(*words, KVIST_BENCH=BENCH, KVIST_SHARED="none",
                                                               KVIST_RESULTS=os.path.join(self.folder, "results")))
        self.assertIn("llama.cpp is missing", self.refuses("bench-peers", KVIST_SHARED="none", KVIST_PEERS="none"))

    def test_a_request_that_was_never_begun_is_no_wrong_answer(self):
        questions, data = os.path.join(self.folder, "questions.jsonl"), os.path.join(self.folder, "repos")
        os.mkdir(data)
        subprocess.run(["git", "-C", self.tree, "bundle", "create", "-q", os.path.join(data, "tree.bundle"), "main"], check=True)
        with open(questions, "w") as f:
            f.write('{"repo": "tree", "question": "Which function doubles a number?", "symbol": "twice", "file": "src/one.c"}\n')
        said = self.refuses("bench-questions", "--kvist", KVIST, "--data", data, "--questions", questions)
        self.assertRegex(said, "before it began the request: kvist: the default model, [^ ]*, is not here")

    @unittest.skipUnless(os.path.isdir(os.path.join(SHARED, "data", "quixbugs")), "no QuixBugs")
    def test_a_judge_that_cannot_judge(self):
        for verdict in ("raise SystemExit('there is no pytest here')", "pass"):
            with open(os.path.join(self.folder, "pytest.py"), "w") as f:
                f.write(verdict)
            said = self.refuses("bench-quixbugs", "--kvist", KVIST, "--data", os.path.join(SHARED, "data", "quixbugs"), PYTHONPATH=self.folder)
            self.assertIn("does not tell the right gcd.py from the wrong one", said)


if __name__ == "__main__":
    main()
