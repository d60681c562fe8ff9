/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Source of all loadable test components; macros say which one it is and what is wrong with it:
 * TST_NAME (identifier), TST_SAYS_NAME, TST_MAGIC, TST_MAJOR, TST_MINOR, TST_OPEN (result of
 * open()). */
#include "hawser/component.h"

#ifndef TST_MAGIC
#define TST_MAGIC MCA_BASE_COMPONENT_MAGIC
#endif
#ifndef TST_MAJOR
#define TST_MAJOR 2
#endif
#ifndef TST_MINOR
#define TST_MINOR 1
#endif
#ifndef TST_OPEN
#define TST_OPEN MCA_SUCCESS
#endif
#ifndef TST_SAYS_NAME
#define TST_SAYS_NAME STRING(TST_NAME)
#endif
#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)
#define JOIN_OF(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_OF(a, b, c)

#ifdef TST_NEEDS
int tst_needed(void);
#endif

static int64_t answer;

static int register_params(const mca_base_services_t *services)
{
    const mca_base_var_desc_t desc = {
        .framework = "tst", .component = STRING(TST_NAME), .name = "answer",
        .help = "a parameter of a component",
        .type = MCA_VAR_INT, .level = MCA_VAR_LEVEL_USER, .def.i = 42,
    };
    return services->var_register(&desc, &answer);
}

static int open_component(const mca_base_services_t *services)
{
#ifdef TST_NEEDS
    answer += tst_needed();
#endif
    if (TST_OPEN != MCA_SUCCESS) {
        services->log("tst", STRING(TST_NAME), MCA_LOG_INFO, "there is no such hardware here");
    }
    return TST_OPEN;
}

MCA_EXPORT extern const mca_base_component_t JOIN(mca_tst_, TST_NAME, _component);
const mca_base_component_t JOIN(mca_tst_, TST_NAME, _component) = {
    .magic = TST_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "tst",
    .contract_major = TST_MAJOR,
    .contract_minor = TST_MINOR,
    .name = TST_SAYS_NAME,
    .version = {1, 2, 3},
    .register_params = register_params,
    .open = open_component,
    .ops = &answer,
};
