/* Text that is written piece by piece into a buffer that may be too small. */
#ifndef FL_TEXT_H
#define FL_TEXT_H

#include <stddef.h>

struct fl_text {
    char *buffer; /* always NUL-terminated after an addition, unless size is 0 */
    size_t size;
    size_t length; /* of the whole text, fitting or not */
};

void fl_text_add(struct fl_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a JSON string with its quotes, or null for NULL. */
void fl_text_add_json(struct fl_text *text, const char *string);

#endif
