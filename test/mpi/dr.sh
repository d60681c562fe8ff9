#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# pml/dr and processes that do not answer (dr.c). DR_STOP_S=60 stops one for a minute.
. "$top_srcdir/test/support/combinations.sh"
combinations <<LIST
dr:stopped --mca pml dr --mca btl shm,self
dr:stopped --mca pml dr --mca btl tcp,self
dr:stopped --mca pml dr --mca btl udp,self
dr:computing --mca pml dr --mca btl shm,self
dr:computing --mca pml dr --mca btl udp,self
dr:silent --mca pml dr --mca btl udp,self --mca pml_dr_path_timeout 2
dr:silent --mca pml dr --mca btl shm,self --mca pml_dr_path_timeout 2
dr:leaving --mca pml dr --mca btl udp,self
LIST
