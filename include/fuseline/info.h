/*
 * What this build is and what it found on this machine.
 */
#ifndef FUSELINE_INFO_H
#define FUSELINE_INFO_H

#include <stddef.h>

#include <fuseline/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The library's version, "MAJOR.MINOR.PATCH", of the library that runs (a header could only tell of the one compiled against).
 *
 * Returns: a static string, never NULL.
 */
FUSELINE_API const char *fuseline_version(void);

/*
 * One JSON object, in UTF-8: `version`; `operators`, a list of names; `cpu` with `variant` ("base", "avx2", "avx512") and `threads`;
 * `gpu` with `targets` (the embedded code: "gfx1151", "ptx_75", "sm_90", ...), `runtime` (path of the GPU runtime in use, of
 * that with devices where both vendors' are there, or null), `error` (why there is no runtime, or null) and `devices`, a list of
 * objects with `index`, `kind` ("rocm" or "cuda"), `architecture`, `supported` (code for it is embedded). Looks for the GPU
 * runtime as the first GPU call would.
 *
 * Out:     buffer, `size` bytes, filled with as much as fits and always NUL-terminated; may be NULL when size is 0
 * Returns: the length of the whole text without its NUL; when it is `size` or more the text was cut: call again
 */
FUSELINE_API size_t fuseline_info(char *buffer, size_t size);

/*
 * Names the GPU runtime to use, before the first GPU call, for a binding that knows which copy its framework has loaded.
 * The environment variable FUSELINE_GPU_RUNTIME, when set, is preferred to this.
 *
 * In:      path, a file name as dlopen takes it (copied); NULL forgets an earlier hint
 * Returns: FUSELINE_OK; FUSELINE_ERROR_RUNTIME if another runtime is in use already
 */
FUSELINE_API fuseline_status fuseline_set_gpu_runtime(const char *path);

#ifdef __cplusplus
}
#endif

#endif
