/* make_convolution.c - convolutions along one to three axes, their transposes and the gradients of their weights, as
 * products in order C.
 *
 * The image lies amid zeros (one copy, where there are any). A view has each of its windows: [batch, channels, places
 * of windows, places in a window], of which the product reads factors in place. So K runs over (channel, place in the
 * window); of the transpose, whose windows go backwards over the image with stride - 1 zeros between elements, over
 * (output channel, place in the window); of weights over (batch, place of the window). */
#include "ops/graph/compute.h"

enum { MOST_AXES = 3, MOST_STEP = 1 << 20 };

typedef struct convolution {
  const ops_request *request;
  hg_computation *c;
  ops_product product;
  uint32_t axes;  /* along which windows move */
  int is_last;    /* channels are the last axis */
  uint64_t batch, groups, inputs, outputs; /* channels of a group */
  int64_t image[MOST_AXES], kernel[MOST_AXES], windows[MOST_AXES]; /* sizes */
  int64_t stride[MOST_AXES], low[MOST_AXES], dilation[MOST_AXES];
} convolution;

/* ---- what the call says ------------------------------------------------------------------------------------------ */

static const ops_shape *shape_of(const hg_computation *c, value_id value) { return &ops_at(c, value)->shape; }

/* A number for each axis; none: `preset` for all. */
static int take_list(const convolution *v, const char *name, const ops_item *list, int64_t least, int64_t preset,
                     int64_t *out) {
  if (list->is_all || (list->count != 0 && list->count != v->axes))
    return ops_refuse(v->request, HG_INVALID_ARGUMENT, "'%s' has %u numbers; windows move along %u axes", name,
                      (unsigned)list->count, (unsigned)v->axes),
           0;
  for (uint32_t i = 0; i < v->axes; i++) {
    out[i] = list->count != 0 ? list->integers[i] : preset;
    if (out[i] < least || out[i] > MOST_STEP)
      return ops_refuse(v->request, HG_INVALID_ARGUMENT, "'%s' has %lld; it takes %lld to %d", name, (long long)out[i],
                        (long long)least, MOST_STEP),
             0;
  }
  return 1;
}

/* The sizes of a tensor with the batch, channels and axes of an image: channels first. */
static void take_sizes(const convolution *v, const uint64_t *size, uint64_t *batch, uint64_t *channels, int64_t *out) {
  *batch = size[0];
  *channels = size[v->is_last ? v->axes + 1 : 1];
  for (uint32_t i = 0; i < v->axes; i++) out[i] = (int64_t)size[i + (v->is_last ? 1 : 2)];
}

static int take_kernel(convolution *v, const uint64_t *size) {
  for (uint32_t i = 0; i < v->axes; i++) v->kernel[i] = (int64_t)size[i + 2];
  v->outputs = size[0] / v->groups;
  v->inputs = size[1];
  if (size[0] % v->groups == 0) return 1;
  return ops_refuse(v->request, HG_INVALID_ARGUMENT, "%llu output channels in %llu groups: groups are of one size",
                    (unsigned long long)size[0], (unsigned long long)v->groups),
         0;
}

static int check_channels(const convolution *v, const char *name, uint64_t has, uint64_t of_group) {
  if (has == v->groups * of_group) return 1;
  return ops_refuse(v->request, HG_INVALID_ARGUMENT,
                    "%s has %llu channels; %llu groups of weights for %llu channels take %llu", name,
                    (unsigned long long)has, (unsigned long long)v->groups, (unsigned long long)of_group,
                    (unsigned long long)(v->groups * of_group)),
         0;
}

/* From the first element that a window covers to the last one. */
static int64_t width_of(const convolution *v, uint32_t i) { return (v->kernel[i] - 1) * v->dilation[i] + 1; }

/* How many windows lie within the image and what is around it. */
static int count_windows(convolution *v, const ops_item *highs) {
  int64_t high[MOST_AXES];
  if (!take_list(v, "high", highs, -MOST_STEP, 0, high)) return 0;
  for (uint32_t i = 0; i < v->axes; i++) {
    int64_t room = v->low[i] + v->image[i] + high[i] - width_of(v, i);
    if (v->kernel[i] == 0 || room < 0)
      return ops_refuse(v->request, HG_INVALID_ARGUMENT,
                        "along axis %u the window covers %lld elements, and the image with what is around it has %lld",
                        (unsigned)i, (long long)width_of(v, i), (long long)(room + width_of(v, i))),
             0;
    v->windows[i] = room / v->stride[i] + 1;
  }
  return 1;
}

