/* tile.h - the tile engine: runs vector instructions one by one over rows of a tile. It runs every program on every
 * machine. */
#ifndef HG_TILE_H
#define HG_TILE_H

#include "backend/cpu/engine/detect.h"
#include "backend/cpu/engine/engine.h"

typedef struct hg_tile hg_tile;

/* `program` and `vector` must live as long as the result. HG_OUT_OF_MEMORY. */
hg_status hg_tile_compile(const hg_allocator *allocator, const atlas_program *program, const hg_vector *vector,
                          cpu_isa isa, hg_tile **out);

/* May be called by several threads at once. HG_OK also when lanes faulted; HG_OUT_OF_MEMORY before any lane has run. */
hg_status hg_tile_launch(const hg_tile *tile, atlas_launch *launch);

void hg_tile_release(hg_tile *tile);

/* "tile avx512": a constant. */
const char *hg_tile_engine_name(cpu_isa isa);
const char *hg_tile_name(const hg_tile *tile);

#endif
