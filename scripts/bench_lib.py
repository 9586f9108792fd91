"""What the bench scripts share: stopping where something that they judge with is missing, and asking kvist one thing."""
import glob
import json
import os
import subprocess
import sys
import time
import tomllib

MISSING = 77  # exit status: nothing was measured, because something is not here

top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
shared = os.environ.get("KVIST_SHARED", os.path.join(top, "..", "shared"))
default_kvist = os.path.join(top, "build", "src", "kvist")


def stop(sentence):
    """A bench that cannot judge counts nothing."""
    print(f"{os.path.basename(sys.argv[0])}: {sentence}", file=sys.stderr)
    sys.exit(MISSING)


def need_program(path, hint="build first, or name it with --kvist"):
    if not os.access(path, os.X_OK) or os.path.isdir(path):
        stop(f"there is no program {path}; {hint}")


def need_path(path, hint="set KVIST_SHARED, or name it with --data"):
    if not os.path.exists(path):
        stop(f"there is no {path}; {hint}")


def parse(parser):
    """The script's own options, and those that go to kvist as they are. With --endpoint the same requests go to an engine across HTTP."""
    parser.add_argument("--endpoint", default="", metavar="URL")
    options, passed_on = parser.parse_known_args()
    return options, [*(["--endpoint", options.endpoint] if options.endpoint else []), *passed_on]


def ask(command, limit):
    """One request: its events, its exit status ("timeout" after `limit` seconds) and its seconds. Stops when it was never begun."""
    started = time.monotonic()
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=limit)
        output, status, said = run.stdout, run.returncode, run.stderr
    except subprocess.TimeoutExpired as late:
        output, status, said = (late.stdout or b"").decode(errors="replace"), "timeout", (late.stderr or b"").decode(errors="replace")
    seconds = time.monotonic() - started
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{") and line.endswith("}")]
    if status != "timeout" and not any(event["event"] == "user" for event in events):
        stop(f"kvist ended with status {status} before it began the request: {said.strip() or 'it said nothing'}")
    return events, status, seconds


def request_commits():
    """The commit of each repository, as the books of requests name it; a sentence that names its own begins there."""
    found = {}
    for path in glob.glob(os.path.join(top, "tests", "requests", "**", "*.toml"), recursive=True):
        with open(path, "rb") as f:
            book = tomllib.load(f)
        found[book["repository"].replace("/", "+")] = book["commit"]
    return found


def clone_at(place, repos, repo, commit):
    """A clone of OWNER+NAME in repos, in place, at the commit."""
    source = os.path.join(repos, repo)
    if os.path.isdir(os.path.join(source, "repo")):
        source = os.path.join(source, "repo")
    need_path(source, "put a clone there or name the folder with --repos")
    tree = os.path.join(place, repo.split("+")[1])
    for command in (["git", "clone", "-q", source, tree], ["git", "-C", tree, "checkout", "-q", "-B", "work", commit]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            stop(f"{' '.join(command)}: {done.stdout.strip()}")
    return tree
