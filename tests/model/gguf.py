#!/usr/bin/env python3
"""A GGUF file taken apart and put together in other ways, for tests: cut into parts, or made shorter.

usage: gguf.py                      prints where the small model is, or nothing
       gguf.py MODEL OUT LAYERS     MODEL's first layers as a model of its own
"""
import os
import struct
import sys


class Gguf:
    """Of a file with the default alignment: its keys as bytes, and of each tensor (name, description, place in the data)."""

    SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def __init__(self, whole):
        n_tensors, n_keys = struct.unpack_from("<QQ", whole, 8)
        self.whole, self.keys, self.tensors = whole, [], []
        at = 24
        for _ in range(n_keys):
            name = self.behind_text(at)
            end = self.behind_value(name + 4, struct.unpack_from("<I", whole, name)[0])
            self.keys.append((whole[at + 8:name], whole[at:end]))
            at = end
        for _ in range(n_tensors):
            name = self.behind_text(at)
            place = name + 4 + 8 * struct.unpack_from("<I", whole, name)[0] + 4
            self.tensors.append((whole[at + 8:name], whole[at:place], struct.unpack_from("<Q", whole, place)[0]))
            at = place + 8
        self.data = whole[(at + 31) // 32 * 32:]

    def behind_text(self, at):
        return at + 8 + struct.unpack_from("<Q", self.whole, at)[0]

    def behind_value(self, at, kind):
        if kind == 8:
            return self.behind_text(at)
        if kind != 9:
            return at + self.SIZES[kind]
        element, count = struct.unpack_from("<IQ", self.whole, at)
        at += 12
        for _ in range(count if element == 8 else 0):
            at = self.behind_text(at)
        return at if element == 8 else at + count * self.SIZES[element]

    def ends(self):
        """Where each tensor's data ends, with what fills it up to the next."""
        starts = sorted(place for _, _, place in self.tensors) + [len(self.data)]
        return dict(zip(starts, starts[1:]))


def put_together(keys, tensors):
    """The bytes of a file: keys as bytes, and of each tensor (description, data)."""
    head, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys), []
    n = 0
    for description, content in tensors:
        head += description + struct.pack("<Q", n)
        data.append(content + bytes(-len(content) % 32))
        n += len(data[-1])
    return b"".join([head, bytes(-len(head) % 32), *data])


def split(whole, n):
    """n files that are one model, as llama-gguf-split cuts: metadata in the first, each with a share of the tensors."""
    model = Gguf(whole)
    ends, n_tensors = model.ends(), len(model.tensors)

    def key(name, kind, packed):
        return struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + packed
    for i in range(n):
        keys = [] if i else [pair for _, pair in model.keys]
        keys += [key(b"split.no", 2, struct.pack("<H", i)), key(b"split.count", 2, struct.pack("<H", n)),
                 key(b"split.tensors.count", 5, struct.pack("<i", n_tensors))]
        mine = model.tensors[i * n_tensors // n:(i + 1) * n_tensors // n]
        yield put_together(keys, [(description, model.data[place:ends[place]]) for _, description, place in mine])


def shorten(whole, n_layers):
    """The model's first layers, with its vocabulary, its embedding and its head: what it says means nothing, and depends on what it read."""
    model = Gguf(whole)
    ends = model.ends()
    keys = [pair[:-4] + struct.pack("<I", n_layers) if name.endswith(b".block_count") else pair for name, pair in model.keys]
    kept = [t for t in model.tensors if not t[0].startswith(b"blk.") or int(t[0].split(b".")[1]) < n_layers]
    return put_together(keys, [(description, model.data[place:ends[place]]) for _, description, place in kept])


def small_model():
    home = os.environ.get("KVIST_HOME")
    data = os.path.join(home, "data") if home else os.path.join(
        os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share"), "kvist")
    return os.path.join(data, "models", "SmolLM2-135M-Instruct.Q4_1.gguf")


def main():
    if len(sys.argv) == 1:
        print(small_model() if os.path.exists(small_model()) else "")
        return
    path, out, n_layers = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(path, "rb") as f:
        made = shorten(f.read(), n_layers)
    with open(out, "wb") as f:
        f.write(made)


if __name__ == "__main__":
    main()
