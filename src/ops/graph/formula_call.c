/* formula_call.c - calls in a formula: of operations of the table, with inputs and arguments by position or name, and
 * of the functions that are decided when the formula is built. */
#include "ops/graph/formula.h"

#include <math.h>
#include <stdio.h>

static const ops_item nothing = {.kind = OPS_ITEM_ABSENT};

/* What stands between the parentheses. */
typedef struct call_parts {
  const ops_part *part;
  uint32_t count;
} call_parts;

/* ---- numbers become values --------------------------------------------------------------------------------------- */

/* A number's type beside values of one: theirs, but of a fraction beside integers and bools f32, and of a whole number
 * beside bools i64. In rows of the table, whose arguments are all of one kind, it is the number's value that counts. */
static atlas_type type_beside(const ops_formula *f, const ops_item *number, atlas_type type) {
  double value = number->number;
  int is_whole = number->is_integer, rank = ops_kind_rank(type);
  if (f->row != NULL && !is_whole) is_whole = ops_is_whole(value);
  if (f->row != NULL && rank == 0 && is_whole && (value == 0 || value == 1)) return type;
  if (rank >= (is_whole ? 1 : 2)) return type;
  return is_whole ? ATLAS_i64 : ATLAS_f32;
}

/* The type that a number at an input takes: by the values at inputs that are promoted with it. */
static atlas_type type_of_number(const ops_formula *f, const ops_row *row, const ops_item *items, uint32_t count,
                                 uint32_t index) {
  atlas_type type = ATLAS_NONE;
  ops_word own = ops_types_part(row->types, index);
  for (uint32_t i = 0; i < count; i++) {
    if (items[i].kind != OPS_ITEM_VALUE || ops_types_part(row->types, i).text != own.text) continue;
    atlas_type next = (atlas_type)ops_at(f->c, items[i].value)->type;
    atlas_type both = type == ATLAS_NONE ? next : ops_promote(type, next);
    if (both != ATLAS_NONE) type = both;
  }
  if (type != ATLAS_NONE) return type_beside(f, &items[index], type);
  if (ops_word_is(own, "integer")) return ATLAS_i64;
  return ops_word_is(own, "bool") ? ATLAS_bool : f->type;
}

