"""Predictions of `dpcl serve` beside the same network behind FastAPI and PyTorch, in interleaved rounds on loopback.

Each round asks, in turn: the peer with one thread and with two, this server idle, this server while it learns. Ratios are
taken within a round, against the better of the peer's two. Needs the built `dpcl` and `load` and a Python with torch,
numpy, fastapi, uvicorn and pillow (see `make bench-serve`).
"""

import argparse
import base64
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))


def png(number, side=32):
    rows = b"".join(
        b"\0" + bytes((number * 25 + (x * 7 + y * 5 + number) % 41) & 255 for x in range(side) for _ in "rgb")
        for y in range(side)
    )
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def ask(address, path, body=None, kind="application/json"):
    request = urllib.request.Request(f"http://{address}{path}", body, {"Content-Type": kind} if body else {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def ready(address, path, body, kind):
    for _ in range(600):
        try:
            return ask(address, path, body, kind)
        except urllib.error.HTTPError:
            return None
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"error: nothing answers at {address}")


def teach(address, count):
    """Hands in so many samples; gives how many were taken."""
    samples = [{"label": f"class {n % 10}", "image": base64.b64encode(png(n % 10)).decode()} for n in range(count)]
    try:
        return ask(address, "/observe", json.dumps({"samples": samples}).encode())["accepted"]
    except urllib.error.HTTPError as error:
        if error.code == 429:
            return 0
        raise


def settle(address):
    while True:
        status = ask(address, "/status")
        if status["version"] == status["accepted"]:
            return status
        time.sleep(0.05)


class Feeding:
    """Keeps samples waiting, so that the server learns all the time."""

    def __init__(self, address):
        self.address, self.done = address, threading.Event()
        self.thread = threading.Thread(target=self.feed)

    def feed(self):
        while not self.done.is_set():
            if ask(self.address, "/status")["waiting"] < 64:
                teach(self.address, 64)
            self.done.wait(0.25)

    def __enter__(self):
        self.before = ask(self.address, "/status")["learned"]
        self.thread.start()
        while ask(self.address, "/status")["learned"] == self.before:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self.learned = ask(self.address, "/status")["learned"] - self.before


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dpcl", default="target/release/dpcl")
    parser.add_argument("--load", default="target/release/examples/load")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--connections", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        image = os.path.join(folder, "image.png")
        with open(image, "wb") as file:
            file.write(png(3))
        keys = ["method=er", "model=slim", "size=32", "memory=200", "autoaugment=none"]
        command = [options.dpcl, "serve", "--dir", os.path.join(folder, "served"), "--listen", "127.0.0.1:0"]
        server = subprocess.Popen([*command, *(word for key in keys for word in ("--set", key))], stderr=subprocess.PIPE, text=True)
        lines = (json.loads(line) for line in server.stderr if line.startswith("{"))
        ours = next(line["address"] for line in lines if line["event"] == "listening")
        threading.Thread(target=lambda: [None for _ in server.stderr], daemon=True).start()
        peers, running = {}, [server]
        try:
            for threads in [1, 2]:
                port = free_port()
                script = os.path.join(HERE, "serve_peer.py")
                running.append(subprocess.Popen([options.python, script, str(port), str(threads)]))
                peers[threads] = f"127.0.0.1:{port}"
                ready(peers[threads], "/predict", png(3), "image/png")
            for _ in range(4):
                teach(ours, 60)
                settle(ours)
            results = measure(options, ours, peers, image)
        finally:
            for process in running:
                process.terminate()
                process.wait()
    report(results)
    if options.output:
        with open(options.output, "w") as file:
            json.dump(results, file, indent=1)


def measure(options, ours, peers, image):
    def load(address, connections):
        command = [options.load, address, image, str(connections), str(options.seconds)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    results = []
    for number in range(options.rounds):
        for connections in options.connections:
            found = {f"peer, {threads} threads": load(address, connections) for threads, address in peers.items()}
            settle(ours)
            found["idle"] = load(ours, connections)
            with Feeding(ours) as feeding:
                found["learning"] = load(ours, connections)
            found["learning"]["learned"] = feeding.learned
            results.append({"round": number, "connections": connections, **found})
            print(f"round {number + 1}, {connections} connections done", file=sys.stderr)
    return results


def report(results):
    for connections in sorted({one["connections"] for one in results}):
        rounds = [one for one in results if one["connections"] == connections]
        print(f"{connections} connections, {len(rounds)} rounds: median (range)")
        for name in [key for key in rounds[0] if isinstance(rounds[0][key], dict)]:
            speed, *times = ([one[name][key] for one in rounds] for key in ["per_second", "p50_ms", "p99_ms"])
            print(f"  {name:16} {spread(speed, 0)} a second, p50 {spread(times[0])} ms, p99 {spread(times[1])} ms")
        best = [max(one[key]["per_second"] for key in one if key.startswith("peer")) for one in rounds]
        faster = [one["idle"]["per_second"] / peer for one, peer in zip(rounds, best)]
        slower = [one["learning"]["p99_ms"] / one["idle"]["p99_ms"] for one in rounds]
        print(f"  idle against the better peer: {spread(faster)} times; p99 while learning against idle: {spread(slower)} times")


if __name__ == "__main__":
    main()
