/* fakecuda.h - what tests ask the double of libcuda (fakecuda.c), found in the library by name. */
#ifndef HG_TESTS_FAKECUDA_H
#define HG_TESTS_FAKECUDA_H

#include <stddef.h>
#include <stdint.h>

#define FAKECUDA_API __attribute__((visibility("default")))

FAKECUDA_API int fakecuda_live(void);                /* handles and allocations not given back */
FAKECUDA_API uint64_t fakecuda_mapped(void);         /* bytes of allocations that a pool had no kept memory for */
FAKECUDA_API unsigned fakecuda_calls(const char *function); /* that have been made, by the driver's name of it */
FAKECUDA_API int fakecuda_refusals(void);            /* errors given on demand since the last time */
FAKECUDA_API unsigned fakecuda_blocks(void);         /* of the last launch */
FAKECUDA_API const char *fakecuda_violation(void);   /* what was first done wrong; "" */
FAKECUDA_API void fakecuda_forgive(void);            /* forgets it */
FAKECUDA_API unsigned fakecuda_loads(void);          /* calls of cuModuleLoadData, without those that are held */
typedef enum fakecuda_link { FAKECUDA_QUICK, FAKECUDA_FULL, FAKECUDA_HELD } fakecuda_link;
FAKECUDA_API unsigned fakecuda_links(fakecuda_link which); /* texts compiled with few optimisations, with all, and that
                                                              wait now */
FAKECUDA_API void fakecuda_hold_links(int hold);     /* 1: from now on those with optimisations wait until it is 0 */
FAKECUDA_API void fakecuda_hold_loads(int hold);     /* 1: from now on they wait until it is 0 again */
/* Work for a stream, of a library that has kernels of its own: `call` runs when the stream comes to it, and may reach
 * device memory. */
FAKECUDA_API int fakecuda_give_call(void *stream, void (*call)(const void *parameters), const void *parameters,
                                    size_t byte_count);
FAKECUDA_API void *fakecuda_reach(uint64_t address, size_t byte_count);
FAKECUDA_API unsigned fakecuda_held_loads(void);     /* that wait now */

#endif
