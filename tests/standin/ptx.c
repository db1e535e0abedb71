#include <config.h>

#include "ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

/* One parameter: ".param .align 8 .b8 name[168]" or ".param .u32 name". */
static void read_parameter(const char *from, const char *end, struct signature *signature)
{
    unsigned align = 1, size = 0;
    const char *at = from;
    while ((at = memchr(at, '.', (size_t)(end - at))) != NULL) {
        at++;
        if (strncmp(at, "align ", 6) == 0)
            align = (unsigned)atoi(at + 6);
        else if (strchr("bfsu", *at) != NULL && atoi(at + 1) != 0)
            size = (unsigned)atoi(at + 1) / 8;
    }
    const char *bracket = memchr(from, '[', (size_t)(end - from));
    if (bracket != NULL)
        size *= (unsigned)atoi(bracket + 1);
    else
        align = size;
    signature->offsets[signature->count] = (signature->bytes + align - 1) / align * align;
    signature->sizes[signature->count] = size;
    signature->bytes = signature->offsets[signature->count++] + size;
}

int ptx_kernel(const char *text, const char *name, struct signature *signature)
{
    char head[160];
    snprintf(head, sizeof head, ".entry %s(", name);
    const char *at = strstr(text, head), *body, *close;
    if (at == NULL || (close = strchr(at, ')')) == NULL || (body = strchr(at, '{')) == NULL)
        return STANDIN_NOT_FOUND;
    *signature = (struct signature){.threads_most = 1024, .lanes = 32};
    while ((at = strstr(at, ".param")) != NULL && at < close && signature->count < SIGNATURE_ARGUMENTS_MOST) {
        const char *end = memchr(at, ',', (size_t)(close - at));
        read_parameter(at + strlen(".param"), end != NULL ? end : close, signature);
        at += strlen(".param");
    }
    const char *most = strstr(close, ".maxntid ");
    if (most != NULL && most < body)
        signature->threads_most = (unsigned)atoi(most + strlen(".maxntid "));
    return 0;
}
