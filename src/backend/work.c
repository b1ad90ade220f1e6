/* work.c - deep copies of the work of streams, for queues and graphs. */
#include "backend/backend.h"

#include <stddef.h>
#include <string.h>

static uint64_t table_bytes(const atlas_program *program, size_t symbol) {
  const atlas_symbol *s = atlas_symbol_at(program, symbol);
  return s->kind == ATLAS_SYMBOL_TABLE ? s->count * sizeof(atlas_span) : 0;
}

uint64_t hg_work_room(const hg_work *work) {
  if (work->kind != HG_WORK_LAUNCH) return 0;
  uint64_t bytes = sizeof(atlas_launch) + work->program->symbols.count * sizeof(atlas_argument);
  for (size_t i = 0; i < work->program->symbols.count; i++) bytes += table_bytes(work->program, i);
  return bytes;
}

void hg_work_copy(hg_work *copy, const hg_work *work, void *room) {
  *copy = *work;
  if (work->kind != HG_WORK_LAUNCH) return;
  size_t symbols = work->program->symbols.count;
  atlas_launch *launch = room;
  atlas_argument *arguments = (atlas_argument *)(launch + 1);
  uint8_t *tables = (uint8_t *)(arguments + symbols);
  memcpy(launch, work->launch, offsetof(atlas_launch, resonance));
  memcpy(arguments, work->launch->arguments, symbols * sizeof *arguments);
  for (size_t i = 0; i < symbols; i++) {
    uint64_t bytes = table_bytes(work->program, i);
    if (bytes == 0) continue;
    memcpy(tables, arguments[i].table, bytes);
    arguments[i].table = (const atlas_span *)(const void *)tables;
    tables += bytes;
  }
  launch->arguments = arguments;
  copy->launch = launch;
}
