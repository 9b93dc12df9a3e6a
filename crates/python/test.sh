#!/usr/bin/env bash
# Builds the Python package, installs it in a throw-away environment under target/ and tests it there.
#
# PyTorch's package is large. `TORCH=no` leaves it and its tests out, and says so; nothing else is left out.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=crates/python
place=${CARGO_TARGET_DIR:-target}/python
place=$(mkdir -p "$place" && cd "$place" && pwd)
python=$place/environment/bin/python

wanted=(-r "$here/tests/requirements.txt")
left_out=()
if [ "${TORCH:-yes}" = no ]; then
    echo "TORCH=no: PyTorch is not installed, and crates/python/tests/test_torch.py is left out"
    left_out=(--ignore "$here/tests/test_torch.py")
else
    wanted+=(-r "$here/tests/requirements-torch.txt")
fi

rm -rf "$place/environment" "$place/wheel"
python3 -m venv "$place/environment"
"$python" -m pip install --quiet --disable-pip-version-check uv
"$python" -m uv pip install --quiet --python "$python" "${wanted[@]}"

"$python" "$here/same_build.py"

# What `pip install .` does, in two steps, so that there is one wheel to look at.
PATH=$place/environment/bin:$PATH "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --wheel-dir "$place/wheel" .
"$python" -m uv pip install --quiet --python "$python" --no-deps "$place"/wheel/dpcl-*.whl

# Away from the sources, so that what is tested is what is installed.
root=$PWD
cd "$place"
"$python" -m mypy --strict --cache-dir mypy -p dpcl
"$python" -m mypy --strict --cache-dir mypy "$root/$here/tests/typed_use.py"
"$python" -m mypy.stubtest --mypy-config-file "$root/pyproject.toml" dpcl._native
"$python" -m pytest --quiet -p no:cacheprovider --doctest-modules --pyargs dpcl
"$python" -m pytest --quiet -p no:cacheprovider --rootdir "$root/$here/tests" "${left_out[@]/#$here/$root/$here}" \
    "$root/$here/tests" "$@"
