# One place for what people and CI run. `make check` is everything CI decides on.

.PHONY: check test lint format docs browser bench fuzz fuzz-guided faults audit licences miri gpu reproduce digests

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

# Coverage-guided fuzzing of every reader, with checks of integer overflow: SECONDS a target. Needs a nightly toolchain and
# cargo-fuzz. What is found interesting is kept in fuzz/corpus.
SECONDS ?= 3600
fuzz-guided:
	cd fuzz && for target in $$(cargo +nightly fuzz list); do \
	    cargo +nightly fuzz run $$target -- -max_total_time=$(SECONDS) -rss_limit_mb=1024 || exit 1; done

# File systems that are really full, limits of the system, and kills. Mounting needs a user namespace or root.
faults:
	cargo test --release --test suite -- --include-ignored full_disk:: kill:: interrupt:: faults:: attacks::

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
