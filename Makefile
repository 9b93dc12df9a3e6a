# One place for what people and CI run. `make check` is everything CI decides on.

.PHONY: check test test-python lint format docs browser bench bench-python fuzz audit licences miri gpu reproduce digests

check: test test-python lint

test:
	cargo test --release

# The Python package as people install it, in a throw-away environment: `make test-python TORCH=no` leaves PyTorch out.
test-python:
	TORCH=$(TORCH) crates/python/test.sh

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

# Speed against PyTorch and stock Burn, interleaved, as ratios. Makes a throw-away Python environment.
bench:
	cargo build --release
	python3 -m venv target/bench-python
	target/bench-python/bin/pip install --quiet torch numpy
	target/bench-python/bin/python benches/compare.py --output target/bench.json

# The Python package against the same loop in Rust, and beside Avalanche's experience replay, interleaved. Run
# `make test-python` first: its wheel is what is measured.
bench-python:
	cargo build --release --example learn_loop
	python3 -m venv target/bench-avalanche
	target/bench-avalanche/bin/pip install --quiet uv
	target/bench-avalanche/bin/uv pip install --quiet --python target/bench-avalanche/bin/python avalanche-lib \
	    target/python/wheel/dpcl-*.whl
	target/bench-avalanche/bin/python benches/compare_python.py --output target/bench-python.json

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
