#!/bin/sh
# Lists name, version and licence of every crate that is built into the program on this machine's kind of system.
set -e
cat <<'HEAD'
# Third-party licences

Every crate that is built into the program with its default features on x86-64 Linux, as its author licensed it.
Written by `make licences`; `crates/dpcl/tests/licences.rs` checks it against the lock file and the allowed licences.

| crate | version | licence |
|---|---|---|
HEAD
cargo tree --locked --workspace --edges normal,build --target x86_64-unknown-linux-gnu --prefix none --format '{p}|{l}' |
    sed -e '/^dpcl/d' -e '/^$/d' -e 's/ (\*)$//' -e 's/ (proc-macro)//' | LC_ALL=C sort -u |
    sed -e 's/^\([^ ]*\) v\([^ |]*\)|\(.*\)$/| \1 | \2 | \3 |/'
