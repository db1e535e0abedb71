/* Which copy of a GPU runtime to use. */
#ifndef FL_GPU_FIND_H
#define FL_GPU_FIND_H

#include "vendor.h"

/*
 * Opens the vendor's runtime library. In this order:
 *
 *   1. the file that the environment variable FUSELINE_GPU_RUNTIME names;
 *   2. the file that fuseline_set_gpu_runtime named;
 *   3. the copy that is in the process already: two copies are an error, since a stream of one means nothing to the other;
 *   4. the system's, newest version first.
 *
 * A file given by 1 or 2 whose name is that of the other vendor's library is passed over.
 * Called with fl_gpu_lock held. The library is never closed.
 */
fuseline_status fl_find_library(const struct fl_vendor *vendor, void **handle);

/* How many libraries the process has loaded so far: a quick sign of whether there can be another copy. */
unsigned long long fl_find_loads(void);

/*
 * For a runtime in use: refuses as above if another copy has been loaded since, whose tensors nobody could tell from its own,
 * unless 1 or 2 say that this one is meant. Called with fl_gpu_lock held.
 *
 * In:      handle, path: of the runtime in use
 */
fuseline_status fl_find_again(const struct fl_vendor *vendor, void *handle, const char *path);

/* True if a file is the loaded library of this handle. */
int fl_find_is(const char *path, void *handle);

/* Fills all functions from the library, or names the one that it lacks; and the library's path. */
fuseline_status fl_find_functions(const struct fl_vendor *vendor, void *handle, struct fl_functions *functions,
                                  const char **path);

/* Keeps a copy of the caller's hint, or forgets it (NULL). Called with fl_gpu_lock held. */
fuseline_status fl_find_set_hint(const char *path);

/* True if the file's name is that of the vendor's library, or of no vendor's that we know. */
int fl_find_may_be(const struct fl_vendor *vendor, const char *path);

#endif
