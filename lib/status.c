#include "status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char fl_message[1024];

fuseline_status fl_fail(fuseline_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fl_message, sizeof fl_message, format, arguments);
    va_end(arguments);
    return status;
}

const char *fuseline_last_error(void)
{
    return fl_message;
}

const char *fuseline_status_string(fuseline_status status)
{
    switch (status) {
#define NAME(status)                                                                                                             \
    case status:                                                                                                                 \
        return #status;
        NAME(FUSELINE_OK)
        NAME(FUSELINE_ERROR_ARGUMENT)
        NAME(FUSELINE_ERROR_SHAPE)
        NAME(FUSELINE_ERROR_DTYPE)
        NAME(FUSELINE_ERROR_LAYOUT)
        NAME(FUSELINE_ERROR_OVERLAP)
        NAME(FUSELINE_ERROR_READ_ONLY)
        NAME(FUSELINE_ERROR_DEVICE)
        NAME(FUSELINE_ERROR_ARCHITECTURE)
        NAME(FUSELINE_ERROR_VERSION)
        NAME(FUSELINE_ERROR_RUNTIME)
        NAME(FUSELINE_ERROR_MEMORY)
        NAME(FUSELINE_ERROR_EXCHANGE)
#undef NAME
    }
    return "FUSELINE_ERROR_UNKNOWN";
}
