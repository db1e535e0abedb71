/*
 * What the library says: messages per thread, names of statuses, the version, the info text, and refused scalars.
 */
#include "testing.h"

#include <config.h>
#include <math.h>
#include <pthread.h>

#include "tensors.h"

/* Makes an error whose message holds `ndim`. */
static void fail_with_ndim(int ndim)
{
    DLTensor bad = tensor_of(NULL, FLOAT32, ndim, NULL, NULL);
    assert_int_equal(fuseline_swish_forward(&bad, 1, NULL, &bad), FUSELINE_ERROR_ARGUMENT);
}

static void success(void)
{
    float x = 1, y = 0;
    DLTensor from = tensor_of(&x, FLOAT32, 0, NULL, NULL), to = tensor_of(&y, FLOAT32, 0, NULL, NULL);
    assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
}

static void *first_message_of_a_thread(void *result)
{
    *(int *)result = fuseline_last_error()[0];
    return NULL;
}

static void empty_before_any_error(void **state)
{
    (void)state;
    pthread_t thread;
    int first = -1;
    fail_with_ndim(-1);
    assert_int_equal(pthread_create(&thread, NULL, first_message_of_a_thread, &first), 0);
    pthread_join(thread, NULL);
    assert_int_equal(first, '\0');
}

static void stays_after_success(void **state)
{
    (void)state;
    char message[1024];
    fail_with_ndim(-77);
    strcpy(message, fuseline_last_error());
    assert_non_null(strstr(message, "-77"));
    success();
    assert_string_equal(fuseline_last_error(), message);
    fail_with_ndim(-78);
    assert_non_null(strstr(fuseline_last_error(), "-78"));
    assert_null(strstr(fuseline_last_error(), "-77"));
}

/* Two threads that fail in turns, each seeing only its own message. */
static pthread_barrier_t barrier;

static void *fail_in_turns(void *argument)
{
    int number = *(int *)argument;
    char word[16];
    for (int round = 0; round < 100; round++) {
        DLTensor bad = tensor_of(NULL, FLOAT32, -number - round, NULL, NULL);
        fuseline_swish_forward(&bad, 1, NULL, &bad);
        snprintf(word, sizeof word, "%d", -number - round);
        pthread_barrier_wait(&barrier);
        if (strstr(fuseline_last_error(), word) == NULL)
            *(int *)argument = -1;
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void threads_have_their_own(void **state)
{
    (void)state;
    pthread_t threads[4];
    int numbers[4] = {1000, 2000, 3000, 4000};
    pthread_barrier_init(&barrier, NULL, 4);
    for (int k = 0; k < 4; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, fail_in_turns, &numbers[k]), 0);
    for (int k = 0; k < 4; k++) {
        pthread_join(threads[k], NULL);
        assert_int_equal(numbers[k], (k + 1) * 1000);
    }
    pthread_barrier_destroy(&barrier);
}

static void status_names(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *name;
    } names[] = {
        {0, "FUSELINE_OK"},
        {1, "FUSELINE_ERROR_ARGUMENT"},
        {2, "FUSELINE_ERROR_SHAPE"},
        {3, "FUSELINE_ERROR_DTYPE"},
        {4, "FUSELINE_ERROR_LAYOUT"},
        {5, "FUSELINE_ERROR_OVERLAP"},
        {6, "FUSELINE_ERROR_READ_ONLY"},
        {7, "FUSELINE_ERROR_DEVICE"},
        {8, "FUSELINE_ERROR_ARCHITECTURE"},
        {9, "FUSELINE_ERROR_VERSION"},
        {10, "FUSELINE_ERROR_RUNTIME"},
        {11, "FUSELINE_ERROR_MEMORY"},
        {12, "FUSELINE_ERROR_EXCHANGE"},
        {13, "FUSELINE_ERROR_UNKNOWN"},
        {-1, "FUSELINE_ERROR_UNKNOWN"},
        {1 << 30, "FUSELINE_ERROR_UNKNOWN"},
    };
    for (int k = 0; k < COUNT(names); k++)
        assert_string_equal(fuseline_status_string((fuseline_status)names[k].status), names[k].name);
}

static void version_is_the_package_s(void **state)
{
    (void)state;
    assert_string_equal(fuseline_version(), PACKAGE_VERSION);
}

/* Any size is fine: what fits is there, NUL-terminated, and nothing behind it is touched. */
static void info_in_any_buffer(void **state)
{
    (void)state;
    size_t length = fuseline_info(NULL, 0);
    assert_in_range(length, 50, 1 << 20);
    char *whole = test_malloc(length + 1), *part = test_malloc(length + 9);
    assert_int_equal(fuseline_info(whole, length + 1), length);
    assert_int_equal(strlen(whole), length);
    assert_int_equal(whole[0], '{');
    assert_int_equal(whole[length - 1], '}');
    for (size_t size = 0; size <= length + 1; size += size < 40 || size + 40 > length ? 1 : 17) {
        memset(part, 0x5a, length + 9);
        assert_int_equal(fuseline_info(part, size), length);
        size_t fits = size > length ? length : size == 0 ? 0 : size - 1;
        assert_memory_equal(part, whole, fits);
        if (size > 0)
            assert_int_equal(part[fits], '\0');
        for (size_t i = size == 0 ? 0 : fits + 1; i < length + 9; i++)
            assert_int_equal(part[i], 0x5a);
    }
    test_free(whole);
    test_free(part);
}

