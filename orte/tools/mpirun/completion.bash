# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Completion of mpirun's and mpiexec's options in bash; the program itself tells what they are.
_hawser_mpirun() {
    local word=${COMP_WORDS[COMP_CWORD]}
    case $word in
    -*) mapfile -t COMPREPLY < <(compgen -W "$("$1" --help options 2>/dev/null)" -- "$word") ;;
    *) mapfile -t COMPREPLY < <(compgen -c -f -- "$word") ;;
    esac
}
complete -o bashdefault -o default -F _hawser_mpirun mpirun mpiexec
