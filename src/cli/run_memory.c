/* run_memory.c - the parameters of a program that `hologram run` runs: scalars from text, buffers from and to files. */
#include "cli/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_COUNT (UINT64_MAX / 16) /* of elements: their bytes still fit in 64 bits */

static const char *option_name(run_option option) {
  static const char *const names[] = {"--buffer", "--out", "--scalar", "--table", "--pool", "--size"};
  return names[option];
}

static const char *access_name(uint8_t access) {
  return access == ATLAS_IN ? "in" : access == ATLAS_OUT ? "out" : "inout";
}

static int is_memory(const atlas_symbol *symbol) {
  return symbol->kind == ATLAS_SYMBOL_BUFFER || symbol->kind == ATLAS_SYMBOL_TABLE || symbol->kind == ATLAS_SYMBOL_POOL;
}

/* ---- items and symbols ------------------------------------------------------------------------------------------- */

static const char *kind_name(const atlas_symbol *symbol) {
  switch (symbol->kind) {
  case ATLAS_SYMBOL_BUFFER: return "a buffer";
  case ATLAS_SYMBOL_SCALAR: return "a scalar";
  case ATLAS_SYMBOL_TABLE: return "a table";
  case ATLAS_SYMBOL_POOL: return "a pool";
  default: return "not a parameter";
  }
}

static int option_fits(run_option option, const atlas_symbol *symbol) {
  switch (option) {
  case RUN_BUFFER:
  case RUN_SIZE: return symbol->kind == ATLAS_SYMBOL_BUFFER;
  case RUN_SCALAR: return symbol->kind == ATLAS_SYMBOL_SCALAR;
  case RUN_TABLE: return symbol->kind == ATLAS_SYMBOL_TABLE;
  case RUN_POOL: return symbol->kind == ATLAS_SYMBOL_POOL;
  default: return is_memory(symbol);
  }
}

/* The parameter that an item names. */
static int find_symbol(run_state *run, const run_item *item, uint32_t *slot) {
  char names[600] = "";
  for (uint32_t i = 0; i < run->symbol_count; i++) {
    const atlas_symbol *symbol = &run->symbols[i];
    if (strcmp(symbol->name, item->name) == 0) {
      if (!option_fits(item->option, symbol))
        return run_fail(run, HG_BINDING, "%s: '%s' is %s of the program", option_name(item->option), item->name,
                        kind_name(symbol));
      if (item->has_entry && symbol->kind != ATLAS_SYMBOL_TABLE)
        return run_fail(run, HG_BINDING, "%s: '%s' is not a table and has no entries", option_name(item->option),
                        item->name);
      *slot = i;
      return CLI_OK;
    }
    size_t used = strlen(names);
    if (option_fits(item->option, symbol))
      snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", symbol->name);
  }
  return run_fail(run, HG_BINDING, "%s: the program has no parameter '%s' of that kind; it has: %s",
                  option_name(item->option), item->name, names[0] != '\0' ? names : "none");
}

/* ---- scalars ----------------------------------------------------------------------------------------------------- */

/* The value of a constant as the text form reads it: by asking the assembler. */
static int read_constant(atlas_type type, const char *text, uint64_t *bits) {
  enum { LONGEST = 1100 };
  static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-.";
  char source[LONGEST + 64];
  size_t length = strlen(text);
  if (length == 0 || length > LONGEST || strspn(text, allowed) != length) return 0;
  int written = snprintf(source, sizeof source, "movi.%s r0, #%s\nexit\n", atlas_type_name(type), text);
  atlas_program *program = NULL;
  if (written < 0 || atlas_parse(NULL, source, (size_t)written, "value", &program) != HG_OK) return 0;
  size_t count = 0;
  *bits = atlas_program_insns(program, &count)[0].operand[1].bits;
  atlas_program_release(program);
  return 1;
}

static int read_scalar(run_state *run, const run_item *item, const atlas_symbol *symbol, uint64_t *bits) {
  atlas_type type = (atlas_type)symbol->type;
  const char *text = item->value + (item->value[0] == '#');
  if (read_constant(type, text, bits)) return CLI_OK;
  int is_float = type == ATLAS_f16 || type == ATLAS_bf16 || type == ATLAS_f32 || type == ATLAS_f64;
  return run_fail(run, HG_PARSE, "--scalar %s: '%.80s%s' is not a constant of type %s; expected %s", symbol->name,
                  item->value, strlen(item->value) > 80 ? "..." : "", atlas_type_name(type),
                  is_float ? "a number in its range such as 2, -1.5e-3, 0x1.8p3, inf or nan, or 0x and its bits"
                           : "an integer in its range, decimal or hexadecimal");
}

