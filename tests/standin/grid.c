/*
 * Each thread of a block that has to wait keeps the fiber (a context with a stack of its own) that it runs on; one that runs to
 * its end leaves its fiber to the next thread. So a kernel without barriers takes but one fiber, and no switch between threads.
 */
#include <config.h>

#include "grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#define STACK_SIZE ((size_t)1 << 18)
#else
#define STACK_SIZE ((size_t)1 << 16)
#endif

__thread struct fl_host_place fl_host_place;

enum state { FREE, RUNNING, AT_BARRIER, AT_LANES, READY };

struct fiber {
    ucontext_t context;
    char *stack;
    enum state state;
    unsigned thread;
    unsigned value, lane; /* passed to fl_host_from_lane; the value then becomes the result */
};

/* What a thread of the host needs to run blocks; kept for the next kernel. */
struct runner {
    const struct grid *grid;
    ucontext_t home;
    struct fiber fibers[GRID_THREADS_MOST]; /* as many as were needed so far */
    unsigned fiber_count;
    struct fiber *current;
    unsigned started;                         /* how many threads of the block */
    struct fiber *waiting[GRID_THREADS_MOST]; /* the fiber of a thread that waits */
    char is_finished[GRID_THREADS_MOST];
    const void *home_stack; /* for the address sanitizer */
    size_t home_stack_size;
};

static __thread struct runner *runner;

const struct grid *grid_running(void)
{
    return runner != NULL ? runner->grid : NULL;
}

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "stand-in: %s, block %u: %s\n", runner->grid->name, fl_host_place.block, what);
    abort();
}

/* --- switching --- */

static void before_switch(void **kept, const void *stack, size_t size)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(kept, stack, size);
#else
    (void)kept, (void)stack, (void)size;
#endif
}

static void after_switch(void *kept, const void **stack, size_t *size)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(kept, stack, size);
#else
    (void)kept, (void)stack, (void)size;
#endif
}

static void resume(struct fiber *fiber)
{
    void *kept = NULL;
    runner->current = fiber;
    fiber->state = RUNNING;
    fl_host_place.thread = fiber->thread;
    before_switch(&kept, fiber->stack, STACK_SIZE);
    swapcontext(&runner->home, &fiber->context);
    after_switch(kept, NULL, NULL);
}

static void leave(struct fiber *fiber, enum state state)
{
    void *kept = NULL;
    fiber->state = state;
    before_switch(&kept, runner->home_stack, runner->home_stack_size);
    swapcontext(&fiber->context, &runner->home);
    after_switch(kept, &runner->home_stack, &runner->home_stack_size);
}

static void wait_as(enum state state)
{
    struct fiber *fiber = runner->current;
    fiber->thread = fl_host_place.thread;
    runner->waiting[fiber->thread] = fiber;
    leave(fiber, state);
}

void fl_host_barrier(void)
{
    wait_as(AT_BARRIER);
}

unsigned fl_host_from_lane(unsigned value, unsigned lane)
{
    struct fiber *fiber = runner->current;
    fiber->value = value;
    fiber->lane = lane % fl_host_place.lanes;
    wait_as(AT_LANES);
    return fiber->value;
}

/* --- the threads of a block --- */

/* A number below `count` for each below `count`: scattered where it is a power of two, as it is for all kernels of the library. */
static unsigned scattered(unsigned number, unsigned count, unsigned factor)
{
    return (count & (count - 1)) == 0 ? (number * factor + fl_host_place.block * 31) % count : count - 1 - number;
}

/* A fiber's life: it takes one thread after the other. */
static void live(void)
{
    after_switch(NULL, &runner->home_stack, &runner->home_stack_size);
    for (;;) {
        struct fiber *fiber = runner->current;
        while (runner->started < runner->grid->threads) {
            unsigned thread = scattered(runner->started++, runner->grid->threads, 77);
            fl_host_place.thread = thread;
            runner->grid->kernel->call(runner->grid->arguments);
            runner->is_finished[fl_host_place.thread] = 1;
        }
        leave(fiber, FREE);
    }
}

