# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The harness of shell tests: TAP output and a time limit for the whole script.
#
#   . "$top_srcdir/test/support/tap.sh"; tap_start 30; tap_ok "addition" test $((1 + 1)) = 2; tap_end

tap_count=0
tap_failed=0

# tap_start SECONDS: after this time the script and what it runs are ended.
tap_start() {
    if [ -z "${TAP_LIMITED:-}" ]; then
        TAP_LIMITED=1 exec timeout --kill-after=5 "$1" sh "$0"
    fi
    tap_dir=$(mktemp -d "${TMPDIR:-/tmp}/hawser-test.XXXXXX") || exit 99
    trap 'rm -rf "$tap_dir"' EXIT
    trap 'exit 143' TERM INT HUP
}

# tap_ok DESCRIPTION COMMAND...: runs the command; its output is shown if it fails.
tap_ok() {
    _description=$1
    shift
    tap_count=$((tap_count + 1))
    if "$@" >"$tap_dir/tap.out" 2>&1; then
        echo "ok $tap_count - $_description"
    else
        tap_failed=$((tap_failed + 1))
        echo "not ok $tap_count - $_description"
        sed 's/^/# /' "$tap_dir/tap.out" | head -40
    fi
}

# tap_skip DESCRIPTION REASON
tap_skip() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

# tap_skip_all REASON: to be called instead of any test.
tap_skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}

tap_end() {
    echo "1..$tap_count"
    [ "$tap_failed" = 0 ]
    exit
}
