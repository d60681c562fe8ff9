# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# combinations: reads lines "[VARIABLE=VALUE...] PROGRAM[:TEST] ARGUMENTS OF MPIRUN", runs each program of test/mpi (or one of its
# tests) that way, one point each, and ends the script. A failed point names its combination.
#
#   POINTS_ONLY     an extended regular expression: only the lines in which it is found
#   POINTS_DONE     a file: a point that passes is noted there, one that it holds is not run again
#   POINTS_SECONDS  after so many seconds no further point is begun

combinations_run() { # LINE, without its variables, which are in the environment
    _program=${1%% *}
    _args=${1#"$_program"}
    _test=${_program#*:}
    [ "$_test" = "$_program" ] && _test=
    MPI_TEST_JUDGE=1 MPIRUN_ARGS="$_args" "${top_builddir:-..}/test/mpi/${_program%%:*}" ${_test:+"$_test"} </dev/null 2>&1
}

# One line, variables and all, in a shell of its own.
combinations_point() {
    _line=$1
    while _word=${_line%% *} && [ "${_word%%=*}" != "$_word" ]; do
        export "${_word?}"
        _line=${_line#"$_word "}
    done
    combinations_run "$_line"
}

combinations() {
    _points=$(grep -v '^ *\(#\|$\)' | grep -E -e "${POINTS_ONLY:-.}")
    [ -z "${POINTS_DONE:-}" ] || : >>"$POINTS_DONE"
    _all=$(printf '%s\n' "$_points" | grep -c .)
    _points=$(printf '%s\n' "$_points" | grep -Fxv -f "${POINTS_DONE:-/dev/null}")
    _todo=$(printf '%s\n' "$_points" | grep -c .)
    _count=0 _failed=0 _start=$(date +%s)
    echo "# $_all points, of which $((_all - _todo)) passed before"
    while read -r _point; do
        [ -n "$_point" ] || continue
        [ $(($(date +%s) - _start)) -lt "${POINTS_SECONDS:-1000000000}" ] || break
        _count=$((_count + 1)) _began=$(date +%s)
        if _output=$(combinations_point "$_point"); then
            echo "ok $_count - $_point"
            [ -z "${POINTS_DONE:-}" ] || printf '%s\n' "$_point" >>"$POINTS_DONE"
        else
            _failed=1
            echo "not ok $_count - $_point"
            printf '%s\n' "$_output" | grep -v '^ok' | sed 's/^/# /' | head -100
        fi
        _took=$(($(date +%s) - _began))
        [ $_took -lt 10 ] || echo "# it took $_took s"
    done <<POINTS
$_points
POINTS
    echo "# $((_todo - _count)) points left"
    [ $_count = 0 ] && echo "1..0 # SKIP no point to run" || echo "1..$_count"
    exit $_failed
}
