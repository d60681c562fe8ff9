# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# combinations: reads lines "PROGRAM[:TEST] ARGUMENTS OF MPIRUN", runs each program of test/mpi (or one of its tests) that way,
# one point each, and ends the script. A failed point names its combination.
combinations() {
    _count=0
    _failed=0
    while read -r _program _args; do
        case $_program in '' | '#'*) continue ;; esac
        _count=$((_count + 1))
        _test=${_program#*:}
        [ "$_test" = "$_program" ] && _test=
        if _output=$(MPI_TEST_JUDGE=1 MPIRUN_ARGS="$_args" \
                "${top_builddir:-..}/test/mpi/${_program%%:*}" ${_test:+"$_test"} </dev/null 2>&1); then
            echo "ok $_count - $_program $_args"
        else
            _failed=1
            echo "not ok $_count - $_program $_args"
            printf '%s\n' "$_output" | grep -v '^ok' | sed 's/^/# /' | head -100
        fi
    done
    echo "1..$_count"
    exit $_failed
}
