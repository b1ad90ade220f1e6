/* ptx_machine.h - runs PTX on the host: what the double of libcuda does in place of a GPU. It knows the instructions
 * that a kernel with exact results may use; approximations, flushing to zero and unknown words are errors of the text.
 *
 * The threads of a block take turns; one runs until it waits for others (bar.sync, shfl.sync, vote.sync) or ends.
 * Blocks run one after the other, those of a cluster together. So no two race; in the shared variable `hg_places`,
 * where a kernel's threads exchange values, accesses that could are errors: of one byte, by two threads, one of them
 * writing, without a barrier between, of the block of both or of their cluster. So are, in all shared memory, those to
 * another block that might not have begun, or might have ended.
 */
#ifndef HG_TESTS_PTX_MACHINE_H
#define HG_TESTS_PTX_MACHINE_H

#include <stddef.h>
#include <stdint.h>

typedef struct ptx_module ptx_module;

/* NULL, with the reason and its line in `why`, for text that is not understood. */
ptx_module *ptx_parse(const char *text, char *why, size_t why_bytes);
void ptx_release(ptx_module *module);

/* Of an entry: 0 if there is none of that name. */
size_t ptx_parameter_bytes(const ptx_module *module, const char *entry);
uint32_t ptx_cluster_blocks(const ptx_module *module, const char *entry); /* side by side; 1 without clusters */
size_t ptx_shared_bytes(const ptx_module *module); /* of shared memory that it declares */
/* From the pointers that cuLaunchKernel gets to the bytes that the entry reads. */
void ptx_gather_parameters(const ptx_module *module, const char *entry, void **values, uint8_t *bytes,
                           size_t byte_count);

typedef struct ptx_launch {
  uint32_t grid[3], block[3], shared_bytes;
  const uint8_t *parameters;
  /* The host's bytes behind a kernel's address; NULL: the kernel must not go there. */
  uint8_t *(*reach)(void *user, uint64_t address, size_t byte_count);
  void *user;
} ptx_launch;

/* 1 if the kernel ran to its end; else 0 and the reason. */
int ptx_run(const ptx_module *module, const char *entry, const ptx_launch *launch, char *why, size_t why_bytes);

#endif
