"""Says which crates the package needs with other features than the command does: cargo compiles them, and all that stand
on them, twice. Burn is among those, which takes minutes.
"""

import subprocess
import sys


def features(*packages):
    command = ["cargo", "tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}|{f}"]
    command += [word for package in packages for word in ("--package", package)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = (line.removesuffix(" (*)").split("|") for line in listed.splitlines() if line)
    return {name.split(" (")[0]: found for name, found in lines}


package = features("dpcl-python")
command = features("dpcl-cli")
again = {name for name, found in package.items() if command.get(name, found) != found}
for name in sorted(again):
    print(f"note: {name} is compiled twice, with features `{package[name]}` here and `{command[name]}` for the command")
if again:
    print("note: name the missing features in crates/python/Cargo.toml to share one build", file=sys.stderr)
