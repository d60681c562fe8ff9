#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Every program that is installed has a manual page, and the two agree with each other: what --help lists is in the page,
# and what the page describes is in --help.
. "$top_srcdir/test/support/tap.sh"
tap_start 120
pages=$top_srcdir/docs/man
[ -f "$pages/ompi_info.1" ] || exit 99
cd "$tap_dir" || exit 99

# value DIR NAME: of a variable of the makefile there
value() { printf 'include Makefile\nshow:\n\t@echo $(%s)\n' "$2" | MAKEFLAGS= MFLAGS= make -s --no-print-directory -C "$top_builddir/$1" -f - show; }
# Other names that a program is installed under.
links() {
    sed -n -e 's/.*for name in \(.*\); do rm -f $$name && $(LN_S).*/\1/p' \
        -e 's/.*(bindir).*$(LN_S) [^ ]* \([a-z+]*\)$/\1/p' "$top_builddir/$1/Makefile" | tr ' ' '\n'
}

for dir in orte ompi; do
    value $dir bin_PROGRAMS | tr ' ' '\n'
done >programs
{ cat programs; links orte; links ompi; } | sort -u >names
installed=" $(value . dist_man1_MANS) "
while read -r name; do
    [ -s "$pages/$name.1" ] || echo "$name has no page"
    echo "$installed" | grep -qF "/$name.1 " || echo "$name's page is not installed"
done <names >wrong
tap_ok "there are programs" test "$(wc -l <names)" -ge 10
tap_ok "each program that is installed has its manual page" diff /dev/null wrong
for page in "$pages"/*.1; do
    grep -qx "$(basename "$page" .1)" names || echo "$page"
done >wrong
tap_ok "and each page its program" diff /dev/null wrong

# Of text: options, one a line; with one hyphen, as most programs take one or two, and without what follows = or :.
options() { tr -s ' ,=[]|()":' '\n' | sed -n 's/^--*\([a-zA-Z][a-zA-Z_-]*\)$/-\1/p' | sort -u; }
plain() { sed -e 's/\\f[A-Z]//g' -e 's/\\-/-/g' "$@"; }
# Of a page: its headings; those of --help: the lines that begin with one, up to their text.
headings() { plain "$1" | awk 'tp { sub(/^\.[A-Z]+ /, ""); print } { tp = /^\.TP/ }' | options; }
listed() { sed -n 's/^ *\(-.*\)/\1/p' | sed 's/   .*//' | options; }
# all_in WORDS LIST: nothing of the list is missing in the words
all_in() { ! grep -vxFf "$1" "$2"; }

# agree NAME COMMAND...: the output of the command and the page, both ways
agree() {
    name=$1
    shift
    "$@" >help 2>&1
    listed <help >in_help
    headings "$pages/$name.1" >in_page
    plain "$pages/$name.1" | options >page_words
    tap_ok "$name: there are options" test -s in_help -a -s in_page
    tap_ok "$name: the page has all that --help lists" all_in page_words in_help
    tap_ok "$name: --help lists all that the page describes" all_in in_help in_page
}
agree hawser-btl-conform "$top_builddir/ompi/hawser-btl-conform" --help
agree ompi_info "$top_builddir/ompi/ompi_info" --help
agree mpicc "$top_builddir/ompi/mpicc" --showme:help
agree orte-clean "$top_builddir/orte/orte-clean" --help

# mpirun tells all of its spellings by itself; its --help is of several parts, which the page does not have as they are.
"$top_builddir/orte/mpirun" --help options | options >in_help
plain "$pages/mpirun.1" | tr "'" ' ' | options >page_words
tap_ok "mpirun: the page has all that --help lists" all_in page_words in_help
headings "$pages/mpirun.1" | while read -r option; do
    "$top_builddir/orte/mpirun" --help "${option#-}" >/dev/null 2>&1 || echo "$option"
done >wrong
tap_ok "mpirun: --help knows all that the page describes" diff /dev/null wrong

for program in ompi/hawser-btl-conform ompi/ompi_info orte/mpirun orte/orted orte/orte-clean; do
    tap_ok "${program#*/} --help is no failure, and no complaint" sh -c "
        '$top_builddir/$program' --help >out 2>err && [ -s out ] && [ ! -s err ]"
done

if man --version >/dev/null 2>&1; then
    for page in "$pages"/*.1; do
        head -n 1 "$page" | grep -q '^\.so' || man --warnings -l "$page" 2>&1 >/dev/null
    done >wrong
    tap_ok "man has nothing to say against any" diff /dev/null wrong
else
    tap_skip "man has nothing to say against any" "no man"
fi
# test/soak/run is not installed and has no page.
says() { "$top_srcdir/test/soak/run" --help >help 2>&1; grep -q "all by default: ends, .*, grid\.$" help && [ "$(wc -l <help)" -gt 5 ] && ! grep -q "error" help; }
tap_ok "test/soak/run --help names its tests" says
refused() { "$top_srcdir/test/soak/run" "$@" >out 2>&1; [ $? = 2 ] && grep -q "^soak: $1 .*: expected a whole number" out; }
for words in "--seed x oob" "--times 1.5 oob" "--minutes oob" "--seed"; do
    # shellcheck disable=SC2086
    tap_ok "test/soak/run $words" refused $words
done
tap_end
