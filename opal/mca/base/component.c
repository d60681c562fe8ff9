/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Finding component objects in their folders, loading them, and checking what they say they are. */
#include "opal/mca/base/component.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <ltdl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opal/util/installdirs.h"
#include "opal/util/output.h"

static struct {
    mca_base_object_t *list;
    size_t count, room;
    bool read;
} objects;

char *mca_base_reason(const char *format, ...)
{
    char *out = NULL;
    va_list args;
    va_start(args, format);
    const int rc = vasprintf(&out, format, args);
    va_end(args);
    return rc < 0 ? NULL : out;
}

/* ---- Folders ---- */

static void free_object(mca_base_object_t *o)
{
    free(o->framework);
    free(o->name);
    free(o->path);
}

static bool is_known(const char *framework, size_t framework_len, const char *name, size_t name_len)
{
    for (size_t i = 0; i < objects.count; i++) {
        const mca_base_object_t *o = &objects.list[i];
        if (strlen(o->framework) == framework_len
            && 0 == memcmp(o->framework, framework, framework_len)
            && strlen(o->name) == name_len && 0 == memcmp(o->name, name, name_len)) {
            return true;
        }
    }
    return false;
}

/* Take note of dir/file if it is called mca_<framework>_<name>.so and no earlier folder has it. */
static int consider(const char *dir, size_t dir_len, const char *file)
{
    const size_t len = strlen(file);
    const char *framework = file + 4;
    if (len < 8 || 0 != strncmp(file, "mca_", 4) || 0 != strcmp(file + len - 3, ".so")) {
        return OPAL_SUCCESS;
    }
    const char *name = strchr(framework, '_');
    if (NULL == name || name == framework || name + 1 >= file + len - 3) {
        return OPAL_SUCCESS;
    }
    const size_t framework_len = (size_t) (name++ - framework);
    const size_t name_len = (size_t) (file + len - 3 - name);
    if (is_known(framework, framework_len, name, name_len)) {
        return OPAL_SUCCESS;
    }
    if (objects.count == objects.room) {
        const size_t room = objects.room ? 2 * objects.room : 32;
        void *list = realloc(objects.list, room * sizeof(*objects.list));
        if (NULL == list) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        objects.list = list;
        objects.room = room;
    }
    mca_base_object_t o = {
        .framework = strndup(framework, framework_len),
        .name = strndup(name, name_len),
        .path = mca_base_reason("%.*s/%s", (int) dir_len, dir, file),
    };
    if (NULL == o.framework || NULL == o.name || NULL == o.path) {
        free_object(&o);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    objects.list[objects.count++] = o;
    return OPAL_SUCCESS;
}

static int read_folder(const char *dir, size_t dir_len, bool by_user)
{
    char *path = strndup(dir, dir_len);
    if (NULL == path) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    DIR *stream = opendir(path);
    if (NULL == stream && by_user) {
        opal_show_help("mca-component-path",
                       "the folder %s, named in the parameter mca_base_component_path, "
                       "can't be read: %s.\nNo components are taken from it.", path,
                       strerror(errno));
    }
    free(path);
    if (NULL == stream) {
        return OPAL_SUCCESS;
    }
    int rc = OPAL_SUCCESS;
    for (const struct dirent *e; OPAL_SUCCESS == rc && NULL != (e = readdir(stream));) {
        rc = consider(dir, dir_len, e->d_name);
    }
    closedir(stream);
    return rc;
}

static int read_folders(const char *list, bool by_user)
{
    int rc = OPAL_SUCCESS;
    while (list && *list != '\0' && OPAL_SUCCESS == rc) {
        const size_t len = strcspn(list, ":");
        if (len > 0) {
            rc = read_folder(list, len, by_user);
        }
        list += len + (':' == list[len]);
    }
    return rc;
}

static int compare_objects(const void *a, const void *b)
{
    const mca_base_object_t *x = a, *y = b;
    const int frameworks = strcmp(x->framework, y->framework);
    return frameworks ? frameworks : strcmp(x->name, y->name);
}

int mca_base_objects(const mca_base_object_t **out, size_t *count)
{
    if (!objects.read) {
        mca_base_var_value_t path = {0};
        mca_base_var_read(mca_base_var_find("mca_base_component_path"), &path);
        int rc = read_folders(path.s, true);
        if (OPAL_SUCCESS == rc) {
            rc = read_folders(opal_installdirs()->hawserlibdir, false);
        }
        if (OPAL_SUCCESS != rc) {
            mca_base_objects_free();
            return rc;
        }
        if (objects.count > 0) {
            qsort(objects.list, objects.count, sizeof(*objects.list), compare_objects);
        }
        objects.read = true;
    }
    *out = objects.list;
    *count = objects.count;
    return OPAL_SUCCESS;
}

void mca_base_objects_free(void)
{
    for (size_t i = 0; i < objects.count; i++) {
        free_object(&objects.list[i]);
    }
    free(objects.list);
    memset(&objects, 0, sizeof(objects));
}

/* ---- Loading ---- */

char *mca_base_component_refusal(const mca_base_framework_t *framework, const char *name,
                                 const mca_base_component_t *c)
{
    if (c->magic != MCA_BASE_COMPONENT_MAGIC) {
        return mca_base_reason("its symbol mca_%s_%s_component is no component description (wrong "
                               "magic number); rebuild it with this installation's headers",
                               framework->name, name);
    }
    if (c->struct_size < sizeof(*c)) {
        return mca_base_reason("its description has %u bytes where %zu are needed; rebuild it with "
                               "this installation's headers", c->struct_size, sizeof(*c));
    }
    if (NULL == c->framework || 0 != strcmp(c->framework, framework->name)) {
        return mca_base_reason("it says that it belongs to framework \"%s\"; its file is named "
                               "wrongly",
                               c->framework ? c->framework : "(none)");
    }
    if (NULL == c->name || 0 != strcmp(c->name, name)) {
        return mca_base_reason("it says that its name is \"%s\"; its file is named wrongly",
                               c->name ? c->name : "(none)");
    }
    if (c->contract_major != framework->contract_major
        || c->contract_minor > framework->contract_minor) {
        return mca_base_reason("it was built for version %u.%u of the %s contract, but this "
                               "installation has %u.%u; rebuild it with this installation's "
                               "headers, or install the version made for it",
                               c->contract_major, c->contract_minor, framework->name,
                               framework->contract_major,
                               framework->contract_minor);
    }
    if (NULL == c->ops) {
        return mca_base_reason("it has no table of operations");
    }
    return NULL;
}

/* Why libltdl could not load the object. It hides the loader's own words behind "file not found"
 * when a library that the object needs is missing. */
static char *load_error(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (NULL == handle) {
        const char *error = dlerror();
        return mca_base_reason("it can't be loaded: %s", error ? error : "unknown reason");
    }
    dlclose(handle);
    const char *error = lt_dlerror();
    return mca_base_reason("it can't be loaded: %s", error ? error : "unknown reason");
}

/* The loader maps an object without a look at its length and dies of a bus error if the file is cut
 * short, as by a full disk. Other flaws it finds itself. */
static bool is_cut_short(const char *path)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) segment;
    struct stat st;
    bool cut = false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    if (0 == fstat(fd, &st) && pread(fd, &head, sizeof(head), 0) == (ssize_t) sizeof(head)
        && 0 == memcmp(head.e_ident, ELFMAG, SELFMAG) && head.e_phentsize == sizeof(segment)) {
        const size_t size = (size_t) st.st_size;
        for (size_t i = 0; i < head.e_phnum && !cut; i++) {
            const off_t at = (off_t) (head.e_phoff + i * sizeof(segment));
            cut = pread(fd, &segment, sizeof(segment), at) != (ssize_t) sizeof(segment)
                  || segment.p_filesz > size || segment.p_offset > size - segment.p_filesz;
        }
    }
    close(fd);
    return cut;
}

