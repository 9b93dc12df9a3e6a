# One place for what people and CI run. `make check` is everything CI decides on.

# Everything, the server included.
SERVE = cargo build --release --workspace --features dpcl-cli/serve

.PHONY: check test lint format docs browser browser-serve schema kills bench bench-serve fuzz audit licences miri gpu reproduce digests

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

# Drives the live page of `dpcl serve` in headless Chromium: drops files, teaches two classes, sees the answer.
browser-serve:
	$(SERVE)
	crates/serve/tests/browser.py target/release/dpcl target

# Asks `dpcl serve` whatever its OpenAPI document allows and forbids. Makes a throw-away Python environment.
schema:
	$(SERVE)
	python3 -m venv target/schema-python
	target/schema-python/bin/pip install --quiet schemathesis
	crates/serve/tests/schema.sh target/release/dpcl target/schema-python/bin/schemathesis

# Kills a server with SIGKILL that many times while it is being taught, and compares with one that was left alone.
KILLS ?= 200
kills:
	DPCL_SERVE_KILLS=$(KILLS) cargo test --release -p dpcl-serve --test suite -- kills_during_load
	cat target/tmp/kills.txt

# Predictions a second beside FastAPI and PyTorch, idle and while learning. Makes a throw-away Python environment.
bench-serve:
	$(SERVE) --bins --examples
	python3 -m venv target/serve-python
	target/serve-python/bin/pip install --quiet torch numpy fastapi uvicorn pillow
	target/serve-python/bin/python benches/serve.py --output target/bench-serve.json

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
