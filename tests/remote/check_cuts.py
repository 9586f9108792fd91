"""What cuts cost on a real engine: shown against paid. By hand, against a server that nobody else uses:

    tests/remote/check_cuts.py build/src/kvist URL TREE [--turns 20] [--budget 3000] [--seed 1] [--out FILE]

One session over a copy of TREE: each turn names a file or asks for one that was put aside. For each request: predicted and found;
for each cut: what was shown, what was paid, and the difference as a share of what the request sent. --out keeps the raw lines.
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile


def questions(tree, n, seed):
    draw = random.Random(seed)
    files = subprocess.run(["git", "-C", tree, "ls-files", "*.c", "*.h", "*.py", "*.js", "*.go"], capture_output=True, text=True,
                           check=True).stdout.split()
    files = [f for f in files if 800 < os.path.getsize(os.path.join(tree, f)) < 6000]
    draw.shuffle(files)
    seen, lines = [], []
    for i in range(n):
        if seen and draw.random() < .3:  # of an earlier file, by its words
            words = re.findall(r"[A-Za-z_]{6,}", open(os.path.join(tree, draw.choice(seen)), errors="replace").read())
            lines.append("And what about " + " ".join(draw.sample(words, min(3, len(words)))) + "?")
        else:
            seen.append(files[i % len(files)])
            lines.append(f"What is @{seen[-1]} for?")
    return lines


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("kvist")
    p.add_argument("url")
    p.add_argument("tree")
    p.add_argument("--turns", type=int, default=20)
    p.add_argument("--budget", default="3000")
    p.add_argument("--tokens", default="24", help="of an answer, at most")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out")
    o = p.parse_args()
    folder = tempfile.mkdtemp(prefix="kvist-cuts-")
    try:
        tree, data = os.path.join(folder, "tree"), os.path.expanduser("~/.local/share/kvist")
        subprocess.run(["git", "clone", "-q", o.tree, tree], check=True)
        env = dict(os.environ, KVIST_HOME=os.path.join(folder, "home"), KVIST_GRAMMAR_PATH=os.path.join(data, "grammars"))
        base = [os.path.abspath(o.kvist)]
        run = subprocess.run(base + ["--linear", "--endpoint", o.url, "--mode", "edits", "--context", "off", "--kv-budget", o.budget,
                                     "--temperature", "0", "--max-tokens", o.tokens], input="\n".join(questions(tree, o.turns, o.seed)) + "\n",
                             capture_output=True, text=True, errors="replace", env=env, cwd=tree)
        sessions = os.path.join(folder, "home", "data", "sessions")
        log = subprocess.run(base + ["log", "export", sorted(os.listdir(sessions))[-1]], capture_output=True, text=True, env=env, cwd=tree).stdout
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    events = [json.loads(line) for line in log.splitlines()]
    requests = [e for e in events if e["event"] == "request"]
    if not requests:
        sys.exit(run.stdout + run.stderr)
    kept = [e for e in events if e["event"] in ("request", "notice") or e["event"] == "plan"]
    if o.out:
        with open(o.out, "w") as f:
            f.writelines(json.dumps({k: v for k, v in e.items() if k != "runs"}) + "\n" for e in kept)
    exact = sum(r["cached"] == r["predicted"] for r in requests)
    within = sum(0 <= r["cached"] - r["predicted"] <= 1 for r in requests)
    cuts = [(re.search(r"a cut: (at most )?([\d,]+) tokens to compute again were shown, ([\d,]+) paid", r.get("why", "")), r) for r in requests]
    cuts = [(bool(m[1]), *(int(n.replace(",", "")) for n in m.groups()[1:]), r) for m, r in cuts if m]
    for most, shown, paid, r in cuts:
        print(f"turn {r['turn']}: sent {r['sent']}, shown {'at most ' if most else ''}{shown}, paid {paid}, found {r['cached']} of {r['predicted']}, "
              f"computed {r['computed']}")
    known = [(abs(shown - paid) / r["sent"] * 100) for most, shown, paid, r in cuts if not most]
    back = sum(e["event"] == "append" and e.get("label") == "back" for e in events)
    out = sum(e["evicted"] for e in events if e["event"] == "plan")
    print(f"{len(requests)} requests, {exact} found exactly what was predicted, {within} that or one more; largest difference "
          f"{max(abs(r['cached'] - r['predicted']) for r in requests)}")
    print(f"{len(cuts)} cuts of {out} tokens, {len(known)} of them with a price that was known; difference of shown and paid, percent of what was "
          f"sent: mean {sum(known) / max(1, len(known)):.2f}, most {max(known, default=0):.2f}; {back} texts came back")
    print(f"computed {sum(r['computed'] for r in requests)} of {sum(r['sent'] for r in requests)} tokens sent")


if __name__ == "__main__":
    main()