static int values_of(ops_formula *f, const char *at, const ops_row *row, const ops_item *items, uint32_t count,
                     value_id *values) {
  for (uint32_t i = 0; i < count; i++) {
    values[i] = 0;
    if (items[i].kind == OPS_ITEM_ABSENT) continue;
    if (items[i].kind == OPS_ITEM_VALUE) values[i] = items[i].value;
    else if (items[i].kind == OPS_ITEM_NUMBER)
      values[i] = ops_number_of(f, at, &items[i], type_of_number(f, row, items, count, i));
    else ops_complain(f, at, "%s takes no list here", row->name);
    if (values[i] == 0) {
      ops_complain(f, at, "an operation failed");
      return 0;
    }
  }
  return 1;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* A call whose parts have found their places. */
typedef struct row_call {
  ops_request request;
  ops_item inputs[OPS_MAX_PARTS];
  uint32_t input_count;
  int is_variadic; /* inputs[0] is all of them: a pack, or one value */
} row_call;

static value_id make(ops_formula *f, const char *at, const row_call *call, const value_id *values, uint32_t count) {
  value_id results[OPS_MAX_RESULTS] = {0};
  ops_request request = call->request;
  if (ops_call_row(&request, values, count, results) > 0 && results[0] != 0) return results[0];
  if (!f->failed && f->row == NULL && f->c->status != HG_OK && f->c->status != HG_OUT_OF_MEMORY) {
    char prefix[HG_WORD_BYTES];
    ops_place_text(f, at, prefix, sizeof prefix);
    ops_wrap_failure(f->c, prefix);
  }
  f->failed = 1;
  return 0;
}

/* A pack of as many values, to be filled in. */
static value_id *new_pack(ops_formula *f, uint32_t count) {
  value_id *values = hg_allocate(&f->c->allocator, count, sizeof *values);
  if (values == NULL || hg_array_append(&f->c->allocator, &f->packs, &values, 1) == NULL) {
    hg_release(&f->c->allocator, values);
    ops_failed(f->c, HG_OUT_OF_MEMORY, "no memory for %u values of a formula", (unsigned)count);
    f->failed = 1;
    return NULL;
  }
  return values;
}

/* What is done to a pack is done to each of its values. */
static ops_item call_each(ops_formula *f, const char *at, const row_call *call, uint32_t count) {
  value_id *results = new_pack(f, count), values[OPS_MAX_PARTS];
  for (uint32_t k = 0; results != NULL && k < count; k++) {
    ops_item items[OPS_MAX_PARTS];
    for (uint32_t i = 0; i < call->input_count; i++) {
      items[i] = call->inputs[i];
      if (items[i].kind == OPS_ITEM_PACK) items[i] = ops_value_item(items[i].values[k < items[i].count ? k : 0]);
    }
    if (!values_of(f, at, call->request.row, items, call->input_count, values)) return nothing;
    results[k] = make(f, at, call, values, call->input_count);
    if (results[k] == 0) return nothing;
  }
  return (ops_item){.kind = OPS_ITEM_PACK, .count = count, .values = results};
}

static ops_item call_row(ops_formula *f, const char *at, const row_call *call) {
  value_id values[OPS_MAX_PARTS];
  if (f->nesting >= OPS_MAX_NESTING) return ops_complain(f, at, "formulas stand in formulas %d deep", OPS_MAX_NESTING);
  if (call->is_variadic && call->input_count == 1 && call->inputs[0].kind == OPS_ITEM_PACK) {
    value_id result = make(f, at, call, call->inputs[0].values, call->inputs[0].count);
    return result == 0 ? nothing : ops_value_item(result);
  }
  uint32_t pack = 0;
  for (uint32_t i = 0; i < call->input_count; i++)
    if (call->inputs[i].kind == OPS_ITEM_PACK && call->inputs[i].count > pack) pack = call->inputs[i].count;
  if (pack > 0) return call_each(f, at, call, pack);
  if (!values_of(f, at, call->request.row, call->inputs, call->input_count, values)) return nothing;
  value_id result = make(f, at, call, values, call->input_count);
  return result == 0 ? nothing : ops_value_item(result);
}

/* The next part that is given by position, or the one of that name; -1: there is none. */
static int part_for(const call_parts *parts, uint32_t *taken, ops_word name) {
  for (uint32_t i = 0; i < parts->count; i++)
    if (parts->part[i].name.length == name.length && memcmp(parts->part[i].name.text, name.text, name.length) == 0)
      return *taken |= 1u << i, (int)i;
  for (uint32_t i = 0; i < parts->count; i++)
    if ((*taken >> i & 1) == 0 && parts->part[i].name.length == 0) return *taken |= 1u << i, (int)i;
  return -1;
}

static void place_inputs(const call_parts *parts, uint32_t *taken, row_call *call) {
  const char *at = call->request.row->inputs;
  ops_input_spec spec;
  while (ops_next_input(&at, &spec)) {
    int part = part_for(parts, taken, spec.name);
    call->inputs[call->input_count] = part < 0 ? nothing : parts->part[part].item;
    if (part >= 0 || !spec.is_variadic) call->input_count++;
    if (!spec.is_variadic) continue;
    call->is_variadic = 1;
    for (uint32_t i = 0; i < parts->count && call->input_count < OPS_MAX_PARTS; i++) {
      int is_more =
          (*taken >> i & 1) == 0 && parts->part[i].name.length == 0 && parts->part[i].item.kind == OPS_ITEM_VALUE;
      if (!is_more) continue;
      call->inputs[call->input_count++] = parts->part[i].item;
      *taken |= 1u << i;
    }
  }
}

static void place_arguments(ops_formula *f, const call_parts *parts, uint32_t *taken, row_call *call) {
  const char *at = call->request.row->arguments;
  ops_argument_spec spec;
  for (uint32_t i = 0; ops_next_argument(&at, &spec); i++) {
    ops_item *item = &call->request.arguments[i];
    int part = part_for(parts, taken, spec.name);
    *item =
        part < 0 || parts->part[part].item.kind == OPS_ITEM_ABSENT ? ops_preset(spec.preset) : parts->part[part].item;
    if (part < 0 && ops_word_is(spec.name, "keep")) *item = ops_integer_item(1); /* reductions keep their axes here */
    if (part < 0 || parts->part[part].item.kind == OPS_ITEM_ABSENT) continue;
    int is_type = atlas_type_lookup_name(spec.preset.text, spec.preset.length) != ATLAS_NONE;
    if (is_type && item->kind == OPS_ITEM_VALUE) *item = ops_integer_item(ops_at(f->c, item->value)->type);
    if (!ops_fit_argument(spec.preset, item))
      ops_complain(f, parts->part[part].at, "'%s' of %s takes %s", HG_WORD(spec.name.text, spec.name.length),
                   call->request.row->name, ops_argument_wish(spec.preset));
  }
}

static ops_request request_in(const ops_formula *f, const ops_row *row) {
  int is_users = f->row == NULL && f->nesting == 0;
  return (ops_request){.c = f->c, .row = row, .depth = f->nesting + 1, .is_users = is_users};
}

static ops_item call_operation(ops_formula *f, const ops_row *row, const char *at, const call_parts *parts) {
  row_call call = {.request = request_in(f, row)};
  uint32_t taken = 0;
  place_inputs(parts, &taken, &call);
  place_arguments(f, parts, &taken, &call);
  for (uint32_t i = 0; i < parts->count && !f->failed; i++)
    if ((taken >> i & 1) == 0)
      ops_complain(f, parts->part[i].at, "%s takes (%s%s%s)", row->name, row->inputs,
                   row->arguments[0] != '\0' ? ", " : "", row->arguments);
  return f->failed ? nothing : call_row(f, at, &call);
}

ops_item ops_operate(ops_formula *f, const char *at, hg_op op, const ops_item *items, uint32_t count) {
  row_call call = {.request = request_in(f, ops_row_of(op)), .input_count = count};
  for (uint32_t i = 0; i < count; i++) {
    if (items[i].kind == OPS_ITEM_ABSENT) return ops_complain(f, at, "one side of this is not given");
    call.inputs[i] = items[i];
  }
  return f->failed ? nothing : call_row(f, at, &call);
}

/* ---- functions that are decided when the formula is built -------------------------------------------------------- */

typedef struct build_call {
  ops_formula *f;
  const char *at, *text; /* of the call, of its first part */
  const ops_part *parts;
  const ops_node *x;     /* of the first one, where that is a value */
} build_call;

/* An axis of x by the part at `index`; -1 and a complaint. */
static int axis_of(const build_call *b, const ops_node *x, uint32_t index) {
  const ops_item *item = &b->parts[index].item;
  if (item->kind != OPS_ITEM_NUMBER || !item->is_integer) {
    ops_complain(b->f, b->at, "an axis is an integer");
    return -1;
  }
  int axis = ops_axis(item->integers[0], x->shape.rank);
  if (axis < 0)
    ops_complain(b->f, b->at, "there is no axis %lld of a tensor of rank %u", (long long)item->integers[0],
                 (unsigned)x->shape.rank);
  return axis;
}

static ops_item count_of(const build_call *b) {
  ops_item axes = b->parts[1].item;
  uint64_t count = 1;
  if (axes.kind == OPS_ITEM_NUMBER && axes.is_integer)
    axes = (ops_item){.kind = OPS_ITEM_LIST, .count = 1, .integers = {axes.integers[0]}};
  if (axes.kind != OPS_ITEM_LIST) return ops_complain(b->f, b->at, "count takes (x, axes)");
  if (axes.is_all) return ops_integer_item((int64_t)ops_count(&b->x->shape));
  for (uint32_t i = 0; i < axes.count; i++) {
    int axis = ops_axis(axes.integers[i], b->x->shape.rank);
    if (axis < 0)
      return ops_complain(b->f, b->at, "there is no axis %lld of a tensor of rank %u", (long long)axes.integers[i],
                          (unsigned)b->x->shape.rank);
    count *= b->x->shape.size[axis];
  }
  return ops_integer_item((int64_t)count);
}

static ops_item others_of(const build_call *b) {
  ops_item list = {.kind = OPS_ITEM_LIST};
  int axis = axis_of(b, b->x, 1);
  for (uint32_t i = 0; axis >= 0 && i < b->x->shape.rank; i++)
    if ((int)i != axis) list.integers[list.count++] = (int64_t)i;
  return list;
}

static ops_item shape_of(const build_call *b) {
  ops_item list = {.kind = OPS_ITEM_LIST, .count = b->x->shape.rank};
  for (uint32_t i = 0; i < list.count; i++) list.integers[i] = (int64_t)b->x->shape.size[i];
  return list;
}

static ops_item resized(const build_call *b) {
  ops_item list = shape_of(b);
  int axis = axis_of(b, b->x, 1);
  if (axis >= 0 && b->parts[2].item.kind == OPS_ITEM_NUMBER) list.integers[axis] = b->parts[2].item.integers[0];
  else ops_complain(b->f, b->at, "resized takes (x, axis, n)");
  return list;
}

static ops_item index_of(const build_call *b) {
  ops_shape shape = b->x->shape;
  int axis = axis_of(b, b->x, 1);
  return axis < 0 ? nothing : ops_value_item(ops_coordinate(b->f->c, &shape, (uint32_t)axis));
}

/* What the complaint calls the first part: its name in the formula. */
static const char *own_name(const build_call *b, char *text) {
  size_t length = 0;
  while (b->text[length] != '\0' && strchr(",() ", b->text[length]) == NULL) length++;
  hg_clip(b->text, length, text, HG_WORD_BYTES);
  return text;
}

/* The axis of x along which the vector lies; -1 and a complaint where it has not a number for each place. */
static int axis_of_vector(const build_call *b) {
  const ops_node *x = b->parts[1].item.kind == OPS_ITEM_VALUE ? ops_at(b->f->c, b->parts[1].item.value) : NULL;
  int axis = x != NULL ? axis_of(b, x, 2) : -1;
  if (axis < 0 || (b->x->shape.rank == 1 && b->x->shape.size[0] == x->shape.size[axis])) return axis;
  ops_complain(b->f, NULL, "%s is %s; it is a vector with a number for each of %llu places along axis %d",
               own_name(b, (char[HG_WORD_BYTES]){0}), OPS_TEXT(b->f->c, b->parts[0].item.value),
               (unsigned long long)x->shape.size[axis], axis);
  return -1;
}

static ops_item per(const build_call *b) { return axis_of_vector(b) < 0 ? nothing : b->parts[0].item; }

static ops_item along(const build_call *b) {
  int axis = axis_of_vector(b);
  if (axis < 0) return nothing;
  ops_shape shape = {.rank = ops_at(b->f->c, b->parts[1].item.value)->shape.rank};
  for (uint32_t i = 0; i < shape.rank; i++) shape.size[i] = 1;
  shape.size[axis] = ops_count(&b->x->shape);
  return ops_value_item(ops_reshape(b->f->c, b->parts[0].item.value, &shape));
}

/* ---- what has to fit --------------------------------------------------------------------------------------------- */

static ops_item of_shape(const build_call *b, const ops_shape *shape) {
  if (ops_same_shape(&b->x->shape, shape)) return b->parts[0].item;
  return ops_complain(b->f, NULL, "%s is %s; its shape has to be %s", own_name(b, (char[HG_WORD_BYTES]){0}),
                      OPS_TEXT(b->f->c, b->parts[0].item.value), OPS_SHAPE(shape));
}

static ops_item like(const build_call *b) {
  if (b->parts[1].item.kind != OPS_ITEM_VALUE) return ops_complain(b->f, b->at, "like takes (v, x)");
  ops_shape shape = ops_at(b->f->c, b->parts[1].item.value)->shape;
  return of_shape(b, &shape);
}

static ops_item without(const build_call *b) {
  const ops_node *x = b->parts[1].item.kind == OPS_ITEM_VALUE ? ops_at(b->f->c, b->parts[1].item.value) : NULL;
  int axis = x != NULL ? axis_of(b, x, 2) : -1;
  if (axis < 0) return ops_complain(b->f, b->at, "without takes (v, x, axis)");
  ops_shape shape = {.rank = 0};
  for (uint32_t i = 0; i < x->shape.rank; i++)
    if ((int)i != axis) shape.size[shape.rank++] = x->shape.size[i];
  return of_shape(b, &shape);
}

/* The number where it is right; else a complaint. `before` stands before its low bound, `amid` before the high one. */
static ops_item bounded(const build_call *b, int is_right, const char *before, const char *amid) {
  if (is_right) return b->parts[0].item;
  return ops_complain(b->f, NULL, "%s is %s; it has to %s %s %s %s", own_name(b, (char[HG_WORD_BYTES]){0}),
                      OPS_NUMBER(b->parts[0].item.number), before, OPS_NUMBER(b->parts[1].item.number), amid,
                      OPS_NUMBER(b->parts[2].item.number));
}

static ops_item within(const build_call *b) {
  double x = b->parts[0].item.number, low = b->parts[1].item.number, high = b->parts[2].item.number;
  return bounded(b, x >= low && x <= high, "lie from", "to");
}

static ops_item from(const build_call *b) {
  double x = b->parts[0].item.number, low = b->parts[1].item.number, high = b->parts[2].item.number;
  return bounded(b, x >= low && x < high, "lie from", "to below");
}

static ops_item inside(const build_call *b) {
  double x = b->parts[0].item.number, low = b->parts[1].item.number, high = b->parts[2].item.number;
  return bounded(b, x > low && x < high, "be above", "and below");
}

static ops_item above(const build_call *b) {
  const ops_item *number = &b->parts[0].item, *low = &b->parts[1].item;
  if (number->number > low->number) return *number;
  return ops_complain(b->f, NULL, "%s is %s; it has to be above %s", own_name(b, (char[HG_WORD_BYTES]){0}),
                      OPS_NUMBER(number->number), OPS_NUMBER(low->number));
}

static ops_item share(const build_call *b) {
  const ops_item *number = &b->parts[0].item, *part = &b->parts[1].item;
  int is_whole = number->is_integer && part->is_integer && part->integers[0] > 0;
  if (is_whole && number->integers[0] % part->integers[0] == 0)
    return ops_integer_item(number->integers[0] / part->integers[0]);
  return ops_complain(b->f, NULL, "%s is %s; it has to be a multiple of %s", own_name(b, (char[HG_WORD_BYTES]){0}),
                      OPS_NUMBER(number->number), OPS_NUMBER(part->number));
}

static ops_item block(const build_call *b) {
  int64_t number = b->parts[0].item.integers[0], size = b->parts[1].item.integers[0];
  if (!b->parts[0].item.is_integer || !b->parts[1].item.is_integer || size <= 0)
    return ops_complain(b->f, b->at, "block takes two integers");
  while (size < number - size) size *= 2;
  return ops_integer_item(size < number ? size : number);
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

static ops_item limit_of(const build_call *b, int is_highest) {
  atlas_type type = (atlas_type)b->x->type;
  uint32_t bits = atlas_type_bits(type);
  if (!atlas_is_integer(type)) return ops_real_item(is_highest ? HUGE_VAL : -HUGE_VAL);
  if (atlas_kind(type) == ATLAS_KIND_UINT)
    return is_highest ? ops_unsigned_item(UINT64_MAX >> (64 - bits)) : ops_integer_item(0);
  return ops_integer_item(is_highest ? INT64_MAX >> (64 - bits) : INT64_MIN >> (64 - bits));
}

static ops_item lowest(const build_call *b) { return limit_of(b, 0); }
static ops_item highest(const build_call *b) { return limit_of(b, 1); }

static ops_item beside(const build_call *b) {
  const ops_item *number = &b->parts[1].item;
  int is_fraction = !number->is_integer && number->number > -HUGE_VAL && number->number < HUGE_VAL;
  if (!is_fraction || !atlas_is_integer((atlas_type)b->x->type)) return b->parts[0].item;
  return ops_value_item(ops_cast(b->f->c, b->parts[0].item.value, ATLAS_f32));
}

static ops_item integer_of(const build_call *b) {
  switch (atlas_bytes((atlas_type)b->x->type)) {
    case 1: return ops_integer_item(ATLAS_i8);
    case 2: return ops_integer_item(ATLAS_i16);
    case 4: return ops_integer_item(ATLAS_i32);
    default: return ops_integer_item(ATLAS_i64);
  }
}

static ops_item size_of(const build_call *b) {
  int axis = axis_of(b, b->x, 1);
  return axis < 0 ? nothing : ops_integer_item((int64_t)b->x->shape.size[axis]);
}

static ops_item rank_of(const build_call *b) { return ops_integer_item(b->x->shape.rank); }
static ops_item is_float(const build_call *b) { return ops_integer_item(atlas_is_float((atlas_type)b->x->type)); }
static ops_item is_integer(const build_call *b) { return ops_integer_item(atlas_is_integer((atlas_type)b->x->type)); }

static ops_item given(const build_call *b) { return ops_integer_item(b->parts[0].item.kind != OPS_ITEM_ABSENT); }

static const struct {
  const char *name;
  uint32_t parts;
  ops_item (*decide)(const build_call *);
  const char *takes;
} functions[] = {
#define FUNCTION(name, parts, decide, takes) {#name, parts, decide, takes},
#include "ops/graph/functions.def"
#undef FUNCTION
};

static int parts_fit(const call_parts *parts, const char *takes) {
  for (uint32_t i = 0; takes[i] != '\0'; i++)
    if (parts->part[i].item.kind != (takes[i] == 't' ? OPS_ITEM_VALUE : OPS_ITEM_NUMBER)) return 0;
  return 1;
}

static ops_item call_function(ops_formula *f, ops_function function, const char *at, const call_parts *parts) {
  uint32_t wanted = functions[function].parts;
  const char *takes = functions[function].takes;
  build_call b = {.f = f, .at = at, .parts = parts->part};
  if (function == OPS_FUNCTION_given && parts->count != 1)
    return ops_complain(f, at, "given takes the name of an input");
  if (parts->count != wanted || !parts_fit(parts, takes))
    return ops_complain(f, at, "%s takes %u part%s, a %s first", functions[function].name, (unsigned)wanted,
                        wanted == 1 ? "" : "s", takes[0] == 't' ? "tensor" : "number");
  b.text = parts->part[0].at;
  if (takes[0] == 't') b.x = ops_at(f->c, parts->part[0].item.value);
  ops_item result = functions[function].decide(&b);
  if (result.kind == OPS_ITEM_VALUE && result.value == 0) f->failed = 1;
  return result;
}

ops_item ops_make_call(ops_formula *f, uint32_t at, const ops_part *first, uint32_t count) {
  const ops_syntax *node = &f->parsed.nodes[at];
  call_parts parts = {first, count};
  if (node->kind == OPS_SYNTAX_FUNCTION) return call_function(f, (ops_function)node->op, ops_text_at(f, at), &parts);
  if (node->kind == OPS_SYNTAX_CALL) return call_operation(f, ops_row_of(node->op), ops_text_at(f, at), &parts);
  ops_word name = ops_word_at(f, at);
  return ops_complain(f, name.text, "there is no operation '%s'", HG_WORD(name.text, name.length));
}
