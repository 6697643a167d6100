#!/usr/bin/env bash
# Regenerate requirements/py3*.lock from requirements/*.in: one lock an interpreter, because the
# newest NumPy, SciPy and XGBoost have dropped Python 3.11.
#
#   scripts/lock.sh                  keep what is pinned, add what is missing
#   scripts/lock.sh --upgrade        move every pin to the newest release
#   scripts/lock.sh -P lightgbm      move one pin (any option of `uv pip compile` passes through)
set -euo pipefail
cd "$(dirname "$0")/.."

UV_VERSION=0.13.9
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
.venv/bin/python -m venv "$tools"
"$tools/bin/pip" install --quiet "uv==$UV_VERSION"

for version in 3.11 3.12 3.13; do
    lock=requirements/py${version/./}.lock
    # --no-header: uv would write the full command line, with local paths and index addresses.
    "$tools/bin/uv" pip compile --quiet --no-header --no-annotate --no-emit-index-url \
        --generate-hashes --python-version "$version" \
        "$@" --output-file "$lock" requirements/run.in requirements/dev.in >/dev/null
    sed -i '1i # Made by scripts/lock.sh from requirements/*.in; edit those instead.' "$lock"
    echo "$lock: $(grep -c '==' "$lock") packages"
done
