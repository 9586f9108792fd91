#!/usr/bin/env python3
"""Schemas made at random, answers drawn from their masks, and what another validator (python3-jsonschema) says of both.

Every answer that the masks allow has to be JSON that fits, by our validator and by that one; and of documents that are
changed at random both have to say the same. test_schema.py PROGRAM [N_SCHEMAS [SEED]]; prints the pairs that were compared.
"""
import json
import random
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed (scripts/setup-lib has its name)")
    sys.exit(77)

NAMES = ["a", "ab", "b", "name", "n\u00e4me", "with \"quote\"", "x" * 20, "path", "line"]
TEXTS = ["", "a", "ab", "abc", "\u00e9", "\U0001f600", "a\"b", "\\", "\n", "long " * 8]


def a_value(r, depth=0):
    kind = r.randrange(9 if depth < 3 else 7)
    if kind < 2:
        return r.choice(TEXTS)
    if kind == 2:
        return r.choice([0, 1, -1, 5, 100, 2**53, 1.0, 0.5, -2.25, 1e30])
    if kind < 5:
        return r.choice([True, False, None])
    if kind == 5:
        return r.randrange(-20, 20)
    if kind == 6:
        return r.choice([0.1, 0.7, 3.5])
    if kind == 7:
        return [a_value(r, depth + 1) for _ in range(r.randrange(4))]
    return {r.choice(NAMES): a_value(r, depth + 1) for _ in range(r.randrange(4))}


def bounds(r, low, high, minimum, maximum):
    s, a, b = {}, *sorted([r.randrange(low, high), r.randrange(low, high)])
    if r.random() < .4:
        s[minimum] = a
    if r.random() < .4:
        s[maximum] = b
    return s


def a_number(r, kind):
    s = {"type": kind}
    if r.random() < .6:
        scale = r.choice([1, 10, 1000]) if kind == "integer" else r.choice([.01, .5, 1, 100])
        a, b = sorted([r.randrange(-30, 30) * scale, r.randrange(-30, 30) * scale])
        if r.random() < .7:
            s[r.choice(["minimum", "exclusiveMinimum"])] = a
        if r.random() < .7:
            s[r.choice(["maximum", "exclusiveMaximum"])] = b
    return s


def an_object(r, depth, refs):
    s = {"type": "object"}
    names = r.sample(NAMES, r.randrange(5))
    if names or r.random() < .5:
        s["properties"] = {n: a_schema(r, depth + 1, refs) for n in names}
    if r.random() < .6:
        s["required"] = [n for n in names if r.random() < .5]
    roll = r.random()
    if roll < .4:
        s["additionalProperties"] = False
    elif roll < .7:
        s["additionalProperties"] = a_schema(r, depth + 1, refs)
    elif roll < .8 and names:
        s["required"] = s.get("required", []) + ["other"]
    return s


def an_array(r, depth, refs):
    s = {"type": "array"}
    if r.random() < .3:
        s["prefixItems"] = [a_schema(r, depth + 1, refs) for _ in range(r.randrange(1, 3))]
    if r.random() < .8:
        s["items"] = False if r.random() < .1 else a_schema(r, depth + 1, refs)
    s.update(bounds(r, 0, 5, "minItems", "maxItems"))
    return s


def a_schema(r, depth=0, refs=()):
    roll = r.random()
    if depth > 3:
        roll = roll * .5
    if roll < .15:
        return {"type": "string", **bounds(r, 0, 8, "minLength", "maxLength")}
    if roll < .27:
        return a_number(r, r.choice(["integer", "number"]))
    if roll < .35:
        return {"type": r.choice(["boolean", "null", "string"])}
    if roll < .43:
        return {"enum": [a_value(r) for _ in range(r.randrange(1, 6))]}
    if roll < .47:
        return {"const": a_value(r)}
    if roll < .5:
        return {"type": r.sample(["string", "null", "integer", "boolean", "array", "object", "number"], 2)}
    if roll < .53:
        return True if r.random() < .5 else {}
    if roll < .6 and refs:
        return {"$ref": r.choice(refs)}
    if roll < .72:
        return {r.choice(["anyOf", "anyOf", "oneOf"]): [a_schema(r, depth + 1, refs) for _ in range(r.randrange(1, 4))]}
    return an_object(r, depth, refs) if roll < .87 else an_array(r, depth, refs)


