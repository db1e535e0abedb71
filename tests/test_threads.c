/*
 * Many threads at once, forks, and how many threads a large call uses. What must be the process's first call runs in a child of its
 * own, with a time limit.
 */
#include "testing.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tensors.h"

enum { THREADS = 8, LENGTH = 1 << 18, SECONDS = 60 };

static float shared_x[LENGTH], results[THREADS][LENGTH];
static pthread_barrier_t barrier;

static void fill(void)
{
    for (int i = 0; i < LENGTH; i++)
        shared_x[i] = (float)(i % 1999 - 1000) / 64;
}

static int is_right(const float *y)
{
    for (int i = 0; i < LENGTH; i++)
        if (!(fabs(y[i] - shared_x[i] / (1 + exp(-shared_x[i]))) < 1e-5))
            return 0;
    return 1;
}

static fuseline_status forward(float *y, int64_t length)
{
    DLTensor from = tensor_of(shared_x, FLOAT32, 1, &length, NULL), to = tensor_of(y, FLOAT32, 1, &length, NULL);
    return fuseline_swish_forward(&from, 1, NULL, &to);
}

static void *call(void *y)
{
    fuseline_status status = FUSELINE_OK;
    pthread_barrier_wait(&barrier);
    for (int round = 0; round < 4 && status == FUSELINE_OK; round++) {
        status = forward(y, 1 + round * 100); /* small, and by a call without threads of its own */
        if (status == FUSELINE_OK)
            status = forward(y, LENGTH);
    }
    return status == FUSELINE_OK ? NULL : y;
}

/* Returns how many of the threads failed. */
static int call_from_threads(void)
{
    pthread_t threads[THREADS];
    int failures = 0;
    pthread_barrier_init(&barrier, NULL, THREADS);
    memset(results, 0, sizeof results);
    for (int k = 0; k < THREADS; k++)
        if (pthread_create(&threads[k], NULL, call, results[k]) != 0)
            return THREADS;
    for (int k = 0; k < THREADS; k++) {
        void *failed;
        pthread_join(threads[k], &failed);
        failures += failed != NULL || !is_right(results[k]);
    }
    pthread_barrier_destroy(&barrier);
    return failures;
}

/* Runs `body` in a child and returns its exit status; 255 if it crashed or took too long. */
static int in_child(int (*body)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(SECONDS);
        _exit(body());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* The first calls of a process, all at once: choosing the instruction set must not race. */
static void first_calls_at_once(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++)
        assert_int_equal(in_child(call_from_threads), 0);
}

static int threads_in_info(void)
{
    char text[1 << 16];
    fuseline_info(text, sizeof text);
    const char *found = strstr(text, "\"threads\": ");
    return found != NULL ? atoi(found + strlen("\"threads\": ")) : -1;
}

static const char *self;

/* Runs this program anew, with the variable set, which OpenMP reads once, and with `task` as its argument; returns its exit status. */
static int in_new_process(const char *variable, const char *value, const char *task)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(SECONDS);
        setenv(variable, value, 1);
        execl(self, self, task, (char *)NULL);
        _exit(254);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void omp_num_threads_is_honoured(void **state)
{
    (void)state;
#ifdef _OPENMP
    for (int threads = 1; threads <= 5; threads += 2) {
        char value[16];
        snprintf(value, sizeof value, "%d", threads);
        assert_int_equal(in_new_process("OMP_NUM_THREADS", value, "--threads"), threads);
    }
#else
    assert_int_equal(in_new_process("OMP_NUM_THREADS", "3", "--threads"), 1);
#endif
}

static void threads_at_once(void **state)
{
    (void)state;
    assert_int_equal(call_from_threads(), 0);
}

static int large_call_in_child(void)
{
    if (forward(results[0], LENGTH) != FUSELINE_OK)
        return 1;
    return is_right(results[0]) ? 0 : 2;
}

/* GNU's OpenMP waits for ever in a child of a process that has used it; ours must not. A child of the child neither. */
static int child_of_child(void)
{
    int first = large_call_in_child();
    return first != 0 ? first : in_child(large_call_in_child);
}

static void fork_after_a_threaded_call(void **state)
{
    (void)state;
    assert_int_equal(forward(results[1], LENGTH), FUSELINE_OK);
    assert_int_equal(in_child(child_of_child), 0);
    assert_int_equal(in_child(threads_in_info), 1);
    assert_int_equal(forward(results[1], LENGTH), FUSELINE_OK); /* and the parent goes on as before */
    assert_true(is_right(results[1]));
}

/* For a process of its own: others' use of OpenMP, and a fork before the library's first call. */
static int fork_after_threads_of_others(void)
{
    int sum = 0;
#ifdef _OPENMP
#pragma omp parallel for reduction(+ : sum)
#endif
    for (int i = 0; i < 1000; i++)
        sum += i;
    return sum == 499500 ? in_child(child_of_child) : 3;
}

static void fork_after_threads_that_are_not_ours(void **state)
{
    (void)state;
    assert_int_equal(in_new_process("OMP_NUM_THREADS", "3", "--fork"), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_calls_at_once), /* before the process itself makes a call */
        cmocka_unit_test(omp_num_threads_is_honoured), cmocka_unit_test(threads_at_once),
        cmocka_unit_test(fork_after_a_threaded_call),  cmocka_unit_test(fork_after_threads_that_are_not_ours),
    };
    self = argv[0];
    fill();
    if (argc > 1 && strcmp(argv[1], "--threads") == 0)
        return forward(results[0], LENGTH) == FUSELINE_OK && is_right(results[0]) ? threads_in_info() : 253;
    if (argc > 1 && strcmp(argv[1], "--fork") == 0)
        return fork_after_threads_of_others();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