static int find_missing_scalar(run_state *run) {
  for (uint32_t i = 0; i < run->symbol_count; i++) {
    const atlas_symbol *symbol = &run->symbols[i];
    size_t k = 0;
    while (k < run->scalar_count && run->scalars[k].slot != i) k++;
    if (symbol->kind == ATLAS_SYMBOL_SCALAR && k == run->scalar_count)
      return run_fail(run, HG_BINDING, "scalar '%s' (%s) is not given; use --scalar %s=VALUE", symbol->name,
                      atlas_type_name((atlas_type)symbol->type), symbol->name);
  }
  return CLI_OK;
}

int run_read_scalars(run_state *run) {
  run->scalars = calloc(run->options.item_count + 1, sizeof *run->scalars);
  if (run->scalars == NULL) return run_fail(run, HG_OUT_OF_MEMORY, "out of memory");
  for (size_t i = 0; i < run->options.item_count; i++) {
    const run_item *item = &run->options.items[i];
    uint32_t slot = 0;
    if (item->option != RUN_SCALAR) continue;
    if (find_symbol(run, item, &slot) != CLI_OK) return CLI_BAD_INPUT;
    for (size_t k = 0; k < run->scalar_count; k++)
      if (run->scalars[k].slot == slot) return run_fail(run, HG_BINDING, "--scalar %s is given twice", item->name);
    hg_scalar *scalar = &run->scalars[run->scalar_count++];
    *scalar = (hg_scalar){.slot = slot, .type = run->symbols[slot].type};
    if (read_scalar(run, item, &run->symbols[slot], &scalar->bits) != CLI_OK) return CLI_BAD_INPUT;
  }
  return find_missing_scalar(run);
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* NumPy has no bf16 and no 8-bit floats: integers of their width. A pool's bytes have no type. */
static atlas_type file_type(atlas_type type) {
  if (type == ATLAS_bf16) return ATLAS_u16;
  return type == ATLAS_f8e4m3 || type == ATLAS_f8e5m2 || type == ATLAS_NONE ? ATLAS_u8 : type;
}

const char *run_dtype(atlas_type type) {
  static const char *const names[ATLAS_TYPE_COUNT] = {
      [ATLAS_i8] = "|i1",  [ATLAS_i16] = "<i2", [ATLAS_i32] = "<i4", [ATLAS_i64] = "<i8", [ATLAS_u8] = "|u1",
      [ATLAS_u16] = "<u2", [ATLAS_u32] = "<u4", [ATLAS_u64] = "<u8", [ATLAS_f16] = "<f2", [ATLAS_bf16] = "<V2",
      [ATLAS_f32] = "<f4", [ATLAS_f64] = "<f8", [ATLAS_bool] = "|b1"};
  return names[type];
}

/* ---- memory: what is given --------------------------------------------------------------------------------------- */

static run_memory *find_memory(run_state *run, uint32_t slot, uint32_t entry) {
  for (size_t i = 0; i < run->memory_count; i++)
    if (run->memory[i].slot == slot && run->memory[i].entry == entry) return &run->memory[i];
  return NULL;
}

static run_memory *add_memory(run_state *run, uint32_t slot, uint32_t entry) {
  run_memory *memory = &run->memory[run->memory_count++];
  const atlas_symbol *symbol = &run->symbols[slot];
  *memory = (run_memory){.symbol = symbol,
                         .slot = slot,
                         .entry = entry,
                         .type = file_type((atlas_type)symbol->type)};
  return memory;
}

/* The memory an item is about; entries of tables come into being here. */
static int memory_of_item(run_state *run, const run_item *item, run_memory **out) {
  uint32_t slot = 0;
  if (find_symbol(run, item, &slot) != CLI_OK) return CLI_BAD_INPUT;
  const atlas_symbol *symbol = &run->symbols[slot];
  if (symbol->kind == ATLAS_SYMBOL_TABLE && !item->has_entry)
    return run_fail(run, HG_BINDING, "%s: '%s' is a table; say which entry (%s:0=...)", option_name(item->option),
                    item->name, item->name);
  if (symbol->kind == ATLAS_SYMBOL_TABLE && item->entry >= symbol->count)
    return run_fail(run, HG_BINDING, "%s: table '%s' has no entry %u; it has %u", option_name(item->option), item->name,
                    (unsigned)item->entry, (unsigned)symbol->count);
  *out = find_memory(run, slot, item->entry);
  if (*out == NULL) *out = add_memory(run, slot, item->entry);
  return CLI_OK;
}

/* 1 if the elements lie one after the other as in C. */
static int is_in_order(const hg_tensor *array) {
  hg_tensor dense = hg_tensor_of(array->buffer, (atlas_type)array->type, array->rank, array->shape);
  return memcmp(dense.stride, array->stride, array->rank * sizeof *array->stride) == 0;
}

static int read_array(run_state *run, const run_item *item, run_memory *memory) {
  char path[CLI_PATH_BYTES];
  hg_status status = hg_tensor_load(run->executor, cli_path(item->value, path), &memory->array);
  if (status != HG_OK) return run_fail(run, status, "%s", hg_last_error());
  const hg_tensor *array = &memory->array;
  atlas_type type = (atlas_type)array->type;
  memory->buffer = array->buffer;
  memory->given = memory->sized = 1;
  memory->count = hg_tensor_count(array);
  if (!is_in_order(array))
    return run_fail(run, HG_UNSUPPORTED, "%s: is in Fortran order; save it in C order (numpy.ascontiguousarray)",
                    item->value);
  if (item->option != RUN_TABLE && type != memory->type && type != (atlas_type)memory->symbol->type)
    return run_fail(run, HG_BINDING, "%s: dtype is '%s'; buffer '%s' is %s and needs '%s'", item->value,
                    run_dtype(type), item->name, atlas_type_name((atlas_type)memory->symbol->type),
                    run_dtype(memory->type));
  memory->type = type; /* tables hold bytes: any type will do, and an output keeps it */
  return CLI_OK;
}

static int read_size(run_state *run, const run_item *item, run_memory *memory) {
  if (!cli_parse_u64(item->value, &memory->count) || memory->count > LARGEST_COUNT)
    return run_fail(run, HG_PARSE, "%s %s: '%s' is not a number of %s", option_name(item->option), item->name,
                    item->value, item->option == RUN_POOL ? "bytes" : "elements");
  memory->sized = 1;
  return CLI_OK;
}

static int apply_item(run_state *run, const run_item *item) {
  run_memory *memory = NULL;
  if (memory_of_item(run, item, &memory) != CLI_OK) return CLI_BAD_INPUT;
  if (item->option == RUN_OUT) {
    if (memory->symbol->kind != ATLAS_SYMBOL_POOL && memory->symbol->access == ATLAS_IN)
      return run_fail(run, HG_BINDING, "--out %s: the program only reads '%s' (in); --out takes out and inout",
                      item->name, item->name);
    if (memory->out != NULL) return run_fail(run, HG_BINDING, "--out %s is given twice", item->name);
    memory->out = item->value;
    return CLI_OK;
  }
  if (memory->sized)
    return run_fail(run, HG_BINDING, "%s: '%s' has a file or a size already", option_name(item->option), item->name);
  return item->option == RUN_BUFFER || item->option == RUN_TABLE ? read_array(run, item, memory)
                                                                 : read_size(run, item, memory);
}

/* ---- memory: what is not given ----------------------------------------------------------------------------------- */

/* How many lanes the command line asks for; 0 where it does not say or where there are absurdly many. */
static int asked_lanes(const run_state *run, uint64_t *count) {
  const run_options *options = &run->options;
  uint32_t own[3];
  atlas_program_block(run->program, own);
  if (own[0] == 0) atlas_program_default_block(run->program, own);
  const uint32_t *block = options->block[0] != 0 ? options->block : own;
  if (options->grid[0] == 0) {
    *count = options->lanes;
    return options->has_lanes && *count <= LARGEST_COUNT;
  }
  *count = 1;
  for (int d = 0; d < 3; d++) {
    uint64_t lanes = (uint64_t)options->grid[d] * (block[d] != 0 ? block[d] : 1);
    if (*count > LARGEST_COUNT / lanes) return 0;
    *count *= lanes;
  }
  return 1;
}

/* Element count for outputs that nobody sized: of the first array given, else the number of lanes asked for. */
static int default_count(const run_state *run, uint64_t *count) {
  for (size_t i = 0; i < run->memory_count; i++) {
    if (!run->memory[i].given || run->memory[i].symbol->kind != ATLAS_SYMBOL_BUFFER) continue;
    *count = run->memory[i].count;
    return 1;
  }
  return asked_lanes(run, count);
}

static int size_the_rest(run_state *run) {
  for (size_t i = 0; i < run->memory_count; i++) {
    run_memory *memory = &run->memory[i];
    const char *name = memory->symbol->name;
    if (memory->sized) continue;
    if (memory->symbol->kind == ATLAS_SYMBOL_POOL)
      return run_fail(run, HG_BINDING, "pool '%s' is not given; use --pool %s=BYTES", name, name);
    if (memory->symbol->kind == ATLAS_SYMBOL_TABLE)
      return run_fail(run, HG_BINDING, "entry %u of table '%s' is not given; use --table %s:%u=FILE.npy",
                      (unsigned)memory->entry, name, name, (unsigned)memory->entry);
    if (memory->symbol->access != ATLAS_OUT)
      return run_fail(run, HG_BINDING, "buffer '%s' (%s, %s) is not given; use --buffer %s=FILE.npy", name,
                      atlas_type_name((atlas_type)memory->symbol->type), access_name(memory->symbol->access), name);
    if (!default_count(run, &memory->count))
      return run_fail(run, HG_BINDING, "how large is buffer '%s'? use --size %s=COUNT or --lanes", name, name);
    memory->sized = 1;
  }
  return CLI_OK;
}

/* Without --lanes and --grid: as many lanes as the first output has elements. */
static int choose_shape(run_state *run) {
  const run_options *options = &run->options;
  memcpy(run->launch.grid, options->grid, sizeof options->grid);
  memcpy(run->launch.block, options->block, sizeof options->block);
  run->launch.lanes = options->lanes;
  if (options->has_lanes || options->grid[0] != 0) return CLI_OK;
  for (size_t i = 0; i < run->memory_count; i++) {
    const run_memory *memory = &run->memory[i];
    if (memory->symbol->kind != ATLAS_SYMBOL_BUFFER || memory->symbol->access == ATLAS_IN) continue;
    run->launch.lanes = memory->count;
    return CLI_OK;
  }
  return run_fail(run, HG_INVALID_ARGUMENT,
                  "how many lanes? the program has no output buffer to count; use --lanes or --grid");
}

int run_plan_memory(run_state *run) {
  run->memory = calloc(run->symbol_count + run->options.item_count + 1, sizeof *run->memory);
  if (run->memory == NULL) return run_fail(run, HG_OUT_OF_MEMORY, "out of memory");
  for (uint32_t i = 0; i < run->symbol_count; i++)
    if (is_memory(&run->symbols[i]) && run->symbols[i].kind != ATLAS_SYMBOL_TABLE) add_memory(run, i, 0);
  for (size_t i = 0; i < run->options.item_count; i++)
    if (run->options.items[i].option != RUN_SCALAR && apply_item(run, &run->options.items[i]) != CLI_OK)
      return CLI_BAD_INPUT;
  if (size_the_rest(run) != CLI_OK) return CLI_BAD_INPUT;
  return choose_shape(run);
}

/* ---- buffers and files ------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const run_memory *memory) {
  return memory->count * (atlas_type_bits(memory->type) / 8); /* fits, see LARGEST_COUNT */
}

