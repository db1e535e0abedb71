#include <config.h>

#include "stream.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grid.h"
#include "memory.h"
#include "module.h"

struct operation {
    enum kind { LAUNCH, COPY, FOLLOW } kind;
    struct operation *next;
    struct launch launch;
    void *to;
    const void *from;
    size_t size;
    struct stream *earlier;
    uint64_t until;
};

struct graph {
    struct launch *launches;
    int count, is_broken;
    struct graph *next; /* all are kept */
};

struct stream {
    int device, is_synchronous;
    struct operation *first, **last;
    uint64_t queued, wanted, done; /* numbers of operations; what is wanted may run */
    struct graph *capture;         /* or NULL */
    struct stream *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stream *streams, *defaults[STANDIN_DEVICES];
static struct graph *graphs;
static unsigned long long kernels_run;
static standin_run_code *run_code; /* in the place of the source, or NULL */
static pid_t process;              /* that the streams' threads are in: a child of it has none */

/* --- the threads --- */

/* A crash in a kernel says which, and where. */
static void explain_crash(int number, siginfo_t *info, void *context)
{
    const struct grid *grid = grid_running();
    (void)context;
    if (grid != NULL) {
        char where[128], text[512];
        memory_explain(info->si_addr, where, sizeof where);
        snprintf(text, sizeof text, "stand-in: %s, block %u, thread %u: touches %p, %s\n", grid->name, fl_host_place.block,
                 fl_host_place.thread, info->si_addr, where);
        if (write(STDERR_FILENO, text, strlen(text)) < 0)
            _exit(128 + number);
    }
    signal(number, SIG_DFL); /* and again */
}

static void watch_crashes(void)
{
    struct sigaction action = {.sa_sigaction = explain_crash, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

/* Lets a stream run up to its operation number `until`, and waits for that. Under the lock. */
static void run_until(struct stream *stream, uint64_t until)
{
    if (stream->wanted < until)
        stream->wanted = until;
    pthread_cond_broadcast(&changed);
    while (stream->done < until)
        pthread_cond_wait(&changed, &lock);
}

static void run_launch(const struct launch *launch)
{
    const void *arguments[FL_HOST_ARGUMENTS_MOST];
    if (run_code != NULL) {
        run_code(launch->name, launch->code, launch->code_size, launch->blocks, launch->threads, launch->arguments);
        __atomic_fetch_add(&kernels_run, 1, __ATOMIC_RELAXED);
        return;
    }
    for (unsigned k = 0; k < launch->kernel->count; k++)
        arguments[k] = launch->arguments + launch->offsets[k];
    grid_run(
        &(struct grid){launch->name, launch->kernel, arguments, launch->blocks, launch->threads, launch->lanes, launch->tuning});
    __atomic_fetch_add(&kernels_run, 1, __ATOMIC_RELAXED);
}

/* Runs an operation that is no longer queued. Under the lock, which others may take meanwhile. */
static void run(const struct operation *operation)
{
    if (operation->kind == FOLLOW) {
        run_until(operation->earlier, operation->until);
        return;
    }
    pthread_mutex_unlock(&lock);
    if (operation->kind == LAUNCH)
        run_launch(&operation->launch);
    else if (operation->size != 0) /* of nothing, the addresses may be NULL */
        memcpy(operation->to, operation->from, operation->size);
    pthread_mutex_lock(&lock);
}

static void *work(void *data)
{
    struct stream *stream = data;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (stream->done == stream->wanted || stream->first == NULL)
            pthread_cond_wait(&changed, &lock);
        struct operation *operation = stream->first;
        stream->first = operation->next;
        if (stream->first == NULL)
            stream->last = &stream->first;
        run(operation);
        free(operation);
        stream->done++;
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

static struct stream *new_stream(int device, int is_synchronous)
{
    struct stream *stream = calloc(1, sizeof *stream);
    pthread_t thread;
    stream->device = device;
    stream->is_synchronous = is_synchronous;
    stream->last = &stream->first;
    stream->next = streams;
    if (streams == NULL) {
        process = getpid();
        watch_crashes();
    }
    streams = stream;
    if (pthread_create(&thread, NULL, work, stream) != 0)
        abort();
    pthread_detach(thread);
    return stream;
}

/* Under the lock. */
static void enqueue(struct stream *stream, const struct operation *operation)
{
    if (stream->is_synchronous || standin.is_synchronous) {
        run_until(stream, stream->queued);
        run(operation);
        return;
    }
    struct operation *copy = malloc(sizeof *copy);
    *copy = *operation;
    copy->next = NULL;
    *stream->last = copy;
    stream->last = &copy->next;
    stream->queued++;
}

/* --- for the runtime --- */

static struct stream *default_of(int device)
{
    if (defaults[device] == NULL)
        defaults[device] = new_stream(device, 0);
    return defaults[device];
}

struct stream *stream_of(void *handle, int device)
{
    struct stream *stream;
    pthread_mutex_lock(&lock);
    if (handle == NULL) {
        stream = default_of(device);
    } else {
        for (stream = streams; stream != NULL && stream != handle; stream = stream->next)
            ;
        if (stream != NULL && stream->device != device)
            stream = NULL;
    }
    pthread_mutex_unlock(&lock);
    return stream;
}

void stream_launch(struct stream *stream, const struct launch *launch)
{
    pthread_mutex_lock(&lock);
    if (stream->capture != NULL) {
        struct graph *graph = stream->capture;
        graph->launches = realloc(graph->launches, (size_t)(graph->count + 1) * sizeof *graph->launches);
        graph->launches[graph->count++] = *launch;
    } else {
        enqueue(stream, &(struct operation){.kind = LAUNCH, .launch = *launch});
    }
    pthread_mutex_unlock(&lock);
}

int stream_breaks_capture(void)
{
    int found = 0;
    pthread_mutex_lock(&lock);
    for (struct stream *stream = streams; stream != NULL; stream = stream->next)
        if (stream->capture != NULL)
            found = stream->capture->is_broken = 1;
    pthread_mutex_unlock(&lock);
    return found;
}

/* --- for tests --- */

void *standin_stream(int device, int is_synchronous)
{
    pthread_mutex_lock(&lock);
    struct stream *stream = new_stream(device, is_synchronous);
    pthread_mutex_unlock(&lock);
    return stream;
}

void *standin_default_stream(int device)
{
    return stream_of(NULL, device);
}

void standin_wait(void *stream)
{
    pthread_mutex_lock(&lock);
    for (struct stream *each = streams; each != NULL; each = each->next)
        if (stream == NULL || each == stream)
            run_until(each, each->queued);
    pthread_mutex_unlock(&lock);
}

void standin_follow(void *later, void *earlier)
{
    pthread_mutex_lock(&lock);
    if (later != earlier)
        enqueue(later, &(struct operation){.kind = FOLLOW, .earlier = earlier, .until = ((struct stream *)earlier)->queued});
    pthread_mutex_unlock(&lock);
}

void standin_copy(void *stream, void *to, const void *from, size_t size)
{
    pthread_mutex_lock(&lock);
    enqueue(stream, &(struct operation){.kind = COPY, .to = to, .from = from, .size = size});
    pthread_mutex_unlock(&lock);
}

void standin_begin_capture(void *stream)
{
    struct graph *graph = calloc(1, sizeof *graph);
    pthread_mutex_lock(&lock);
    graph->next = graphs;
    ((struct stream *)stream)->capture = graphs = graph;
    pthread_mutex_unlock(&lock);
}

void *standin_end_capture(void *stream)
{
    pthread_mutex_lock(&lock);
    struct graph *graph = ((struct stream *)stream)->capture;
    ((struct stream *)stream)->capture = NULL;
    pthread_mutex_unlock(&lock);
    return graph->is_broken ? NULL : graph;
}

void standin_launch_graph(void *graph, void *stream)
{
    const struct graph *captured = graph;
    for (int k = 0; k < captured->count; k++)
        stream_launch(stream, &captured->launches[k]);
}

void standin_run_code_by(standin_run_code *run)
{
    run_code = run;
}

unsigned long long standin_kernels_run(void)
{
    return __atomic_load_n(&kernels_run, __ATOMIC_RELAXED);
}

/* What nobody waited for runs all the same, as it does on a device, with memory as it is by then. */
__attribute__((destructor)) static void finish(void)
{
    if (process == getpid() && grid_running() == NULL) /* not where a kernel ended the process */
        standin_wait(NULL);
    int leaks = standin_leaks();
    if (leaks != 0)
        fprintf(stderr, "stand-in: %d left, of memory and of code loaded twice\n", leaks);
}
