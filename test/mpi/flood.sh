#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Senders that do not keep to a receiver's window, and such as do (flood.c).
. "$top_srcdir/test/support/combinations.sh"
combinations <<LIST
flood --mca btl shm,self
flood --mca btl tcp,self
flood --mca pml dr --mca btl shm,self --mca pml_dr_path_timeout 3
flood --mca pml dr --mca btl udp,self --mca pml_dr_path_timeout 3
LIST
