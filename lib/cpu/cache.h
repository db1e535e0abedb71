/* How much the processor's last cache holds. */
#ifndef FL_CPU_CACHE_H
#define FL_CPU_CACHE_H

#include <stdint.h>

/* In bytes; a guess where the system does not tell. */
int64_t fl_cpu_cache_bytes(void);

#endif
