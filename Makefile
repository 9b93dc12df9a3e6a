# One place for what people and CI run. `make check` is everything CI decides on.

.PHONY: check test lint format docs browser bench fuzz audit licences miri gpu reproduce digests slurm-test tensorboard

check: test lint

test:
	cargo test --release

lint: docs
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps --document-private-items

format:
	cargo fmt --all

# REPRODUCE.md, docs/readings.md and the README's results, from their templates and the records in results/.
reproduce:
	cargo run --release --example reproduce

# Opens a report of the default job in headless Chromium, on a wide and a narrow screen, light and dark.
browser:
	cargo run --release -- run --out target/browser
	crates/report/tests/browser_check.sh target/browser/default/report.html

# A table of the paper through a real Slurm on this machine, which it installs (Debian, as root): a run is killed, requeued,
# told that its time is up, cancelled; records are compared.
slurm-test:
	cargo build --release
	crates/cli/tests/slurm/check.sh target/release/dpcl

# Curves written for TensorBoard, read back by TensorBoard.
tensorboard:
	cargo build --release
	python3 -m venv target/tensorboard-python
	target/tensorboard-python/bin/pip install --quiet tensorboard setuptools
	rm -rf target/tensorboard
	target/release/dpcl run --method er,finetune --per-class 40 --width 4 --eval-period 100 --out target/tensorboard/runs
	target/release/dpcl report target/tensorboard/runs --tensorboard target/tensorboard/curves
	target/release/dpcl report target/tensorboard/runs --format csv --each evaluation --output target/tensorboard/table.csv
	target/tensorboard-python/bin/python crates/report/tests/tensorboard_check.py target/tensorboard/curves target/tensorboard/table.csv

# Speed against PyTorch and stock Burn, interleaved, as ratios. Makes a throw-away Python environment.
bench:
	cargo build --release
	python3 -m venv target/bench-python
	target/bench-python/bin/pip install --quiet torch numpy
	target/bench-python/bin/python benches/compare.py --output target/bench.json

# Many more cases than the tests try for every reader of files: altered seeds, arbitrary bytes. Prints the counts.
CASES ?= 20000
fuzz:
	rm -f target/tmp/fuzz.txt
	PROPTEST_CASES=$(CASES) cargo test --release --lib -- any_bytes altered_images no_damaged_line any_change
	DPCL_FUZZ_CASES=$(CASES) cargo test --release --test fuzz
	cat target/tmp/fuzz.txt

# What every method learned before it still learns, byte for byte: longer runs than the tests make. Needs AVX2.
digests:
	cargo test --release --test suite -- --ignored with_avx2

# Known faults, licences and origins of everything that is depended on. Needs cargo-deny and, for known faults, a network.
audit: licences
	git diff --exit-code LICENSES.md
	cargo deny check

# The licences of everything that is built into the program.
licences:
	./licences.sh > LICENSES.md

# The unsafe code under Miri, on the portable path (needs a nightly toolchain with Miri).
miri:
	MIRIFLAGS="-Zmiri-disable-isolation" cargo +nightly miri test -p dpcl-kernels --lib

# The program for graphics processors (stock Burn operators there); run it with `--set device=vulkan`.
gpu:
	cargo build --release --features dpcl-cli/vulkan
