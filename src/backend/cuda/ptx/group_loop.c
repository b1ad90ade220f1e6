/* group_loop.c - performs the accesses of a group one by one in a loop: a table says where each access goes, and what
 * it loads or stores waits in local memory. Written out, each would be several instructions, in registers that the fast
 * path needs: that takes an assembler longest, and hardly ever runs.
 *
 * The table is that of the fault sites (fault.c): those of the group are consecutive, in program order. */
#include "backend/cuda/ptx/group.h"
#include "backend/cuda/ptx/ptx_tuning.h"

enum { PLACE_SHIFT = 16, RUN_MASK = (1 << PLACE_SHIFT) - 1 }; /* fields that the table holds in addition to a site */

typedef struct walk {
  ptx_group *g;
  ptx_name room[PTX_MOST_ROOMS];  /* how many elements follow the index */
  ptx_name first, run;            /* the number of the first site that faults, UINT32_MAX: none; its run */
} walk;

/* ---- places in local memory -------------------------------------------------------------------------------------- */

static uint32_t place_of(const ptx_group *g, uint32_t value) {
  uint32_t at = 0;
  for (uint32_t r = 0; r < g->plan->run_count; r++) {
    const gpu_access_run *run = &g->plan->run[r];
    for (uint32_t i = run->first; i < run->first + (uint32_t)run->count; i += g->plan->joined[i]) {
      uint32_t bytes = run->element_bytes, wide = g->plan->joined[i] * bytes;
      at = (at + wide - 1) / wide * wide;
      for (uint32_t k = 0; k < g->plan->joined[i]; k++)
        if (g->plan->value[i + k] == value) return at + k * bytes;
      at += wide;
    }
  }
  return at; /* of no value: the total bytes */
}

/* Not inside a loop of the program: a loop within it takes registers from the fast path, and ptxas no longer separates
 * a load from its use. A tiled product of bf16 took 1.11 times as long (H200). */
int hg_ptx_may_loop(const ptx *p, const ptx_group *g) {
  if (g->plan->count < PTX_LEAST_LOOPED || g->plan->run_count > PTX_MOST_ROOMS || p->plan->info.is_lut ||
      p->plan->in_loop[ptx_insn(p, g->plan->value[0])->block])
    return 0;
  for (uint32_t r = 0; r < g->plan->run_count; r++) {
    const gpu_access_run *run = &g->plan->run[r];
    if (run->checks_least || run->is_shared || run->element_bytes != g->plan->run[0].element_bytes ||
        run->is_read_only != g->plan->run[0].is_read_only)
      return 0;
    for (uint32_t i = run->first; i < run->first + (uint32_t)run->count; i += g->plan->joined[i])
      if (g->plan->joined[i] == 1) return 0;
  }
  return 1;
}

/* ---- what is known of runs --------------------------------------------------------------------------------------- */

static void find_run(ptx *p, walk *w, uint32_t r) {
  ptx_group *g = w->g;
  const gpu_access_run *run = &g->plan->run[r];
  uint32_t value = ptx_index_of(p, g, r);
  ptx_name index = hg_ptx_wide(p, value), is_inside = hg_ptx_new(p, PTX_PREDICATE);
  g->address[r] = hg_ptx_new(p, PTX_64);
  w->room[r] = hg_ptx_new(p, PTX_64);
  PTX(p, "add.s64", g->address[r], g->base[r], hg_ptx_bytes_of(p, value, run->element_bytes));
  if (!run->is_checked) {
    PTX(p, "mov.b64", w->room[r], hg_ptx_name("-1"));
    return;
  }
  PTX(p, "setp.lt.u64", is_inside, index, g->extent[r]);
  PTX(p, "sub.s64", w->room[r], g->extent[r], index);
  PTX(p, "selp.b64", w->room[r], w->room[r], hg_ptx_number(0), is_inside);
}

/* Selects the number of run `which`. */
static ptx_name of_run(ptx *p, const ptx_group *g, const ptx_name *number, ptx_name which) {
  ptx_name chosen = number[0];
  for (uint32_t r = 1; r < g->plan->run_count; r++) {
    ptx_name is_it = hg_ptx_new(p, PTX_PREDICATE), next = hg_ptx_new(p, PTX_64);
    PTX(p, "setp.eq.u32", is_it, which, hg_ptx_number(r));
    PTX(p, "selp.b64", next, number[r], chosen, is_it);
    chosen = next;
  }
  return chosen;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static void wide_accesses(ptx *p, ptx_group *g) {
  for (uint32_t r = 0; r < g->plan->run_count; r++) {
    const gpu_access_run *run = &g->plan->run[r];
    for (uint32_t i = run->first; i < run->first + (uint32_t)run->count; i += g->plan->joined[i])
      hg_ptx_access_together(p, g, run, i, ".local",
                             hg_ptx_name("hg_slow+%u", (unsigned)place_of(g, g->plan->value[i])));
  }
}

/* Lists the sites in program order; returns the first one's number. */
static uint32_t list_sites(ptx *p, const ptx_group *g) {
  uint32_t first = 0;
  for (uint32_t i = 0; i < g->plan->count; i++) {
    uint32_t value = g->plan->in_order[i];
    gpu_site site = hg_gpu_place(p->plan, p->version, value).site;
    site.displacement = (int64_t)ptx_insn(p, value)->bits;
    uint32_t number = hg_ptx_site_number(p, &site);
    hg_ptx_site_also(p, hg_gpu_access_run_of(g->plan, value) | place_of(g, value) << PLACE_SHIFT);
    if (i == 0) first = number;
  }
  return first;
}

static void copy_element(ptx *p, const ptx_group *g, ptx_name in_memory, ptx_name here, ptx_name absent) {
  static const char *const suffixes[] = {".u8", ".u16", ".b32", ".b64"};
  uint32_t bytes = g->plan->run[0].element_bytes;
  const char *suffix = suffixes[gpu_log2(bytes)];
  ptx_class class = bytes == 8 ? PTX_64 : PTX_32;
  ptx_name element = hg_ptx_new(p, class);
  if (g->plan->is_store) {
    hg_ptx_put(p, "\tld.local%s %s, [%s];\n", suffix, element.text, here.text);
    hg_ptx_put(p, "\t@!%s st.global%s [%s], %s;\n", absent.text, suffix, in_memory.text, element.text);
    return;
  }
  PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(class)).text, element, hg_ptx_number(0));
  hg_ptx_put(p, "\t@!%s ld.global%s%s %s, [%s];\n", absent.text, g->plan->run[0].is_read_only ? ".nc" : "", suffix,
             element.text, in_memory.text);
  hg_ptx_put(p, "\tst.local%s [%s], %s;\n", suffix, here.text, element.text);
}