static int is_written(const run_memory *memory) {
  return memory->symbol->kind == ATLAS_SYMBOL_POOL || memory->symbol->access != ATLAS_IN;
}

static hg_status keep_first(const run_state *run, run_memory *memory) {
  hg_status status = hg_buffer_create(run->executor, NULL, bytes_of(memory), &memory->first);
  return status != HG_OK ? status : hg_buffer_copy(memory->first, 0, memory->buffer, 0, bytes_of(memory));
}

int run_create_memory(run_state *run) {
  for (size_t i = 0; i < run->memory_count; i++) {
    run_memory *memory = &run->memory[i];
    hg_status status = HG_OK;
    if (!memory->given) status = hg_buffer_create(run->executor, NULL, bytes_of(memory), &memory->buffer);
    else if (run->options.repeat > 0 && is_written(memory)) status = keep_first(run, memory);
    if (status != HG_OK) return run_fail(run, status, "buffer '%s': %s", memory->symbol->name, hg_last_error());
  }
  return CLI_OK;
}

int run_refill_memory(run_state *run) {
  static const uint8_t zero = 0;
  for (size_t i = 0; i < run->memory_count; i++) {
    run_memory *memory = &run->memory[i];
    if (!is_written(memory)) continue;
    hg_status status = memory->given
                         ? hg_buffer_copy(memory->buffer, 0, memory->first, 0, bytes_of(memory))
                         : hg_buffer_fill(memory->buffer, 0, bytes_of(memory), &zero, sizeof zero);
    if (status != HG_OK) return run_fail(run, status, "buffer '%s': %s", memory->symbol->name, hg_last_error());
  }
  return CLI_OK;
}

hg_tensor run_output(const run_state *run, const run_memory *memory) {
  const hg_tensor *like = memory->given ? &memory->array : NULL;
  for (size_t i = 0; i < run->memory_count && like == NULL; i++)
    if (run->memory[i].given && run->memory[i].symbol->kind == ATLAS_SYMBOL_BUFFER &&
        run->memory[i].count == memory->count)
      like = &run->memory[i].array;
  if (like == NULL) return hg_tensor_of(memory->buffer, memory->type, 1, &memory->count);
  return hg_tensor_of(memory->buffer, memory->type, like->rank, like->shape);
}

int run_write_outputs(run_state *run) {
  for (size_t i = 0; i < run->memory_count; i++) {
    char path[CLI_PATH_BYTES];
    hg_tensor output = run_output(run, &run->memory[i]);
    if (run->memory[i].out == NULL) continue;
    hg_status status = hg_tensor_save(&output, cli_path(run->memory[i].out, path));
    if (status != HG_OK) return run_fail(run, status, "%s", hg_last_error());
  }
  return CLI_OK;
}