/* The sizes that the caller gives of the result, a tensor of the same rank. */
static const ops_item *result_sizes(const convolution *v, const ops_item *list) {
  int fits = list->count == v->axes + 2 && !list->is_all;
  for (uint32_t i = 0; i < list->count && fits; i++)
    fits = list->integers[i] >= 0 && list->integers[i] <= (int64_t)OPS_MAX_ELEMENTS;
  if (fits) return list;
  ops_refuse(v->request, HG_INVALID_ARGUMENT, "'shape' has %u numbers; the result has %u sizes", (unsigned)list->count,
             (unsigned)v->axes + 2);
  return NULL;
}

static int take_steps(convolution *v, const ops_item *stride, const ops_item *low, const ops_item *dilation) {
  return take_list(v, "stride", stride, 1, 1, v->stride) && take_list(v, "low", low, -MOST_STEP, 0, v->low) &&
         take_list(v, "dilation", dilation, 1, 1, v->dilation);
}

/* The factors' types and ranks, groups, and where channels are. */
static int begin(convolution *v, const ops_request *request, const char *second, const ops_item *groups,
                 const ops_item *last) {
  hg_computation *c = request->c;
  uint32_t rank = shape_of(c, request->inputs[0])->rank;
  *v = (convolution){.request = request, .c = c, .axes = rank - 2, .is_last = last->integers[0] != 0,
                     .groups = (uint64_t)groups->integers[0],
                     .product = {.a = request->inputs[0], .b = request->inputs[1]}};
  if (rank < 3 || rank > MOST_AXES + 2 || shape_of(c, request->inputs[1])->rank != rank)
    return ops_refuse(request, HG_INVALID_ARGUMENT,
                      "%s and %s: it takes two tensors of rank 3, 4 or 5: batch, channels and one to three axes (%s)",
                      OPS_TEXT(c, request->inputs[0]), OPS_TEXT(c, request->inputs[1]), second),
           0;
  if (groups->integers[0] < 1)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%lld groups; there is one at least",
                      (long long)groups->integers[0]),
           0;
  return ops_settle_product(request, &v->product);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static value_id reshaped(hg_computation *c, value_id value, uint32_t rank, const uint64_t *sizes) {
  ops_shape shape = {.rank = rank};
  memcpy(shape.size, sizes, rank * sizeof *sizes);
  return ops_is_countable(&shape) ? ops_reshape(c, value, &shape)
                                  : ops_failed(c, HG_INVALID_ARGUMENT, "a product of more than 2^40 elements");
}
#define RESHAPED(c, value, ...) \
  reshaped(c, value, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})
#define PERMUTED(c, value, ...) ops_permute(c, value, (uint32_t[]){__VA_ARGS__})

static uint64_t count_of(const convolution *v, const int64_t *sizes) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < v->axes; i++) count *= (uint64_t)sizes[i];
  return count;
}

/* The tensor with its channels before the axes. */
static value_id channels_first(const convolution *v, value_id value) {
  uint32_t order[MOST_AXES + 2] = {0, v->axes + 1, 1, 2, 3};
  return v->is_last ? ops_permute(v->c, value, order) : value;
}

/* Zeros of these sizes along the axes, with element j of the image at low + step * j: those beyond are left out. */
static value_id amid_zeros(const convolution *v, value_id image, const int64_t *low, const int64_t *step,
                           const int64_t *sizes) {
  hg_computation *c = v->c;
  if (image == 0) return 0;
  ops_shape part = *shape_of(c, image), whole = part;
  ops_view box = {.start = {0}};
  int64_t first[HG_MAX_RANK] = {0};
  int is_dense = 1;
  box.step[0] = box.step[1] = 1;
  for (uint32_t i = 0; i < v->axes; i++) {
    int64_t count = (int64_t)part.size[i + 2], from = low[i] < 0 ? (step[i] - 1 - low[i]) / step[i] : 0;
    int64_t end = sizes[i] - low[i] <= 0 ? 0 : (sizes[i] - low[i] - 1) / step[i] + 1;
    if (end > count) end = count;
    whole.size[i + 2] = (uint64_t)sizes[i];
    part.size[i + 2] = end > from ? (uint64_t)(end - from) : 0;
    first[i + 2] = end > from ? from : 0;
    box.start[i + 2] = low[i] + from * step[i];
    box.step[i + 2] = step[i];
    is_dense &= step[i] == 1 || part.size[i + 2] <= 1;
  }
  atlas_type type = (atlas_type)ops_at(c, image)->type;
  image = ops_part_of(c, image, first, &part);
  if (image == 0 || ops_same_shape(&part, &whole)) return image;
  if (ops_count(&part) == 0) return ops_full(c, type, 0, &whole);
  if (!is_dense) return ops_update_of(c, ops_full(c, type, 0, &whole), image, &box);
  ops_node node = {.kind = OPS_PAD, .type = (uint8_t)type, .shape = whole,
                   .input = {image, ops_constant(c, type, 0)}};
  memcpy(node.view.start, box.start, sizeof box.start);
  return ops_add(c, &node);
}

