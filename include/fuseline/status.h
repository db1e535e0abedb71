/*
 * Status codes and the message of the last error.
 */
#ifndef FUSELINE_STATUS_H
#define FUSELINE_STATUS_H

#if defined(_WIN32)
#define FUSELINE_API
#else
#define FUSELINE_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. Values are part of the ABI: new ones are only ever added at the end. */
typedef enum fuseline_status {
    FUSELINE_OK = 0,
    FUSELINE_ERROR_ARGUMENT = 1,     /* NULL, a malformed tensor, a scalar out of range */
    FUSELINE_ERROR_SHAPE = 2,        /* shapes differ, or a shape is impossible */
    FUSELINE_ERROR_DTYPE = 3,        /* element type not supported, or types differ */
    FUSELINE_ERROR_LAYOUT = 4,       /* strides that no kernel reads without a copy */
    FUSELINE_ERROR_OVERLAP = 5,      /* an output shares some, but not all, of its memory with another operand */
    FUSELINE_ERROR_READ_ONLY = 6,    /* an output is flagged read-only */
    FUSELINE_ERROR_DEVICE = 7,       /* device type not supported, or operands on different devices */
    FUSELINE_ERROR_ARCHITECTURE = 8, /* no code for this GPU is embedded in the library */
    FUSELINE_ERROR_VERSION = 9,      /* a DLPack structure of another major version */
    FUSELINE_ERROR_RUNTIME = 10,     /* the GPU runtime is missing, ambiguous, or reported an error of its own */
    FUSELINE_ERROR_MEMORY = 11,      /* host memory ran out */
    FUSELINE_ERROR_EXCHANGE = 12     /* the framework's DLPack exchange functions reported an error */
} fuseline_status;

/*
 * The message of this thread's last failed call: which argument, what was found, what is accepted.
 *
 * Returns: a NUL-terminated string, never NULL; empty if no call of this thread has failed. It stays valid until the next
 *          failing fuseline call of the same thread. A successful call leaves it as it is.
 */
FUSELINE_API const char *fuseline_last_error(void);

/*
 * The name of a status, such as "FUSELINE_ERROR_DTYPE".
 *
 * Returns: a static string, never NULL; "FUSELINE_ERROR_UNKNOWN" for a value that is no status.
 */
FUSELINE_API const char *fuseline_status_string(fuseline_status status);

#ifdef __cplusplus
}
#endif

#endif
