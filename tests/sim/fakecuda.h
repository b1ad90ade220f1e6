/* fakecuda.h - what tests ask the double of libcuda (fakecuda.c), found in the library by name. */
#ifndef HG_TESTS_FAKECUDA_H
#define HG_TESTS_FAKECUDA_H

#define FAKECUDA_API __attribute__((visibility("default")))

FAKECUDA_API int fakecuda_live(void);                /* handles and allocations not given back */
FAKECUDA_API int fakecuda_refusals(void);            /* errors given on demand since the last time */
FAKECUDA_API unsigned fakecuda_blocks(void);         /* of the last launch */
FAKECUDA_API const char *fakecuda_violation(void);   /* what was first done wrong; "" */
FAKECUDA_API void fakecuda_forgive(void);            /* forgets it */

#endif
