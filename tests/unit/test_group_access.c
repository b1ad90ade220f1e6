/* test_group_access.c - accesses to neighbours under a mask, in launches of lanes and of grids: at the border of a grid
 * lanes that take no part would be out of bounds. With indices of each type, elements of each size, buffers that end
 * too early, and rows of any length. They leave the memory and the fault of the reference machine, and one comparison
 * does for the lanes of a group. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"
#include "native_passes.h"

enum { ROOM = 2048, MOST_BYTES = 1 << 15 };

typedef struct kind {
  const char *index, *element;
  uint32_t bytes;
} kind;

static char text[ROOM];
static uint8_t contents[MOST_BYTES];

typedef enum launch { LANES, ROWS, GRID } launch; /* ROWS: lanes whose number is divided by a parameter */

/* Each element that has four neighbours becomes their sum; is_open: also those of the first row, which have none above.
 * In a launch of lanes, a lane's place is its number. */
static void write_program(const kind *k, uint32_t width, uint32_t height, launch as, int is_open) {
  int is_64 = strcmp(k->index + 1, "64") == 0;
  const char *wide = is_64 ? "u64" : "u32";
  size_t used = 0;
#define ADD(...) (used += (size_t)snprintf(text + used, sizeof text - used, __VA_ARGS__))
  ADD(".program p\n%s.buffer x %s in\n.buffer y %s out\n", as == GRID ? ".block 32, 2\n" : "", k->element, k->element);
  if (as == ROWS) ADD(".scalar width u32\ncvt.u32.u64 r9, lane\nrem.u32 r0, r9, width\ndiv.u32 r1, r9, width\n");
  else if (as == GRID) ADD("sreg.%s r0, global.x\nsreg.%s r1, global.y\n", wide, wide);
  else ADD("%s r9, lane\nrem.%s r0, r9, #%u\ndiv.%s r1, r9, #%u\n", is_64 ? "mov.u64" : "cvt.u32.u64", wide,
           width, wide, width);
  if (k->index[0] == 'i')
    for (int r = 0; r < 2; r++) ADD("cvt.%s.u%s r%d, r%d\n", k->index, k->index + 1, r, r);
  if (as == GRID) ADD("mad.%s r2, r1, #%u, r0\n", k->index, width);
  else if (k->index[0] == 'i') ADD("cvt.%s.u%s r2, r9\n", k->index, k->index + 1);
  else ADD("mov.%s r2, r9\n", k->index);
  ADD("ldg.%s r4, [x + r2]\nset.eq.%s p0, r0, #0\n", k->element, k->index);
  ADD("set.eq.%s p1, r0, #%u\npor p0, p0, p1\n", k->index, width - 1);
  ADD("set.eq.%s p1, r1, #%u\npor p0, p0, p1\n", k->index, height - 1);
  if (!is_open) ADD("set.eq.%s p1, r1, #0\npor p0, p0, p1\n", k->index);
  ADD("@p0 bra done\nldg.%s r5, [x + r2 + #-1]\nadd.%s r4, r4, r5\n", k->element, k->element);
  ADD("ldg.%s r5, [x + r2 + #1]\nadd.%s r4, r4, r5\n", k->element, k->element);
  ADD("sub.%s r3, r2, #%u\nldg.%s r5, [x + r3]\nadd.%s r4, r4, r5\n", k->index, width, k->element, k->element);
  ADD("add.%s r3, r2, #%u\nldg.%s r5, [x + r3]\nadd.%s r4, r4, r5\n", k->index, width, k->element, k->element);
  ADD("stg.%s [y + r2], r4\ndone:\nexit\n", k->element);
#undef ADD
}

static void check_launch(const kind *k, uint32_t blocks_x, uint32_t blocks_y, launch as, int is_open, uint32_t fewer) {
  uint32_t width = 32 * blocks_x, height = 2 * blocks_y;
  write_program(k, width, height, as, is_open);
  uint64_t size = (uint64_t)width * height * k->bytes, bound = size - (uint64_t)fewer * k->bytes;
  const beside_buffer buffers[] = {{.name = "x", .contents = contents, .size = size, .byte_count = bound},
                                   {.name = "y", .size = size, .byte_count = bound, .is_result = 1}};
  const hg_scalar length = {.name = "width", .type = ATLAS_u32, .bits = width};
  hg_launch_desc desc = {.size = sizeof desc, .lanes = as == GRID ? 0 : (uint64_t)width * height - (as == ROWS ? 5 : 0),
                         .scalars = &length, .scalar_count = as == ROWS};
  if (as == GRID) desc.grid[0] = blocks_x, desc.grid[1] = blocks_y;
  if (!check_beside(text, &desc, buffers, 2))
    printf("%s by %s, %u x %u, as %d, open %d, fewer %u\n", k->element, k->index, width, height, (int)as, is_open,
           fewer);
}

