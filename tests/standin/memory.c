#include <config.h>

#include "memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "standin.h"

enum { PAGE = 4096, BLOCKS_MOST = 1 << 14 };

/* One allocation, or what is left of one that was given back: its pages, which stay reserved as long as there is room here. */
struct block {
    char *pages, *begin;
    size_t room, size; /* of the pages, guards included; of the memory */
    int device, is_live;
};

static struct block blocks[BLOCKS_MOST];
static unsigned used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A place in the table: unused, or that of the oldest block that was given back. */
static struct block *take_place(void)
{
    static unsigned oldest;
    if (used < BLOCKS_MOST)
        return &blocks[used++];
    for (unsigned k = 0; k < BLOCKS_MOST; k++) {
        struct block *block = &blocks[oldest++ % BLOCKS_MOST];
        if (!block->is_live) {
            munmap(block->pages, block->room);
            return block;
        }
    }
    return NULL;
}

void *standin_allocate(int device, size_t size, int at_end)
{
    size_t inside = (size + PAGE - 1) / PAGE * PAGE;
    inside = inside == 0 ? PAGE : inside;
    pthread_mutex_lock(&lock);
    struct block *block = take_place();
    char *pages =
        block == NULL ? MAP_FAILED : mmap(NULL, inside + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + PAGE, inside, PROT_READ | PROT_WRITE) != 0) {
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    memset(pages + PAGE, 0xa5, inside);
    *block = (struct block){pages, pages + PAGE + (at_end ? inside - size : 0), inside + 2 * PAGE, size, device, 1};
    pthread_mutex_unlock(&lock);
    return block->begin;
}

void standin_release(void *memory)
{
    pthread_mutex_lock(&lock);
    for (unsigned k = 0; k < used; k++)
        if (blocks[k].is_live && blocks[k].begin == memory) {
            mmap(blocks[k].pages, blocks[k].room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
            blocks[k].is_live = 0;
        }
    pthread_mutex_unlock(&lock);
}

/* Without the lock: also for a handler of signals. */
static const struct block *find(const void *address)
{
    for (unsigned k = 0; k < used; k++)
        if ((const char *)address >= blocks[k].pages && (const char *)address < blocks[k].pages + blocks[k].room)
            return &blocks[k];
    return NULL;
}

int standin_device_of(const void *address)
{
    const struct block *block = find(address);
    return block != NULL && block->is_live ? block->device : -1;
}

int memory_left(void)
{
    int left = 0;
    for (unsigned k = 0; k < used; k++)
        left += blocks[k].is_live;
    return left;
}

void memory_explain(const void *address, char *text, unsigned long size)
{
    const struct block *block = find(address);
    if (block == NULL)
        snprintf(text, size, "which is no device's memory");
    else if (!block->is_live)
        snprintf(text, size, "in memory of %zu bytes that was given back", block->size);
    else
        snprintf(text, size, "%td bytes from the beginning of memory of %zu bytes", (const char *)address - block->begin,
                 block->size);
}