/* A small reader of JSON: returns where the value ends, or NULL if it is no JSON. */
static const char *json_end(const char *text);

static const char *skip_space(const char *text)
{
    while (*text == ' ' || *text == '\n' || *text == '\t')
        text++;
    return text;
}

static const char *json_string_end(const char *text)
{
    if (*text++ != '"')
        return NULL;
    for (; *text != '"'; text++) {
        if ((unsigned char)*text < 0x20)
            return NULL;
        if (*text == '\\' && *++text == '\0')
            return NULL;
    }
    return text + 1;
}

static const char *json_list_end(const char *text, char close, int has_keys)
{
    text = skip_space(text + 1);
    if (*text == close)
        return text + 1;
    for (;;) {
        if (has_keys) {
            text = json_string_end(text);
            if (text == NULL || *(text = skip_space(text)) != ':')
                return NULL;
            text = skip_space(text + 1);
        }
        text = json_end(text);
        if (text == NULL)
            return NULL;
        text = skip_space(text);
        if (*text == close)
            return text + 1;
        if (*text != ',')
            return NULL;
        text = skip_space(text + 1);
    }
}

static const char *json_end(const char *text)
{
    static const char *const words[] = {"null", "true", "false"};
    if (*text == '{')
        return json_list_end(text, '}', 1);
    if (*text == '[')
        return json_list_end(text, ']', 0);
    if (*text == '"')
        return json_string_end(text);
    for (int k = 0; k < COUNT(words); k++)
        if (strncmp(text, words[k], strlen(words[k])) == 0)
            return text + strlen(words[k]);
    size_t digits = strspn(text, "-0123456789.eE+");
    return digits > 0 ? text + digits : NULL;
}

static void json_reader_reads(void **state)
{
    (void)state;
    static const char *const good[] = {"{}", "[]", "{\"a\": [1, \"\\\"\", null], \"b\": {}}"};
    static const char *const bad[] = {"{", "{\"a\"}", "[1,]", "{\"a\": }", "\"", "{\"a\": 1,}", "word"};
    for (int k = 0; k < COUNT(good); k++) {
        assert_non_null(json_end(good[k]));
        assert_string_equal(json_end(good[k]), "");
    }
    for (int k = 0; k < COUNT(bad); k++)
        assert_null(json_end(bad[k]));
}

static void info_is_json_with_its_keys(void **state)
{
    (void)state;
    static const char *const words[] = {"\"version\": \"" PACKAGE_VERSION "\"",
                                        "\"operators\": [\"swish\"",
                                        "\"cpu\": {\"variant\": \"",
                                        "\"threads\": ",
                                        "\"gpu\": {\"targets\": [",
                                        "\"runtime\": ",
                                        "\"error\": ",
                                        "\"devices\": ["};
    static char text[1 << 16];
    assert_in_range(fuseline_info(text, sizeof text), 1, sizeof text - 1);
    const char *end = json_end(text);
    assert_non_null(end);
    assert_string_equal(end, "");
    for (int k = 0; k < COUNT(words); k++)
        assert_non_null(strstr(text, words[k]));
}

static void beta_out_of_range(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 1.0000001e38};
    static const double good[] = {0, -0.0, 1e38, -1e38, 5e-324, -1e-308};
    float x = 2, y = 99;
    DLTensor from = tensor_of(&x, FLOAT32, 0, NULL, NULL), to = tensor_of(&y, FLOAT32, 0, NULL, NULL);
    for (int k = 0; k < COUNT(bad); k++) {
        char found[32];
        snprintf(found, sizeof found, "is %g", bad[k]);
        assert_refused(fuseline_swish_forward(&from, bad[k], NULL, &to), FUSELINE_ERROR_ARGUMENT, "beta: ", found, "finite",
                       "1e+38");
        assert_refused(fuseline_swish_backward(&from, &from, bad[k], NULL, &to), FUSELINE_ERROR_ARGUMENT, "beta: ", found);
        assert_true(y == 99);
    }
    for (int k = 0; k < COUNT(good); k++)
        assert_ok(fuseline_swish_forward(&from, good[k], NULL, &to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_before_any_error),   cmocka_unit_test(stays_after_success),
        cmocka_unit_test(threads_have_their_own),   cmocka_unit_test(status_names),
        cmocka_unit_test(version_is_the_package_s), cmocka_unit_test(info_in_any_buffer),
        cmocka_unit_test(json_reader_reads),        cmocka_unit_test(info_is_json_with_its_keys),
        cmocka_unit_test(beta_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