/* [batch, channels, windows, places in a window]: element k of window i is at start + i * step + k * inner. */
static value_id windows_of(const convolution *v, value_id image, const int64_t *count, const int64_t *start,
                           const int64_t *step, const int64_t *inner) {
  if (image == 0) return 0;
  ops_shape shape = {.rank = 2 + 2 * v->axes};
  ops_view view = {.axis = {0, 1}, .step = {1, 1}};
  shape.size[0] = shape_of(v->c, image)->size[0], shape.size[1] = shape_of(v->c, image)->size[1];
  for (uint32_t i = 0; i < v->axes; i++) {
    uint32_t at = 2 + i, in = at + v->axes;
    view.axis[at] = view.axis[in] = (int16_t)at;
    view.start[at] = start != NULL ? start[i] : 0;
    view.step[at] = step[i], view.step[in] = inner[i];
    shape.size[at] = (uint64_t)count[i], shape.size[in] = (uint64_t)v->kernel[i];
  }
  return RESHAPED(v->c, ops_view_of(v->c, image, &view, &shape), shape.size[0], shape.size[1], count_of(v, count),
                  count_of(v, v->kernel));
}

/* What lies behind the first and the last window is not read. */
static value_id windows_forward(const convolution *v, value_id image) {
  const int64_t one[MOST_AXES] = {1, 1, 1};
  int64_t sizes[MOST_AXES];
  for (uint32_t i = 0; i < v->axes; i++) sizes[i] = (v->windows[i] - 1) * v->stride[i] + width_of(v, i);
  return windows_of(v, amid_zeros(v, channels_first(v, image), v->low, one, sizes), v->windows, NULL, v->stride,
                    v->dilation);
}

/* For each element of the image, the windows that it is in. */
static value_id windows_back(const convolution *v, value_id image) {
  const int64_t one[MOST_AXES] = {1, 1, 1};
  int64_t sizes[MOST_AXES], low[MOST_AXES], start[MOST_AXES], inner[MOST_AXES];
  for (uint32_t i = 0; i < v->axes; i++) {
    start[i] = width_of(v, i) - 1;
    low[i] = start[i] - v->low[i];
    inner[i] = -v->dilation[i];
    sizes[i] = v->image[i] + start[i];
  }
  return windows_of(v, amid_zeros(v, channels_first(v, image), low, v->stride, sizes), v->image, start, one, inner);
}

