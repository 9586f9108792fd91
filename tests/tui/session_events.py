"""Writes session.events, the recorded session that the screen tests show: two turns of work on a C tree, with rows evicted and
promoted. Run it when the events change: python3 tests/tui/session_events.py > tests/tui/session.events"""
import json

LANES = 56
n = 0
turn = 0


def emit(event, **fields):
    print(json.dumps({"event": event, **fields}, ensure_ascii=False, separators=(",", ":")))


def pieces(text):
    """Words with the blank before them: close to what a tokenizer gives."""
    out, word = [], ""
    for c in text:
        if word and (c in " \n(){};.,*" or word[-1] in "\n(){};.,*"):
            out.append(word)
            word = ""
        word += c
    if word:
        out.append(word)
    return out


def append(origin, text, **fields):
    global n
    tokens = pieces(text)
    emit("append", turn=turn, **{"from": n}, n=len(tokens), origin=origin, text=text, lens=[len(t.encode()) for t in tokens], **fields)
    n += len(tokens)
    return n - len(tokens), n


def say(text):
    global n
    for t in pieces(text):
        emit("token", id=7, index=n, text=t)
        n += 1


def user(text):
    global turn
    turn += 1
    emit("user", turn=turn, text=text, time_ms=0)
    append("user", text)


FILE = "".join(f"static int part_{i}(struct log *log, int turn)\n{{\n    int rc = write_rows(log, turn + {i});\n    return rc;\n}}\n\n" for i in range(40))

emit("session", schema=1, id="20260101-7f3a", model="qwen2.5-coder-1.5b-instruct-q4_k_m", policy="snapkv", budget=2048, n_ctx=32768,
     n_lanes=LANES, row_bytes=28672, mode="ask", root="/home/you/kvist", branch="main*", time_ms=0)
system = append("system", "You are kvist, a coding agent. " * 12)
append("instructions", "Tests run with make check.\n", path="AGENTS.md")

user("why does resume lose the last turn?")
emit("context", turn=1, items=[{"path": "src/agent/log.c", "line": 12, "end": 48, "name": "log_commit", "why": "commit, turn", "tokens": 412},
                               {"path": "src/agent/log.h", "line": 3, "end": 20, "why": "log", "tokens": 130}])
append("context", FILE[:900], path="src/agent/log.c", line=12)
emit("prefill", turn=1, done=0, total=640)
emit("prefill", turn=1, done=512, total=640)
emit("prefill", turn=1, done=640, total=640)
say("I will look at where turns are committed.\n<tools>{\"name\":\"read\",\"arguments\":{\"path\":\"src/agent/log.c\"}}</tools>")
emit("tool_call", turn=1, name="read", arguments={"path": "src/agent/log.c"}, headline="read src/agent/log.c 1-240")
emit("tool_result", turn=1, name="read", status="ok", bytes=len(FILE), text=FILE[:400], summary="240 lines", exit_code=-1, ms=3)
first, last = append("tool", FILE, path="src/agent/log.c", line=1)
for i in range(first, last, 48):
    emit("span", **{"from": i}, to=min(i + 9, last), reason="signature", weight=1.0)
runs = []
for k, i in enumerate(range(first + 9, last - 96, 48)):
    runs.append([i, i + 39, "evict", "budget", 20 if k % 7 == 3 else LANES])
