# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dist_doc_DATA += \
    docs/performance.md \
    docs/testing.md
