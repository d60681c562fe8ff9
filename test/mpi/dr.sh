#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# pml/dr and processes that do not answer, and messages that come in another order (dr.c). DR_STOP_S=60 stops one for a minute; DR_LEAVE_SEEDS are those of the
# faults under which all leave.
. "$top_srcdir/test/support/combinations.sh"
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
printf '%s\n' '0 loss 0' '1s loss 1000000 rank=0' '3s loss 0' >"$folder/lost"
leaving() {
    for seed in ${DR_LEAVE_SEEDS:-1 2 3}; do
        echo "dr:leaving --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap shm --mca btl_chaos_seed $seed" \
            "--mca btl_chaos_loss 200000 --mca btl_chaos_damage 20000 --mca btl_chaos_reorder 50000" \
            "--mca pml_dr_path_timeout 25"
    done
}
combinations <<LIST
dr:stopped --mca pml dr --mca btl shm,self
dr:stopped --mca pml dr --mca btl tcp,self
dr:stopped --mca pml dr --mca btl udp,self
dr:computing --mca pml dr --mca btl shm,self
dr:computing --mca pml dr --mca btl udp,self
dr:silent --mca pml dr --mca btl udp,self --mca pml_dr_path_timeout 2
dr:silent --mca pml dr --mca btl shm,self --mca pml_dr_path_timeout 2
dr:late --mca pml dr --mca btl udp,self --mca pml_dr_path_timeout 3
dr:late --mca pml dr --mca btl tcp,self --mca pml_dr_path_timeout 3
dr:away --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap udp --mca btl_chaos_script $folder/lost --mca pml_dr_path_timeout 3
dr:away --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap shm --mca btl_chaos_script $folder/lost --mca pml_dr_path_timeout 3
dr:leaving --mca pml dr --mca btl udp,self
$(leaving)
dr:outside --mca pml dr --mca btl shm,self
dr:outside --mca pml dr --mca btl shm,self --mca btl_shm_single_copy never
dr:outside --mca pml dr --mca btl tcp,self
dr:outside --mca pml dr --mca btl udp,self
dr:outside --mca pml dr --mca btl shm,tcp,self --mca btl_shm_exclusivity 100 --mca btl_tcp_exclusivity 100
dr:outside --mca pml teg --mca btl tcp,self
dr:parting --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap udp --mca btl_chaos_loss 200000 --mca btl_chaos_seed 21
lent:stream --mca pml dr --mca btl shm,self
lent:stream --mca pml dr --mca btl shm,self --mca pml_dr_checksum none --mca pml_dr_bare 0
lent:left --mca pml dr --mca btl shm,self
lent:left --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap shm --mca btl_chaos_seed 5 --mca btl_chaos_loss 50000 --mca btl_chaos_damage 50000 --mca btl_chaos_duplicate 20000 --mca btl_chaos_reorder 50000
lent:bare --mca pml dr --mca btl shm,self --mca pml_dr_checksum none
lent:bare --mca pml dr --mca btl shm,tcp,self --mca pml_dr_checksum none
lent:reserve --mca pml dr --mca btl shm,tcp,self
lent:few --mca pml dr --mca btl shm,self --mca pml_dr_window 128k
lent:few --mca pml dr --mca btl tcp,self
lent:few --mca pml teg --mca btl shm,self
lent:few --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap shm --mca btl_chaos_seed 3 --mca btl_chaos_loss 50000 --mca btl_chaos_damage 50000 --mca btl_chaos_duplicate 20000 --mca btl_chaos_reorder 50000
lent:few --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap tcp --mca btl_chaos_seed 4 --mca btl_chaos_loss 50000 --mca btl_chaos_damage 50000 --mca btl_chaos_duplicate 20000 --mca btl_chaos_reorder 50000
lent:asked --mca pml dr --mca btl shm,self
lent:asked --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap shm --mca btl_chaos_loss 1
lent:abandoned --mca pml dr --mca btl shm,self --mca pml_dr_path_timeout 2
dr:overtaking --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap shm --mca btl_chaos_seed 1 --mca btl_chaos_reorder 100000
dr:overtaking --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap tcp --mca btl_chaos_seed 2 --mca btl_chaos_loss 20000 --mca btl_chaos_damage 20000 --mca btl_chaos_duplicate 20000 --mca btl_chaos_reorder 50000
dr:spread --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap udp --mca btl_chaos_reorder 900000 --mca btl_chaos_depth 100 --mca btl_chaos_delay_us 200
LIST
