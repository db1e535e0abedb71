/*
 * Large pages for memory that was made for a result. A large result is often fresh from the system, which then makes each of its
 * pages at the first write: with pages of 4 KiB that takes several times as long as the kernel itself. Not for memory that a caller
 * hands over: how that lies is the caller's choice.
 */
#ifndef FL_PAGES_H
#define FL_PAGES_H

#include <errno.h>
#include <stdint.h>
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

/* In bytes. Below this a call to the system costs more than it may save. */
#define FL_LARGE_RESULT (1 << 22)

/* A hint only: memory that is there already, or of a kind that has no large pages, stays as it is. */
static inline void fl_expect_writes(void *data, int64_t bytes)
{
#ifdef MADV_HUGEPAGE
    if (bytes >= FL_LARGE_RESULT) {
        int before = errno;
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = ((uintptr_t)data + page - 1) & ~(page - 1);
        uintptr_t end = ((uintptr_t)data + (uintptr_t)bytes) & ~(page - 1);
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
        errno = before;
    }
#else
    (void)data, (void)bytes;
#endif
}

#endif
