/* cache_fill.h - `hologram cache fill`. */
#ifndef HG_CLI_CACHE_FILL_H
#define HG_CLI_CACHE_FILL_H

#include <stdint.h>

/* After so many seconds the rest is left out. json: the rest of an object. Returns an exit code. */
int cli_cache_fill(const char *folder, uint64_t seconds, int json);

#endif
