/* fakecuda.h - what tests ask the double of libcuda (fakecuda.c), found in the library by name. */
#ifndef HG_TESTS_FAKECUDA_H
#define HG_TESTS_FAKECUDA_H

#define FAKECUDA_API __attribute__((visibility("default")))

FAKECUDA_API int fakecuda_live(void);                /* handles and allocations not given back */
FAKECUDA_API int fakecuda_refusals(void);            /* errors given on demand since the last time */
FAKECUDA_API unsigned fakecuda_blocks(void);         /* of the last launch */
FAKECUDA_API const char *fakecuda_violation(void);   /* what was first done wrong; "" */
FAKECUDA_API void fakecuda_forgive(void);            /* forgets it */
FAKECUDA_API unsigned fakecuda_loads(void);          /* calls of cuModuleLoadData, without those that are held */
FAKECUDA_API void fakecuda_hold_loads(int hold);     /* 1: from now on they wait until it is 0 again */
FAKECUDA_API unsigned fakecuda_held_loads(void);     /* that wait now */

#endif
