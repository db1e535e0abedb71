/*
 * What every C test starts from: cmocka with the headers that it wants before it, the public API, and a check for errors.
 */
#ifndef TESTING_H
#define TESTING_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <string.h>

#include <fuseline/fuseline.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/*
 * assert_refused(call, status, words ...): the call returns `status`, and the message holds every one of the words.
 */
#define assert_refused(call, wanted, ...)                                                                                        \
    assert_refused_(call, wanted, (const char *const[]){__VA_ARGS__, NULL}, #call, __FILE__, __LINE__)

static inline void assert_refused_(fuseline_status got, fuseline_status wanted, const char *const *words, const char *call,
                                   const char *file, int line)
{
    if (got != wanted) {
        print_error("%s: %s (%s), wanted %s\n", call, fuseline_status_string(got), got ? fuseline_last_error() : "no error",
                    fuseline_status_string(wanted));
        _fail(file, line);
    }
    for (; *words != NULL; words++)
        if (strstr(fuseline_last_error(), *words) == NULL) {
            print_error("%s: the message \"%s\" lacks \"%s\"\n", call, fuseline_last_error(), *words);
            _fail(file, line);
        }
}

/* assert_ok(call): the call succeeds; otherwise its message is shown. */
#define assert_ok(call) assert_ok_(call, #call, __FILE__, __LINE__)

static inline void assert_ok_(fuseline_status got, const char *call, const char *file, int line)
{
    if (got != FUSELINE_OK) {
        print_error("%s: %s: %s\n", call, fuseline_status_string(got), fuseline_last_error());
        _fail(file, line);
    }
}

#endif
