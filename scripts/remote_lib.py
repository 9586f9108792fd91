"""What the answers of llama-server, vLLM and chat endpoints tell: for remote-proxy and remote-raw."""
import json


def events_of(data):
    """The JSON of each event of a stream, or of the whole answer."""
    if data[:1] == b"{":
        return [json.loads(data)]
    lines = data[:data.rfind(b"\n") + 1].split(b"\n")  # an agent that had enough leaves half a line
    return [json.loads(line[5:]) for line in lines if line.startswith(b"data:") and line[5:].strip() not in (b"", b"[DONE]")]


def numbers_of(events):
    """(sent, cached, computed) as far as the engine tells, and the answer's ids or text."""
    sent = cached = computed = None
    answer = []
    for e in events:
        progress, timings, usage = e.get("prompt_progress"), e.get("timings") or {}, e.get("usage") or {}
        if progress:
            sent, cached = progress["total"], progress["cache"]
            computed = sent - cached
            continue
        if "cache_n" in timings:
            cached, computed = timings["cache_n"], timings["prompt_n"]
            sent = cached + computed
        elif "prompt_tokens" in usage:
            sent = usage["prompt_tokens"]
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
            computed = sent - cached if cached is not None else None
        for choice in e.get("choices") or []:
            delta = choice.get("delta") or choice.get("message") or {}
            answer += choice.get("token_ids") or [t for t in (choice.get("text"), delta.get("content")) if t]
        answer += e.get("tokens") or []
    return sent, cached, computed, answer


def told(sent, cached, computed):
    return ", ".join(f"{name} {'not told' if n is None else n}" for name, n in (("sent", sent), ("cached", cached), ("computed", computed)))
