"""Runs every contender in turn, round after round, and prints ratios of time, and peak memory.

Contenders: a loop in Rust, `learn_many` and `learn_one` from Python, and Avalanche's experience replay. Each run is a
process of its own on the same stream, with the same network, batch and updates. A ratio is taken within a round. The
first two must end with the same learner, bit for bit, or the comparison is refused. See `make bench-python`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
KEYS = {
    "method": "er",
    "model": "slim",
    "width": 20,
    "batch": 16,
    "updates": 1.0,
    "memory": 200,
    "lr": 0.0003,
    "seed": 1,
    "autoaugment": "none",
    "cutmix_prob": 0.0,
    "pad_crop": 0,
}


def measure(command):
    """What a contender prints, with its peak memory."""
    # Avalanche warns of itself at every step: what goes wrong is kept for when it does.
    with tempfile.TemporaryFile("w+") as talk:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=talk, text=True)
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        if status:
            talk.seek(0)
            sys.exit(f"{' '.join(command[:2])} failed\n{talk.read()[-2000:]}")
    found = json.loads(printed.strip().splitlines()[-1])
    return {**found, "peak": usage.ru_maxrss / 1024}


def toml(keys):
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())


def save_stream(python, keys, path):
    """The stream for whoever cannot ask for it."""
    source = (
        "import sys, json, numpy as np, dpcl\n"
        "stream = dpcl.streams(**json.loads(sys.argv[1]))\n"
        "parts = [task.arrays() for task in stream.tasks]\n"
        "labels = [stream.classes.index(label) for _, names in parts for label in names]\n"
        "tasks = [task.number for task in stream.tasks for _ in range(len(task))]\n"
        "images = np.concatenate([images for images, _ in parts])\n"
        "np.savez(sys.argv[2], images=images, labels=labels, tasks=tasks)\n"
    )
    subprocess.run([python, "-c", source, json.dumps(keys), path], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loop", default="target/release/examples/learn_loop")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--per-class", type=int, default=40)
    parser.add_argument("--skip", nargs="*", default=[], help="contenders to leave out")
    parser.add_argument("--output")
    options = parser.parse_args()

    keys = {**KEYS, "threads": options.threads, "per_class": options.per_class}
    with tempfile.TemporaryDirectory() as folder:
        stream = os.path.join(folder, "stream.npz")
        save_stream(sys.executable, keys, stream)
        ends = [os.path.join(folder, name) for name in ("rust.ckpt", "python.ckpt")]
        learn = [sys.executable, os.path.join(HERE, "python_learn.py"), json.dumps(keys)]
        contenders = {
            "Rust loop": [options.loop, toml(keys), ends[0]],
            "learn_many": [*learn, "many", ends[1]],
            "learn_one": [*learn, "one"],
            "Avalanche": [sys.executable, os.path.join(HERE, "avalanche_learn.py"), json.dumps(keys), stream],
        }
        contenders = {name: command for name, command in contenders.items() if name not in options.skip}
        rounds = []
        for number in range(options.rounds):
            # Each begins once in a while, so that none always finds the machine warm.
            names = list(contenders)
            names = names[number % len(names) :] + names[: number % len(names)]
            rounds.append({name: measure(contenders[name]) for name in names})
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
        same = len({open(path, "rb").read() for path in ends}) == 1
    if not same:
        sys.exit("the loop in Rust and `learn_many` ended with different learners")

    print("| contender | seconds | time, to the Rust loop | peak memory (MiB) | samples | updates |")
    print("|---|---|---|---|---|---|")
    for name in contenders:
        runs = [found[name] for found in rounds]
        ratios = sorted(found[name]["seconds"] / found["Rust loop"]["seconds"] for found in rounds)
        seconds = statistics.median(run["seconds"] for run in runs)
        peak = statistics.median(run["peak"] for run in runs)
        spread = f"{statistics.median(ratios):.3f} ({ratios[0]:.3f}–{ratios[-1]:.3f})"
        print(f"| {name} | {seconds:.2f} | {spread} | {peak:.0f} | {runs[0]['samples']} | {runs[0]['updates']} |")
    if options.output:
        with open(options.output, "w") as file:
            json.dump({"keys": keys, "rounds": rounds}, file, indent=1)


if __name__ == "__main__":
    main()