static lt_dlhandle open_object(const char *path)
{
    lt_dladvise advise;
    lt_dlhandle handle = NULL;
    if (0 != lt_dladvise_init(&advise)) {
        return NULL;
    }
    if (0 == lt_dladvise_local(&advise)) {
        handle = lt_dlopenadvise(path, advise);
    }
    lt_dladvise_destroy(&advise);
    return handle;
}

mca_base_component_item_t *mca_base_component_load(const mca_base_framework_t *framework,
                                                   const mca_base_object_t *object, char **reason,
                                                   bool *misbuilt)
{
    *reason = NULL;
    *misbuilt = false;
    mca_base_component_item_t *item = calloc(1, sizeof(*item));
    char *symbol = mca_base_reason("mca_%s_%s_component", framework->name, object->name);
    if (NULL == item || NULL == symbol || 0 != lt_dlinit()) {
        free(item);
        free(symbol);
        *reason = mca_base_reason("there is no memory left");
        return NULL;
    }
    opal_list_item_init(&item->item);
    item->path = strdup(object->path);
    const bool cut = is_cut_short(object->path);
    item->handle = cut ? NULL : open_object(object->path);
    if (NULL == item->handle) {
        *reason = cut ? mca_base_reason("its file is not complete; install it again")
                      : load_error(object->path);
    } else {
        item->component = lt_dlsym(item->handle, symbol);
        *reason = item->component ? mca_base_component_refusal(framework, object->name,
                                                               item->component)
                                  : mca_base_reason("it does not define the symbol %s", symbol);
        *misbuilt = *reason != NULL;
    }
    free(symbol);
    if (*reason || NULL == item->component || NULL == item->path) {
        const bool was_opened = item->handle != NULL;
        mca_base_component_unload(item);
        if (!was_opened) {
            lt_dlexit();
        }
        return NULL;
    }
    return item;
}

void mca_base_component_unload(mca_base_component_item_t *item)
{
    if (item->handle) {
        lt_dlclose(item->handle);
        lt_dlexit(); /* one lt_dlinit() per loaded object */
    }
    free(item->path);
    free(item);
}
