/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What components say while they are opened. Private to opal/mca/base. */
#ifndef OPAL_MCA_BASE_LOG_H
#define OPAL_MCA_BASE_LOG_H

/* The last message that this thread logged at MCA_LOG_INFO or louder, or reported, through the
 * services since mca_base_log_forget_reason(); "" if there was none. It explains why a component
 * refused. */
const char *mca_base_log_reason(void);
void mca_base_log_forget_reason(void);

#endif
