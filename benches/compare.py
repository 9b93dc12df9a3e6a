"""Runs every contender in turn, round after round, and prints ratios.

Contenders: this program, this program on stock Burn operators, and PyTorch (default, channels-last with fused Adam,
compiled). A round runs each once; a ratio is taken within a round, against PyTorch channels-last with fused Adam, and
its spread over rounds is shown. Needs the built `dpcl` and a Python with torch (see `make bench`).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

CASES = [
    ("slim", 16, 32, 20),
    ("resnet18", 16, 32, 8),
    ("resnet34", 16, 32, 5),
    ("resnet34-imagenet", 8, 224, 3),
]
PEER = "torch best"


def contenders(options):
    torch = [options.python, os.path.join(os.path.dirname(__file__), "torch_step.py")]
    found = {
        "dpcl": [options.dpcl, "bench", "step", "--format", "json"],
        "burn stock": [options.dpcl, "bench", "step", "--format", "json", "--stock"],
        "torch default": [*torch, "--variant", "default"],
        PEER: [*torch, "--variant", "best"],
        "torch compiled": [*torch, "--variant", "compiled"],
    }
    return {name: command for name, command in found.items() if name not in options.skip}


def measure(command, case, threads, isa):
    model, batch, size, steps = case
    evaluation = 128 if size < 64 else 16
    arguments = ["--model", model, "--batch", batch, "--size", size, "--threads", threads]
    arguments += ["--steps", steps, "--eval-batch", evaluation]
    environment = dict(os.environ)
    if isa:
        environment["DPCL_ISA"] = isa
    if isa == "avx2":
        environment.update(ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2")
    done = subprocess.run([*command, *map(str, arguments)], env=environment, capture_output=True, text=True)
    if done.returncode:
        print(f"  {' '.join(command[:3])} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def peak(options, threads):
    environment = dict(os.environ)
    if options.isa:
        environment["DPCL_ISA"] = options.isa
    command = [options.dpcl, "bench", "peak", "--threads", str(threads), "--format", "json"]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True).stdout)["gflops"]


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def ratios(rounds, name, key):
    pairs = [(r.get(name), r.get(PEER)) for r in rounds]
    return [mine[key]["median"] / peer[key]["median"] for mine, peer in pairs if mine and peer]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dpcl", default="target/release/dpcl")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--models", nargs="*", default=[case[0] for case in CASES])
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--isa", default="", help="hold both sides to avx2")
    parser.add_argument("--output", help="write every measurement here, as JSON")
    options = parser.parse_args()

    everything = []
    for threads in options.threads:
        top = peak(options, threads)
        print(f"\n{threads} thread(s); register-only multiply-add peak {top:.0f} GFLOP/s")
        header = "| network | contender | isa | step ms | step ratio | eval ratio | GFLOP/s | of peak | peak MiB |"
        print(header + "\n|" + "---|" * 9)
        for case in (case for case in CASES if case[0] in options.models):
            rounds = []
            for _ in range(options.rounds):
                found = {n: measure(c, case, threads, options.isa) for n, c in contenders(options).items()}
                rounds.append(found)
                everything.append({"threads": threads, "case": case, "found": found})
            work = next((r["dpcl"]["gflops"] * r["dpcl"]["train_ms"]["median"] for r in rounds if r.get("dpcl")), 0)
            for name in contenders(options):
                runs = [r[name] for r in rounds if r.get(name)]
                if not runs:
                    continue
                step = statistics.median(run["train_ms"]["median"] for run in runs)
                memory = max(run["peak_memory_bytes"] for run in runs) / (1 << 20)
                rate = work / step
                print(
                    f"| {case[0]} | {name} | {runs[0]['isa']} | {step:.1f} | {spread(ratios(rounds, name, 'train_ms'))} "
                    f"| {spread(ratios(rounds, name, 'eval_ms_per_image'))} | {rate:.0f} | {100 * rate / top:.0f} % | {memory:.0f} |",
                    flush=True,
                )
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=1)


if __name__ == "__main__":
    main()
