#!/bin/sh
# Makes the environment of the comparison, separate from relive's: benchmarks/peers/.venv, or the directory given.
set -eu
cd "$(dirname "$0")/../.."
venv=${1:-benchmarks/peers/.venv}
test -x "$venv/bin/python" || "${PYTHON:-python3}" -m venv "$venv"
pip() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$@"; }
pip --requirement benchmarks/peers/requirements.txt
pip --no-deps --requirement benchmarks/peers/requirements-alone.txt
pip --no-deps --editable .
