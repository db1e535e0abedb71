/* Memory of the devices that are played, between pages that crash whoever touches them: see standin_allocate in standin.h. */
#ifndef STANDIN_MEMORY_H
#define STANDIN_MEMORY_H

/* The number of allocations that were not given back. */
int memory_left(void);

/* What an address that crashed has to do with the memory, in words. Callable from a signal's handler. */
void memory_explain(const void *address, char *text, unsigned long size);

#endif