/* Performs the access that a row of the table describes. */
static void do_access(ptx *p, walk *w, ptx_name row, ptx_name number) {
  ptx_name said = hg_ptx_new(p, PTX_32), displacement = hg_ptx_new(p, PTX_64), run = hg_ptx_new(p, PTX_32),
           here = hg_ptx_new(p, PTX_32), slow = hg_ptx_new(p, PTX_32), bytes = hg_ptx_new(p, PTX_64),
           absent = hg_ptx_new(p, PTX_PREDICATE), is_first = hg_ptx_new(p, PTX_PREDICATE);
  hg_ptx_put(p, "\tld.global.nc.b32 %s, [%s+4];\n\tld.global.nc.b64 %s, [%s+24];\n", said.text, row.text,
             displacement.text, row.text);
  PTX(p, "and.b32", run, said, hg_ptx_number(RUN_MASK));
  PTX(p, "shr.u32", here, said, hg_ptx_number(PLACE_SHIFT));
  hg_ptx_put(p, "\tmov.u32 %s, hg_slow;\n", slow.text);
  PTX(p, "add.s32", here, here, slow);
  PTX(p, "setp.le.u64", absent, of_run(p, w->g, w->room, run), displacement);
  PTX(p, "setp.lt.and.u32", is_first, number, w->first, absent);
  hg_ptx_put(p, "\t@%s mov.b32 %s, %s;\n\t@%s mov.b32 %s, %s;\n", is_first.text, w->first.text, number.text,
             is_first.text, w->run.text, run.text);
  PTX(p, "shl.b64", bytes, displacement, hg_ptx_number(gpu_log2(w->g->plan->run[0].element_bytes)));
  PTX(p, "add.s64", bytes, bytes, of_run(p, w->g, w->g->address, run));
  copy_element(p, w->g, bytes, here, absent);
}

/* Prints a loop that the assembler does not unroll. */
static void do_all(ptx *p, walk *w) {
  uint32_t site = list_sites(p, w->g);
  ptx_name row = hg_ptx_new(p, PTX_64), number = hg_ptx_new(p, PTX_32), more = hg_ptx_new(p, PTX_PREDICATE),
           again = hg_ptx_label(p);
  w->first = hg_ptx_new(p, PTX_32);
  w->run = hg_ptx_new(p, PTX_32);
  PTX(p, "mov.b32", w->first, hg_ptx_number(UINT32_MAX));
  PTX(p, "mov.b32", w->run, hg_ptx_number(0));
  PTX(p, "mov.b32", number, hg_ptx_number(site));
  hg_ptx_put(p, "\tmov.u64 %s, %s_sites+%u;\n", row.text, p->options->name, (unsigned)((site - 1) * PTX_SITE_BYTES));
  hg_ptx_place(p, again);
  hg_ptx_put(p, "\t.pragma \"nounroll\";\n");
  do_access(p, w, row, number);
  PTX(p, "add.s64", row, row, hg_ptx_number(PTX_SITE_BYTES));
  PTX(p, "add.s32", number, number, hg_ptx_number(1));
  PTX(p, "setp.lt.u32", more, number, hg_ptx_number(site + w->g->plan->count));
  hg_ptx_put(p, "\t@%s bra %s;\n", more.text, again.text);
}

void hg_ptx_group_loop(ptx *p, ptx_group *g) {
  walk w = {.g = g};
  ptx_name index[PTX_MOST_ROOMS], failed = hg_ptx_new(p, PTX_PREDICATE);
  uint32_t bytes = place_of(g, SSA_NONE);
  if (bytes > p->slow_bytes) p->slow_bytes = bytes;
  for (uint32_t r = 0; r < g->plan->run_count; r++) find_run(p, &w, r);
  if (g->plan->is_store) wide_accesses(p, g);
  do_all(p, &w);
  if (!g->plan->is_store) wide_accesses(p, g);
  for (uint32_t r = 0; r < g->plan->run_count; r++) index[r] = hg_ptx_wide(p, ptx_index_of(p, g, r));
  PTX(p, "setp.ne.u32", failed, w.first, hg_ptx_number(UINT32_MAX));
  hg_ptx_note_number(p, failed, w.first, of_run(p, g, index, w.run), of_run(p, g, g->extent, w.run));
}
