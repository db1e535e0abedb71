#include "text.h"

#include <stdarg.h>
#include <stdio.h>

void fl_text_add(struct fl_text *text, const char *format, ...)
{
    va_list arguments;
    size_t used = text->length < text->size ? text->length : text->size;
    va_start(arguments, format);
    int length = vsnprintf(text->size != 0 ? text->buffer + used : NULL, text->size - used, format, arguments);
    va_end(arguments);
    if (length > 0)
        text->length += (size_t)length;
}

void fl_text_add_json(struct fl_text *text, const char *string)
{
    if (string == NULL) {
        fl_text_add(text, "null");
        return;
    }
    fl_text_add(text, "\"");
    for (const char *c = string; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fl_text_add(text, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            fl_text_add(text, "\\u%04x", (unsigned)(unsigned char)*c);
        else
            fl_text_add(text, "%c", *c);
    }
    fl_text_add(text, "\"");
}
