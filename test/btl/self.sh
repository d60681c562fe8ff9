#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/self keeps the contract.
. "$top_srcdir/test/btl/kit.sh"
conform self
