#include <config.h>

#include "find.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

static char *hint;

fuseline_status fl_find_set_hint(const char *path)
{
    char *copy = NULL;
    if (path != NULL && (copy = strdup(path)) == NULL)
        return fl_fail(FUSELINE_ERROR_MEMORY, "out of memory");
    free(hint);
    hint = copy;
    return FUSELINE_OK;
}

static int begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

int fl_find_may_be(const struct fl_vendor *vendor, const char *path)
{
    const struct fl_vendor *other = vendor == &fl_vendor_hip ? &fl_vendor_cuda : &fl_vendor_hip;
    return !begins_with(file_name(path), other->file);
}

/* The copies of a library that are in the process: ld.so loads one file once, so two entries are two copies. */
struct copies {
    const char *file;
    int count;
    char path[2][1024];
};

static int note_copy(struct dl_phdr_info *info, size_t size, void *data)
{
    struct copies *copies = data;
    (void)size;
    if (info->dlpi_name == NULL || !begins_with(file_name(info->dlpi_name), copies->file))
        return 0;
    if (copies->count < 2 && strlen(info->dlpi_name) < sizeof copies->path[0])
        strcpy(copies->path[copies->count], info->dlpi_name);
    copies->count++;
    return 0;
}

static int note_loads(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(unsigned long long *)data = info->dlpi_adds;
    return 1; /* the first entry tells */
}

unsigned long long fl_find_loads(void)
{
    unsigned long long loads = 0;
    dl_iterate_phdr(note_loads, &loads);
    return loads;
}

static const char *named_by_environment(const struct fl_vendor *vendor)
{
    const char *named = secure_getenv("FUSELINE_GPU_RUNTIME");
    return named != NULL && *named != '\0' && fl_find_may_be(vendor, named) ? named : NULL;
}

static const char *named_by_hint(const struct fl_vendor *vendor)
{
    return hint != NULL && fl_find_may_be(vendor, hint) ? hint : NULL;
}

/* The copies that are loaded; more than one are refused. */
static fuseline_status find_copies(const struct fl_vendor *vendor, struct copies *copies)
{
    *copies = (struct copies){.file = vendor->file};
    dl_iterate_phdr(note_copy, copies);
    if (copies->count > 1)
        return fl_fail(FUSELINE_ERROR_RUNTIME,
                       "%d copies of the %s runtime are loaded, %s and %s; name the one that the tensors belong to, by "
                       "FUSELINE_GPU_RUNTIME or fuseline_set_gpu_runtime",
                       copies->count, vendor->label, copies->path[0], copies->path[1]);
    return FUSELINE_OK;
}

int fl_find_is(const char *path, void *handle)
{
    void *other = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    return other == handle;
}

fuseline_status fl_find_again(const struct fl_vendor *vendor, void *handle, const char *path)
{
    struct copies copies;
    const char *named = named_by_environment(vendor);
    if (named != NULL && !fl_find_is(named, handle))
        return fl_fail(FUSELINE_ERROR_RUNTIME,
                       "FUSELINE_GPU_RUNTIME names %s, but %s is in use already; accepted: a name before the first GPU call",
                       named, path);
    return named != NULL || named_by_hint(vendor) != NULL ? FUSELINE_OK : find_copies(vendor, &copies);
}

static fuseline_status open_named(const struct fl_vendor *vendor, const char *path, const char *who, void **handle)
{
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*handle == NULL)
        return fl_fail(FUSELINE_ERROR_RUNTIME, "%s names %s as the %s runtime, which cannot be opened: %s", who, path,
                       vendor->label, dlerror());
    return FUSELINE_OK;
}

fuseline_status fl_find_library(const struct fl_vendor *vendor, void **handle)
{
    const char *named;
    struct copies copies;

    if ((named = named_by_environment(vendor)) != NULL)
        return open_named(vendor, named, "FUSELINE_GPU_RUNTIME", handle);
    if ((named = named_by_hint(vendor)) != NULL)
        return open_named(vendor, named, "fuseline_set_gpu_runtime", handle);

    FL_TRY(find_copies(vendor, &copies));
    if (copies.count == 1 && (*handle = dlopen(copies.path[0], RTLD_NOW | RTLD_NOLOAD)) != NULL)
        return FUSELINE_OK;

    for (int k = 0; vendor->sonames[k] != NULL; k++)
        if ((*handle = dlopen(vendor->sonames[k], RTLD_NOW | RTLD_LOCAL)) != NULL)
            return FUSELINE_OK;
    return fl_fail(FUSELINE_ERROR_RUNTIME, "no %s runtime is loaded in this process, and none could be opened: %s", vendor->label,
                   dlerror());
}

fuseline_status fl_find_functions(const struct fl_vendor *vendor, void *handle, struct fl_functions *functions, const char **path)
{
    struct link_map *map;
    *path = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : vendor->file;
    memset(functions, 0, sizeof *functions);
    for (const struct fl_symbol *symbol = vendor->symbols; symbol->name != NULL; symbol++) {
        void *address = dlsym(handle, symbol->name);
        if (address == NULL && symbol->required)
            return fl_fail(FUSELINE_ERROR_RUNTIME, "%s has no function %s; accepted: a %s runtime that has it", *path,
                           symbol->name, vendor->label);
        memcpy((char *)functions + symbol->offset, &address, sizeof address);
    }
    return FUSELINE_OK;
}