/* Windows by weights [groups, rows, K]: K is (channel, place in the window). `places` are the result's sizes. */
static value_id multiply(const convolution *v, value_id windows, value_id weights, uint64_t channels, uint64_t rows,
                         const int64_t *places) {
  hg_computation *c = v->c;
  uint64_t n = v->batch, g = v->groups, m = count_of(v, places), in = count_of(v, v->kernel), k = channels * in;
  uint64_t size[HG_MAX_RANK] = {n, g * rows};
  windows = RESHAPED(c, windows, n, g, channels, m, in);
  if (!v->is_last) {
    windows = RESHAPED(c, PERMUTED(c, windows, 0, 1, 2, 4, 3), n * g, k, m);
    weights = RESHAPED(c, weights, 1, g, rows, k);
    ops_shape all = {.rank = 4, .size = {n, g, rows, k}};
    weights = RESHAPED(c, ops_broadcast(c, weights, &all), n * g, rows, k);
    for (uint32_t i = 0; i < v->axes; i++) size[i + 2] = (uint64_t)places[i];
    return reshaped(c, ops_product_of(c, &v->product, weights, windows), v->axes + 2, size);
  }
  windows = RESHAPED(c, PERMUTED(c, windows, 1, 0, 3, 2, 4), g, n * m, k);
  value_id result = ops_product_of(c, &v->product, windows, PERMUTED(c, weights, 0, 2, 1));
  if (g > 1) result = PERMUTED(c, RESHAPED(c, result, g, n * m, rows), 1, 0, 2);
  for (uint32_t i = 0; i < v->axes; i++) size[i + 1] = (uint64_t)places[i];
  size[v->axes + 1] = g * rows;
  return reshaped(c, result, v->axes + 2, size);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static value_id forward(const ops_request *request) {
  const ops_item *a = request->arguments;
  convolution v;
  uint64_t channels, batch, sized;
  int64_t wanted[MOST_AXES] = {0};
  if (!begin(&v, request, "w: output channels, channels of a group, axes", &a[4], &a[5])) return 0;
  take_sizes(&v, shape_of(v.c, v.product.a)->size, &v.batch, &channels, v.image);
  if (!take_kernel(&v, shape_of(v.c, v.product.b)->size) || !check_channels(&v, "x", channels, v.inputs) ||
      !take_steps(&v, &a[0], &a[1], &a[3]))
    return 0;
  if (a[6].count == 0) {
    if (!count_windows(&v, &a[2])) return 0;
  } else {
    if (result_sizes(&v, &a[6]) == NULL) return 0;
    take_sizes(&v, (const uint64_t *)a[6].integers, &batch, &sized, wanted);
    memcpy(v.windows, wanted, sizeof wanted);
  }
  value_id weights = RESHAPED(v.c, v.product.b, v.groups, v.outputs, v.inputs * count_of(&v, v.kernel));
  return multiply(&v, windows_forward(&v, v.product.a), weights, v.inputs, v.outputs, v.windows);
}

static value_id back(const ops_request *request) {
  const ops_item *a = request->arguments;
  convolution v;
  uint64_t channels, batch, sized;
  if (!begin(&v, request, "w: channels of v, channels of a group of the result, axes", &a[4], &a[5])) return 0;
  take_sizes(&v, shape_of(v.c, v.product.a)->size, &v.batch, &channels, v.windows);
  if (!take_kernel(&v, shape_of(v.c, v.product.b)->size) || !check_channels(&v, "v", channels, v.outputs) ||
      !take_steps(&v, &a[1], &a[2], &a[3]) || result_sizes(&v, &a[0]) == NULL)
    return 0;
  take_sizes(&v, (const uint64_t *)a[0].integers, &batch, &sized, v.image);
  uint64_t in = count_of(&v, v.kernel);
  value_id weights = PERMUTED(v.c, RESHAPED(v.c, v.product.b, v.groups, v.outputs, v.inputs, in), 0, 2, 1, 3);
  weights = RESHAPED(v.c, weights, v.groups, v.inputs, v.outputs * in);
  return multiply(&v, windows_back(&v, v.product.a), weights, v.outputs, v.inputs, v.image);
}

static value_id weights(const ops_request *request) {
  const ops_item *a = request->arguments;
  convolution v;
  uint64_t channels, outputs, batch, size[HG_MAX_RANK] = {0};
  if (!begin(&v, request, "v: batch, output channels, axes", &a[4], &a[5])) return 0;
  hg_computation *c = v.c;
  take_sizes(&v, shape_of(c, v.product.a)->size, &v.batch, &channels, v.image);
  take_sizes(&v, shape_of(c, v.product.b)->size, &batch, &outputs, v.windows);
  if (!take_steps(&v, &a[1], &a[2], &a[3]) || result_sizes(&v, &a[0]) == NULL) return 0;
  for (uint32_t i = 0; i < v.axes + 2; i++) size[i] = (uint64_t)a[0].integers[i];
  if (!take_kernel(&v, size) || !check_channels(&v, "x", channels, v.inputs) ||
      !check_channels(&v, "v", outputs, v.outputs))
    return 0;
  if (batch != v.batch)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s and %s: batches of two sizes", OPS_TEXT(c, v.product.a),
                      OPS_TEXT(c, v.product.b));
  uint64_t m = count_of(&v, v.windows), in = count_of(&v, v.kernel), k = v.batch * m;
  value_id left = RESHAPED(c, channels_first(&v, v.product.b), v.batch, v.groups, v.outputs, m);
  left = RESHAPED(c, PERMUTED(c, left, 1, 2, 0, 3), v.groups, v.outputs, k);
  value_id right = RESHAPED(c, windows_forward(&v, v.product.a), v.batch, v.groups, v.inputs, m, in);
  right = RESHAPED(c, PERMUTED(c, right, 1, 0, 3, 2, 4), v.groups, k, v.inputs * in);
  return reshaped(c, ops_product_of(c, &v.product, left, right), v.axes + 2, size);
}

value_id ops_make_convolution(const ops_request *request) {
  switch (request->row->op) {
    case HG_OP_convolution_back: return back(request);
    case HG_OP_convolution_weights: return weights(request);
    default: return forward(request);
  }
}
