"""Random ONNX models of one node, beside onnxruntime and the standard's reference: what differs is printed.

As a command: `PYTHONPATH=.:tests python tests/graph/onnx/random_nodes.py 2000 [--compiled] [--first N] [--only OP]`;
`--seed S` shows one.
"""

from __future__ import annotations

import argparse
from collections import Counter

from graph.onnx.nodes.trial import FAILED, UNSUPPORTED, WRONG, sample_of, trial


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first seed")
    parser.add_argument("--only", default="", metavar="OP", help="nodes of this operator")
    parser.add_argument("--compiled", action="store_true", help="as native code too")
    parser.add_argument("--unsupported", action="store_true", help="print what cannot be read too")
    arguments = parser.parse_args()
    states: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for seed in range(arguments.first, arguments.first + arguments.count):
        sample = sample_of(seed, arguments.only)
        verdict = trial(sample, compiled=arguments.compiled)
        states[verdict.state] += 1
        if verdict.state == UNSUPPORTED:
            reasons[f"{sample.node.op_type}: {verdict.why.rpartition('`: ')[2]}"] += 1
        if verdict.state in (WRONG, FAILED) or (arguments.unsupported and verdict.state == UNSUPPORTED):
            print(f"seed {seed}: {verdict.state}: {verdict.why}\n    {sample}", flush=True)
    print(", ".join(f"{count} {state}" for state, count in states.most_common()))
    for why, count in reasons.most_common():
        print(f"{count:5} {why}")
    return 1 if states[WRONG] or states[FAILED] else 0


if __name__ == "__main__":
    raise SystemExit(main())