kept = [[i, min(i + 9, last), "protect", "signature", LANES] for i in range(first, last, 48)]
evicted = round(sum((to - at) * lanes for at, to, _, _, lanes in runs) / LANES)
emit("plan", turn=1, cause="evict", runs=sorted(runs + [[0, system[1], "protect", "system", LANES]] + kept), evicted=evicted, promoted=0, n=n, score_ms=2.0, plan_ms=0.4)
say("<tools>{\"name\":\"rewrite\",\"arguments\":{\"path\":\"src/agent/log.c\"}}</tools>")
BODY = "static int log_commit(struct log *log, int turn)\n{\n    int rc = log_rows(log, turn);\n    return rc ? rc : commit(log);\n}\n"
emit("tool_call", turn=1, name="rewrite", arguments={"path": "src/agent/log.c"}, payload=BODY, headline="rewrite log_commit in src/agent/log.c")
DIFF = """--- a/src/agent/log.c
+++ b/src/agent/log.c
@@ -12,7 +12,9 @@ static int log_commit(struct log *log, int turn)
 {
-    sqlite3_exec(log->db, "COMMIT", NULL, NULL, NULL);
+    int rc = log_rows(log, turn);
+    if (rc) return rc;
+    rc = sqlite3_exec(log->db, "COMMIT", NULL, NULL, NULL);
     return 0;
 }
"""
emit("approval_request", turn=1, name="rewrite", headline="rewrite log_commit in src/agent/log.c", detail=DIFF, power="writes")
emit("approval", turn=1, decision="yes")
emit("tool_result", turn=1, name="rewrite", status="ok", bytes=20, text="written", summary="+3 -1", diff=DIFF, exit_code=-1, ms=8, changed=["src/agent/log.c"])
append("tool", "written: src/agent/log.c\n", label="rewrite")
answer = """The `COMMIT` ran **before** the tool rows were written, so a resume found the turn without them.

- `log_commit` now writes the rows first
- an error is returned, not lost

```c
static int log_commit(struct log *log, int turn)
{
    int rc = log_rows(log, turn); // rows first
    return rc ? rc : commit(log, "COMMIT");
}
```
日本語の幅も正しい。"""
say(answer)
emit("answer", turn=1, text=answer)
emit("places", turn=1, items=[{"path": "src/agent/log.c", "line": 12, "name": "log_commit", "status": "found"}])
emit("ledger", turn=1, new=n, reused=0, generated=140, evicted=evicted, promoted=0, protected=610, active=n - evicted, host=evicted, budget=2048, n=n, ctx=32768,
     prefill_s=3.2, decode_tps=18.4, active_bytes=(n - evicted) * 28672, host_bytes=evicted * 28672, why=f"{n - 2048} over budget: {evicted} rows below the cut")
emit("turn_end", turn=1, status="ok", time_ms=0)

user("run the tests")
back = [[first + 9 + 48 * k, first + 9 + 48 * k + 14, "promote", "repair-anchor", LANES] for k in (2, 9, 14)]
emit("plan", turn=2, cause="repair", runs=back, evicted=0, promoted=42, n=n, score_ms=1.0, plan_ms=0.1, again=21)
say("<tools>{\"name\":\"shell\",\"arguments\":{\"command\":\"make check\"}}</tools>")
emit("tool_call", turn=2, name="shell", arguments={"command": "make check"}, headline="$ make check")
emit("approval_request", turn=2, name="shell", headline="$ make check", detail="make check", power="runs")
emit("approval", turn=2, decision="yes")
emit("tool_output", turn=2, text="  CC log.o\n")
emit("tool_output", turn=2, text="  TEST log\n")
emit("tool_result", turn=2, name="shell", status="failed", bytes=80, text="  CC log.o\n  TEST log\nlog_test.c:80: expected 3 rows, got 2\nmake: *** [check] Error 1\n",
     exit_code=2, ms=2140)
append("tool", "log_test.c:80: expected 3 rows, got 2\n", label="make check")
answer = "One test still fails: `log_test.c:80` expects 3 rows and got 2."
say(answer)
emit("answer", turn=2, text=answer)
emit("ledger", turn=2, new=96, reused=n - 96, generated=30, evicted=0, promoted=42, protected=618, active=n - evicted + 42, host=evicted - 42, budget=2048, n=n, ctx=32768,
     prefill_s=0.4, decode_tps=17.9, active_bytes=(n - evicted + 42) * 28672, host_bytes=(evicted - 42) * 28672, why="42 rows promoted: the request asks for them")
emit("turn_end", turn=2, status="ok", time_ms=0)