def a_whole_schema(r):
    refs = ["#/$defs/one", "#/$defs/two", "#"]
    s = a_schema(r, 0, refs)
    if isinstance(s, dict):
        s["$defs"] = {"one": a_schema(r, 1, refs), "two": a_schema(r, 1, refs)}
        s["description"] = "made at random"
    return s


def changed(r, v):
    """The value with something else in one place."""
    if isinstance(v, dict) and v and r.random() < .8:
        k = r.choice(list(v))
        roll = r.random()
        if roll < .2:
            return {n: x for n, x in v.items() if n != k}
        if roll < .4:
            return {**v, r.choice(NAMES): a_value(r)}
        return {**v, k: changed(r, v[k])}
    if isinstance(v, list) and v and r.random() < .8:
        i = r.randrange(len(v))
        return v[:i] + ([] if r.random() < .3 else [changed(r, v[i])]) + v[i + 1:]
    if isinstance(v, str) and r.random() < .4:
        return v + r.choice(["x", "\u00e9"]) if r.random() < .5 else v[:-1]
    if isinstance(v, (int, float)) and not isinstance(v, bool) and r.random() < .5:
        return v + r.choice([-1, 1, .5, 100])
    return a_value(r)


def ask(program, **line):
    program.stdin.write((json.dumps(line) + "\n").encode())
    program.stdin.flush()
    back = program.stdout.readline()
    if not back:
        sys.exit(f"the program ended on {line}")
    return json.loads(back)


def main():
    n_schemas = int(sys.argv[2]) if len(sys.argv) > 2 else 150
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    program = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    n_walked = n_checked = n_valid = n_refused = 0
    why = {}
    for i in range(n_schemas):
        r = random.Random(seed * 1000003 + i)
        schema = a_whole_schema(r)
        text = json.dumps(schema, ensure_ascii=r.random() < .5)
        judge = jsonschema.Draft202012Validator(schema)
        back = ask(program, schema=text, walks=6, tokens=r.choice([30, 100, 300]), seed=r.randrange(1 << 30))
        if "refused" in back:
            n_refused += 1
            key = " ".join(w for w in back["refused"].split() if "#" not in w and not w.startswith('"'))[:70]
            why[key] = why.get(key, 0) + 1
            continue
        documents = [json.loads(d) for d in back["documents"] if d]
        for text_of, value in zip([d for d in back["documents"] if d], documents):
            n_walked += 1
            if "\n" in text_of:
                sys.exit(f"more than a line: {text_of!r}")
            try:
                judge.validate(value)
            except jsonschema.ValidationError as e:
                sys.exit(f"schema {i} of seed {seed}: {text}\nallowed: {text_of}\nbut: {e.message}")
        others = [changed(r, d) for d in documents] + [a_value(r) for _ in range(4)]
        said = ask(program, schema=text, check=[json.dumps(o) for o in others])["verdicts"]
        for other, verdict in zip(others, said):
            n_checked += 1
            n_valid += verdict
            if judge.is_valid(other) != verdict:
                sys.exit(f"schema {i} of seed {seed}: {text}\nof {json.dumps(other)} we say {verdict}")
    program.stdin.close()
    print(f"{n_schemas} schemas, {n_refused} refused {why}; {n_walked} answers drawn and valid; "
          f"{n_checked} documents judged alike, {n_valid} of them valid")
    if program.wait() or n_walked < n_schemas or not n_valid or n_valid == n_checked:
        sys.exit("that is too few to say anything")


main()
