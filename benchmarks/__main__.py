"""The command line: run cases and print one JSON line for each."""

import argparse
import json
from collections.abc import Sequence

from benchmarks.cases import CASES, Setup
from benchmarks.loops import LOOPS, Loop
from benchmarks.report import line_of
from benchmarks.stores import opened


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the arguments ask for."""
    options = _parser().parse_args(arguments)
    for name in options.case:
        case = CASES[name]
        with opened(options.store) as url:
            setup = Setup(url, options.n or case.n, Loop(options.loop))
            measured = case.measure(setup)
            print(json.dumps(line_of(name, measured, options.store, setup)), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("benchmarks", description=__doc__, allow_abbrev=False)
    parser.add_argument("--case", action="append", required=True, choices=CASES, help="may be repeated")
    parser.add_argument(
        "--store",
        default="sqlite://auto",
        help="a storage URL; sqlite://auto (default) is a file and redis://auto a server of the run's own",
    )
    parser.add_argument("--n", type=int, help="runs, commits or steps; every case has a default")
    parser.add_argument("--loop", choices=LOOPS, default="asyncio")
    return parser


if __name__ == "__main__":
    main()
