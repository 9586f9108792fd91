#!/usr/bin/env python3
"""Prints the table of test_quant.c: what the Python package gguf (0.19.0) makes of random blocks of each format.

usage: quant_hashes.py [C_FILE]    needs gguf and numpy; with a file, says which lines of the table are not in it"""
import sys

sys.path.pop(0)  # a gguf.py of ours lies in this folder
import gguf  # noqa: E402
import numpy as np  # noqa: E402

BLOCKS = 256
MASK = (1 << 64) - 1
# Format: where the upper bytes of its F16 scales are.
FORMATS = {"Q4_0": [1], "Q4_1": [1, 3], "Q5_0": [1], "Q5_1": [1, 3], "Q8_0": [1], "Q4_K": [1, 3], "Q5_K": [1, 3],
           "Q6_K": [209], "Q2_K": [81, 83], "Q3_K": [109], "IQ4_NL": [1], "IQ4_XS": [1], "IQ3_S": [1], "IQ3_XXS": [1],
           "IQ2_S": [1], "IQ2_XS": [1], "IQ2_XXS": [1], "IQ1_S": [1], "IQ1_M": [], "MXFP4": []}


def blocks_of(name, n_bytes):
    state, blocks = 7, bytearray()
    for _ in range(BLOCKS * n_bytes):
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        blocks.append(state >> 33 & 255)
    for at in range(0, len(blocks), n_bytes):
        for scale in FORMATS[name]:
            if blocks[at + scale] & 0x7C == 0x7C:
                blocks[at + scale] &= 0xBF
        if name == "MXFP4":
            blocks[at] &= 127
        if name == "IQ1_M":
            blocks[at + 55] &= 0xBF
    return np.frombuffer(bytes(blocks), dtype=np.uint8).reshape(BLOCKS, n_bytes)


def hash_of(name):
    kind = gguf.GGMLQuantizationType[name]
    values = gguf.dequantize(blocks_of(name, gguf.GGML_QUANT_SIZES[kind][1]), kind)
    result = 14695981039346656037
    for bits in values.astype(np.float32).reshape(-1).view(np.uint32).tolist():
        result = (result ^ bits) * 1099511628211 & MASK
    return result


there = open(sys.argv[1]).read() if len(sys.argv) > 1 else ""
for format_name in FORMATS:
    line = "{GGUF_TENSOR_%s, 0x%016xu}" % (format_name, hash_of(format_name))
    if line not in there:
        print(line + ",")
