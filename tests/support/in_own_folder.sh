#!/bin/sh
# Runs a command with a new folder as TMPDIR, removed afterwards, so that the same test can run twice at once.
#   tests/support/in_own_folder.sh COMMAND ARGUMENT…
set -eu
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 1' HUP INT TERM
"$@"
