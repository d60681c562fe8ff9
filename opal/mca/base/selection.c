/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Parser of include and exclude lists. */
#include "opal/mca/base/selection.h"

#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

bool mca_base_selection_has(const mca_base_selection_t *selection, const char *name)
{
    for (size_t i = 0; i < selection->count; i++) {
        if (0 == strcmp(selection->names[i], name)) {
            return true;
        }
    }
    return false;
}

void mca_base_selection_free(mca_base_selection_t *selection)
{
    for (size_t i = 0; i < selection->count; i++) {
        free(selection->names[i]);
    }
    free(selection->names);
    *selection = (mca_base_selection_t) {0};
}

/* Append text[0..len) without the blanks around it. */
static int add(mca_base_selection_t *selection, const char *text, size_t len, const char **wrong)
{
    while (len > 0 && ' ' == *text) {
        text++;
        len--;
    }
    while (len > 0 && ' ' == text[len - 1]) {
        len--;
    }
    if (0 == len) {
        return OPAL_SUCCESS;
    }
    if ('^' == *text) {
        *wrong =
            "'^' may stand in front of the whole list only: a list either includes or excludes";
        return OPAL_ERR_BAD_PARAM;
    }
    char *name = strndup(text, len);
    if (NULL == name) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (mca_base_selection_has(selection, name)) {
        free(name);
        return OPAL_SUCCESS;
    }
    selection->names[selection->count++] = name;
    return OPAL_SUCCESS;
}

int mca_base_selection_parse(const char *text, mca_base_selection_t *selection, const char **wrong)
{
    *selection = (mca_base_selection_t) {0};
    *wrong = NULL;
    text = text ? text + strspn(text, " ") : "";
    selection->include = *text != '^' && *text != '\0';
    text += '^' == *text;

    size_t room = 1;
    for (const char *c = text; *c != '\0'; c++) {
        room += ',' == *c;
    }
    selection->names = calloc(room, sizeof(*selection->names));
    int rc = selection->names ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
    while (OPAL_SUCCESS == rc && *text != '\0') {
        const size_t len = strcspn(text, ",");
        rc = add(selection, text, len, wrong);
        text += len + (',' == text[len]);
    }
    if (OPAL_SUCCESS == rc && selection->include && 0 == selection->count) {
        *wrong = "it names no component";
        rc = OPAL_ERR_BAD_PARAM;
    }
    if (OPAL_SUCCESS != rc) {
        mca_base_selection_free(selection);
    }
    return rc;
}
