#!/usr/bin/env python3
"""Every promise of docs/security.md has a row in docs/promises.md, and every test that one names is there."""
import os
import re
import sys

TOP = sys.argv[1]


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as f:
        return f.read()


def main():
    promised = read("docs", "security.md").split("\n## Promised\n")[1].split("\n## ")[0]
    titles = re.findall(r"^- \*\*(.+?)\*\*", promised, re.M)
    rows = [line for line in read("docs", "promises.md").splitlines() if line.startswith("| ") and "`" in line]
    wrong = [f"no row begins with the promise \"{t}\"" for t in titles if not any(r.startswith(f"| **{t.rstrip('.')}**") for r in rows)]
    n = 0
    for row in rows:
        held = row.split(" | ", 1)[1]
        parts = re.findall(r"`([^`]+\.(?:c|py))`: ((?:`[^`]+`(?:, )?)+)", held)
        if not parts:
            wrong.append(f"no test in: {row}")
        for file, names in parts:
            path = os.path.join(TOP, "tests", file)
            text = read("tests", file) if os.path.exists(path) else ""
            if not text:
                wrong.append(f"tests/{file} is not there")
            for name in re.findall(r"`([^`]+)`", names):
                n += 1
                if text and name not in text:
                    wrong.append(f"tests/{file} has no {name}")
    if not titles or n < len(titles):
        wrong.append("nothing was read")
    for w in wrong:
        print(f"docs/promises.md: {w}", file=sys.stderr)
    return bool(wrong)


sys.exit(main())