static void check_kind(const kind *k) {
  for (launch as = LANES; as <= GRID; as++)
    for (int is_open = 0; is_open < 2; is_open++)
      for (uint32_t x = 1; x < 8 && (as != ROWS || strcmp(k->index + 1, "32") == 0); x += 2)
        for (uint32_t fewer = 0; fewer < 80; fewer += fewer + 1) check_launch(k, x, 5, as, is_open, fewer);
}

typedef struct seen {
  uint32_t checks;
  int needs_blocks;
} seen;

static hg_status see(void *context, const char *version, const native_build *build) {
  seen *s = context;
  (void)version;
  s->checks += build->group_checks;
  s->needs_blocks |= build->vector->needs_blocks;
  return HG_OK;
}

static seen see_text(const char *source, const native_target *target) {
  seen s = {0};
  const native_visitor visitor = {.visit = see, .context = &s};
  visit_versions(source, target, &visitor);
  return s;
}

/* At least those under a mask: four loads and the store. */
static void check_counts(const kind *k, const native_target *target) {
  write_program(k, 96, 10, GRID, 0);
  CHECK(see_text(text, target).checks >= 5);
}

/* What is the same along a row, and the chain of conditions with it: in 32 bits only. */
static void check_invariants(const kind *k) {
  write_program(k, 96, 10, GRID, 0);
  if (strcmp(k->index + 1, "32") == 0) check_fires(text, NATIVE_RUN_run_invariants);
  else CHECK_EQ_U64(count_passes(text, &hg_native_avx512).fired[NATIVE_RUN_run_invariants], 0);
}

/* Tiles are rows of the grid where nothing asks for blocks. */
static void check_rows(void) {
  static const char *const by_rows = "sreg.u32 r0, global.x\nsreg.u32 r1, global.y\nmad.u32 r2, r1, #64, r0\n"
                                     "ldg.f32 r3, [x + r2]\nstg.f32 [y + r2], r3\nexit\n";
  static const char *const others[] = {
      "sreg.u32 r0, global.x\nsreg.u32 r1, lane.y\nmad.u32 r2, r1, #64, r0\n"
      "ldg.f32 r3, [x + r2]\nstg.f32 [y + r2], r3\nexit\n",
      "sreg.u32 r0, global.x\nsreg.u32 r1, global.y\nmad.u32 r2, r0, #64, r1\n"
      "ldg.f32 r3, [x + r2]\nstg.f32 [y + lane], r3\nexit\n",
      "sreg.u32 r0, global.y\nmovi.u32 r2, #8\nagain:\nldg.f32 r3, [x + r0]\nadd.u32 r0, r0, #1\nloop r2, again\n"
      "stg.f32 [y + lane], r3\nexit\n"};
  static const char head[] = ".program p\n.block 32, 2\n.buffer x f32 in\n.buffer y f32 out\n";
  snprintf(text, sizeof text, "%s%s", head, by_rows);
  CHECK(!see_text(text, &hg_native_avx512).needs_blocks);
  for (size_t i = 0; i < COUNT(others); i++) {
    snprintf(text, sizeof text, "%s%s", head, others[i]);
    CHECK(see_text(text, &hg_native_avx512).needs_blocks);
  }
}

int main(void) {
  static const kind kinds[] = {{"u32", "f32", 4}, {"i32", "f32", 4}, {"u64", "f32", 4},
                               {"i64", "u32", 4}, {"u32", "f64", 8}, {"i32", "u64", 8},
                               {"u32", "u8", 1},  {"i32", "i16", 2}, {"u64", "u16", 2}};
  for (size_t i = 0; i < sizeof contents; i++) contents[i] = (uint8_t)(i * 37 % 61);
  open_both();
  for (size_t i = 0; i < COUNT(kinds); i++) check_kind(&kinds[i]);
  for (size_t i = 0; i < 6; i++) check_counts(&kinds[i], &hg_native_avx512);
  for (size_t i = 0; i < 6; i++) check_counts(&kinds[i], &hg_native_avx2);
  for (size_t i = 0; i < COUNT(kinds); i++) check_invariants(&kinds[i]);
  check_rows();
  write_program(&kinds[0], 96, 10, ROWS, 0);
  check_fires(text, NATIVE_ROWS_lane_rows);
  close_both();
  return check_report();
}
