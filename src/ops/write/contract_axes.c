/* contract_axes.c - where the elements of a contraction's factors lie along each of its axes. An axis may be a list of
 * axes, numbered in C order: a view of windows has four of them along K (channel, and the place in the window), each
 * with a size and a stride. */
#include "ops/write/contract_tiles.h"

/* A variable of forms: coordinate / divisor % size. */
typedef struct digit {
  uint32_t coordinate;
  uint64_t divisor, size;
} digit;

/* 0: the variable is none. */
static int digit_of(const ops_terms *t, uint32_t variable, digit *out) {
  uint32_t only = 0, count = 0;
  if (variable < t->space.rank) {
    *out = (digit){variable, 1, t->space.size[variable]};
    return 1;
  }
  const ops_derived *derived = &t->derived[variable];
  for (uint32_t i = 0; i < t->variable_count; i++)
    if (derived->of.factor[i] != 0) only = i, count++;
  if (count != 1 || derived->of.factor[only] != 1 || derived->of.constant != 0) return 0;
  if (derived->kind == OPS_CLAMPED) return 0;
  if (!digit_of(t, only, out) || out->size % derived->size != 0) return 0;
  if (derived->kind == OPS_REMAINDER) out->size = derived->size;
  else out->divisor *= derived->size, out->size /= derived->size;
  return 1;
}

/* Appends so many elements a stride apart, the next slower part of the axis; 0: there is no place. Parts that continue
 * each other are one. */
static int append(hg_axis *axis, uint64_t size, int64_t stride) {
  if (size == 1) return 1;
  uint64_t last = axis->count - 1;
  if (axis->count > 0 && axis->stride[last] * (int64_t)axis->size[last] == stride) {
    axis->size[last] *= size;
    return 1;
  }
  if (axis->count == HG_AXIS_PARTS) return 0;
  axis->size[axis->count] = size, axis->stride[axis->count] = stride;
  axis->count++;
  return 1;
}

int ops_contract_axis(const ops_terms *t, const ops_form *form, uint32_t coordinate, hg_axis *axis) {
  digit digits[OPS_MAX_VARIABLES];
  int64_t strides[OPS_MAX_VARIABLES];
  uint32_t count = 0;
  uint64_t reached = 1;
  memset(axis, 0, sizeof *axis);
  for (uint32_t i = 0; i < t->variable_count; i++) {
    digit next;
    if (form->factor[i] == 0) continue;
    if (!digit_of(t, i, &next)) return 0;
    if (next.coordinate != coordinate || next.size == 1) continue;
    uint32_t at = count++;
    for (; at > 0 && digits[at - 1].divisor > next.divisor; at--)
      digits[at] = digits[at - 1], strides[at] = strides[at - 1];
    digits[at] = next, strides[at] = form->factor[i];
  }
  for (uint32_t i = 0; i < count; i++) {
    if (digits[i].divisor % reached != 0) return 0;
    if (!append(axis, digits[i].divisor / reached, 0) || !append(axis, digits[i].size, strides[i])) return 0;
    reached = digits[i].divisor * digits[i].size;
  }
  uint64_t size = t->space.size[coordinate];
  if (size % reached != 0 || !append(axis, size / reached, 0)) return 0;
  if (axis->count == 0) axis->count = axis->size[0] = 1;
  return 1;
}
