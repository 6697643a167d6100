#!/usr/bin/env bash
# Make .venv from the newest Python that really runs and the lock that belongs to it.
#
#   scripts/bootstrap.sh                 set .venv up, or do nothing when it is complete
#   scripts/bootstrap.sh --find-python   print the interpreter it would take, and stop
#
# PYTHON=/path/to/python3.12 overrides the choice. The stamp .venv/.installed is written last, and
# says which lock was installed with which Python: a set-up that was interrupted, whose lock has
# changed, or whose interpreter is gone is made anew by the next call.
set -euo pipefail
cd "$(dirname "$0")/.."

VERSIONS="3.13 3.12 3.11"
VENV=.venv
STAMP=$VENV/.installed
refused=""

# Prints "3.12" for an interpreter that can make a virtual environment, compile extensions and has the
# modules that builds from source may lack; otherwise prints what is missing and fails.
PROBE='
import os, sys, sysconfig
try:
    import bz2, ctypes, ensurepip, lzma, sqlite3, ssl, venv
except ImportError as error:
    hint = " (Debian: apt install python3-venv)" if error.name == "ensurepip" else ""
    sys.exit(f"has no module {error.name}{hint}")
if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
    sys.exit("has no C headers (Debian: apt install python3-dev)")
print("%d.%d" % sys.version_info[:2])
'

probe() { # $1: interpreter; sets `version`, or adds to `refused` and fails
    local complaint
    complaint=$(mktemp)
    if version=$("$1" -c "$PROBE" 2>"$complaint" </dev/null); then
        rm -f "$complaint"
        return 0
    fi
    refused+="  $1: $(head -n 1 "$complaint")"$'\n'
    rm -f "$complaint"
    return 1
}

candidates() { # $1: wanted version. Named interpreters first, then pyenv's, then plain python3.
    type -aP "python$1" || true
    ls -d "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/"python$1" 2>/dev/null | sort -rV || true
    type -aP python3 || true
}

find_python() { # prints "<interpreter> <version>"
    local wanted candidate version=""
    if [ -n "${PYTHON:-}" ]; then
        probe "$PYTHON" || fail "PYTHON=$PYTHON cannot be used:"
        case " $VERSIONS " in
            *" $version "*) ;;
            *) fail "PYTHON=$PYTHON is Python $version; there are locks for $VERSIONS." ;;
        esac
        echo "$PYTHON $version"
        return
    fi
    for wanted in $VERSIONS; do
        while read -r candidate; do
            probe "$candidate" || continue
            if [ "$version" = "$wanted" ]; then
                echo "$candidate $version"
                return
            fi
            refused+="  $candidate: is Python $version"$'\n'
        done < <(candidates "$wanted")
    done
    fail "No usable Python found. Install one of $VERSIONS with its venv module and C headers, or
name one: make setup PYTHON=/path/to/python3.12. Tried:"
}

fail() {
    printf '%s\n%s' "$1" "$(printf '%s' "$refused" | sort -u)" >&2
    echo >&2
    exit 1
}

stamp_for() { # $1: version
    echo "$1 $(cksum <"requirements/py${1/./}.lock")"
}

is_complete() { # an explicit PYTHON must also agree in its version
    local version=""
    [ -f "$STAMP" ] && probe "$VENV/bin/python" || return 1
    [ "$(cat "$STAMP")" = "$(stamp_for "$version")" ] || return 1
    [ -z "${PYTHON:-}" ] || [ "$("$PYTHON" -c "$PROBE" 2>/dev/null)" = "$version" ]
}

link_checkout() { # gbdtmo_core, datasets and repro can then be imported from any working folder
    local site
    site=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
    [ "$(cat "$site/checkout.pth" 2>/dev/null)" = "$PWD" ] || echo "$PWD" >"$site/checkout.pth"
}

main() {
    local found python version lock
    if [ "${1:-}" = --find-python ]; then
        find_python | cut -d ' ' -f 1
        exit
    fi
    if is_complete; then
        link_checkout
        exit 0
    fi
    command -v "${CC:-gcc}" >/dev/null || fail "No C compiler: ${CC:-gcc} is not on PATH."
    found=$(find_python)
    python=${found% *} version=${found##* }
    lock=requirements/py${version/./}.lock
    echo "Setting up $VENV with Python $version ($python) and $lock; this takes one to three minutes."
    "$python" -m venv --clear "$VENV"
    # The lock is complete (--no-deps), and hashes are checked for every file.
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --require-hashes -r "$lock"
    link_checkout
    stamp_for "$version" >"$STAMP.part"
    mv "$STAMP.part" "$STAMP"
}

main "$@"
