/* How the library reports an error: who finds it writes the message, callers pass the status on. */
#ifndef FL_STATUS_H
#define FL_STATUS_H

#include <fuseline/status.h>

/* Writes the thread's message and returns `status`. */
fuseline_status fl_fail(fuseline_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns from the calling function with the status of a failed step. */
#define FL_TRY(step)                                                                                                             \
    do {                                                                                                                         \
        fuseline_status fl_try_status = (step);                                                                                  \
        if (__builtin_expect(fl_try_status != 0, 0))                                                                             \
            return fl_try_status;                                                                                                \
    } while (0)

#endif