static void make_fiber(struct fiber *fiber)
{
    fiber->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fiber->stack == MAP_FAILED)
        die("no memory for stacks");
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = STACK_SIZE;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, live, 0);
}

static struct fiber *free_fiber(void)
{
    for (unsigned k = 0; k < runner->fiber_count; k++)
        if (runner->fibers[k].state == FREE)
            return &runner->fibers[k];
    make_fiber(&runner->fibers[runner->fiber_count]);
    return &runner->fibers[runner->fiber_count++];
}

static int is_waiting(unsigned thread, enum state state)
{
    return runner->waiting[thread] != NULL && runner->waiting[thread]->state == state;
}

/* How many of the threads first ... first + count - 1 wait as `state` says. */
static unsigned count_waiting(unsigned first, unsigned count, enum state state)
{
    unsigned found = 0;
    for (unsigned thread = first; thread < first + count; thread++)
        found += (unsigned)is_waiting(thread, state);
    return found;
}

static void make_ready(unsigned first, unsigned count)
{
    for (unsigned thread = first; thread < first + count; thread++)
        if (runner->waiting[thread] != NULL)
            runner->waiting[thread]->state = READY;
}

/* Lanes read from each other where all of a wave are there. */
static int release_waves(void)
{
    const struct grid *grid = runner->grid;
    int released = 0;
    for (unsigned first = 0; first < grid->threads; first += grid->lanes) {
        unsigned values[64], size = grid->threads - first < grid->lanes ? grid->threads - first : grid->lanes;
        if (count_waiting(first, size, AT_LANES) != size)
            continue;
        for (unsigned lane = 0; lane < size; lane++)
            values[lane] = runner->waiting[first + lane]->value;
        for (unsigned lane = 0; lane < size; lane++)
            runner->waiting[first + lane]->value = values[runner->waiting[first + lane]->lane % size];
        make_ready(first, size);
        released = 1;
    }
    return released;
}

/* A barrier opens when every wave that has not ended stands at it, as on AMD's devices; with all of its lanes. */
static int release_block(void)
{
    const struct grid *grid = runner->grid;
    for (unsigned first = 0; first < grid->threads; first += grid->lanes) {
        unsigned size = grid->threads - first < grid->lanes ? grid->threads - first : grid->lanes;
        unsigned at_barrier = count_waiting(first, size, AT_BARRIER);
        if (at_barrier != size && !(at_barrier == 0 && runner->is_finished[first]))
            return 0;
    }
    make_ready(0, grid->threads);
    return 1;
}

static void run_block(void)
{
    const struct grid *grid = runner->grid;
    for (unsigned thread = 0; thread < grid->threads; thread++) {
        runner->waiting[thread] = NULL;
        runner->is_finished[thread] = 0;
    }
    runner->started = 0;
    while (runner->started < grid->threads)
        resume(free_fiber());
    while (count_waiting(0, grid->threads, AT_BARRIER) + count_waiting(0, grid->threads, AT_LANES) != 0) {
        if (!release_waves() && !release_block())
            die("some threads wait for others that do not come: a barrier, or an exchange of lanes, that not all reach");
        for (unsigned k = 0; k < grid->threads; k++) {
            unsigned thread = scattered(k, grid->threads, 45);
            if (is_waiting(thread, READY)) {
                struct fiber *fiber = runner->waiting[thread];
                runner->waiting[thread] = NULL;
                resume(fiber);
            }
        }
    }
}

void grid_run(const struct grid *grid)
{
    if (runner == NULL)
        runner = calloc(1, sizeof *runner);
    runner->grid = grid;
    fl_host_place = (struct fl_host_place){0, grid->blocks, 0, grid->threads, grid->lanes, grid->tuning};
    for (unsigned block = 0; block < grid->blocks; block++) {
        fl_host_place.block = block;
        run_block();
    }
    runner->grid = NULL;
}
