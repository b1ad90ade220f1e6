/* plan.c - cuts a computation into launches.
 *
 * Every live node that does work belongs to a cluster, which one launch computes, or is inline: every cluster that
 * reads it computes it again. Views, reshapes, constants and coordinates are always inline. A node is inline, too, if
 * its users read each of its elements about once. The other nodes, from the inputs on, join the cluster of something
 * they read if shapes and dependences allow it. What is read outside its cluster, and every output, lies in a storage.
 * A cluster that no launch can hold is split when its turn comes. */
#include "ops/plan/planner.h"
#include "ops/graph/ops_tuning.h"

#include <stdio.h>

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Collects the cluster's nodes and what it has inline, from the nodes that the walk begins with. */
static hg_status collect(planner *p, uint32_t number, hg_array *nodes) {
  uint32_t i;
  while (hg_walk_next(p, &i)) {
    int is_own = p->cluster_of[i] == number + 1, is_storage = p->storage_of[i] != 0 && !is_own;
    if (node_at(p, i)->kind == OPS_INPUT || is_storage) continue;
    HG_TRY(hg_walk_into(p, i));
    if (!hg_array_push(&p->plan->allocator, nodes, i + 1)) return hg_fail_memory("a plan", nodes->count);
  }
  return HG_OK;
}

/* Radix sort by the bytes of the values that differ, lowest byte first; `room` has space for as many values. */
static void sort_by_bytes(uint32_t *values, uint32_t *room, size_t count) {
  uint32_t *from = values, *to = room;
  for (uint32_t shift = 0; shift < 32; shift += 8) {
    size_t places[257] = {0};
    for (size_t i = 0; i < count; i++) places[(from[i] >> shift & 255) + 1]++;
    if (places[(from[0] >> shift & 255) + 1] == count) continue;
    for (uint32_t k = 0; k < 256; k++) places[k + 1] += places[k];
    for (size_t i = 0; i < count; i++) to[places[from[i] >> shift & 255]++] = from[i];
    uint32_t *sorted = to;
    to = from, from = sorted;
  }
  if (from != values) memcpy(values, from, count * sizeof *values);
}

static hg_status sort_values(const hg_allocator *allocator, value_id *values, size_t count) {
  if (count > OPS_FEW_SORTED) {
    uint32_t *room = hg_allocate_unset(allocator, count, sizeof *room);
    if (room == NULL) return hg_fail_memory("a plan", count);
    sort_by_bytes(values, room, count);
    hg_release(allocator, room);
    return HG_OK;
  }
  for (size_t i = 1; i < count; i++) {
    value_id value = values[i];
    size_t at = i;
    for (; at > 0 && values[at - 1] > value; at--) values[at] = values[at - 1];
    values[at] = value;
  }
  return HG_OK;
}

/* By kind of node: the writer of the launch that such a node has to itself. */
#define ops_write_none NULL
static hg_status (*const alone[OPS_NODE_KINDS])(const ops_group *group) = {
#define OPS_NODE_KIND(id, name, inputs, results, work, passes, is, has, term, flow, launch, batch) \
  [OPS_##id] = ops_write_##launch,
#include "ops/graph/kinds.def"
#undef OPS_NODE_KIND
};
#undef ops_write_none

static hg_status write_group(const planner *p, const ops_group *group) {
  const ops_node *first = ops_at(p->c, ops_first_result(p->c, group->results[0]));
  uint32_t number = p->cluster_of[group->results[0] - 1] - 1;
  uint8_t kind = ((const cluster *)p->clusters.data)[number].kind;
  if (kind == MAP) return ops_write_map(group);
  if (kind == ROWS) return ops_write_rows(group);
  if (kind == CONTRACTION) return ops_write_contract(group);
  if (alone[first->kind] != NULL) return alone[first->kind](group);
  return hg_fail(HG_UNSUPPORTED, "operations of kind %d are not there yet", first->kind);
}

/* The least bytes that a launch moves: each tensor that it reads, and each that it writes, once. */
static void count_bytes(const ops_plan *plan, ops_step *step) {
  const atlas_symbol *symbols = atlas_program_symbols(step->program, NULL);
  for (uint32_t i = 0; i < step->binding_count; i++) {
    const ops_storage *storage = (const ops_storage *)plan->storages.data + step->bindings[i].storage;
    uint64_t bytes = (uint64_t)storage->extent * atlas_type_bits((atlas_type)storage->type) / 8;
    if (symbols[step->bindings[i].slot].access & ATLAS_IN) step->bytes_read += bytes;
    if (step->box_elements != 0) bytes = step->box_elements * atlas_type_bits((atlas_type)storage->type) / 8;
    if (symbols[step->bindings[i].slot].access & ATLAS_OUT) step->bytes_written += bytes;
  }
}

/* Takes over what a writer has made: the plan's values from first_value on. */
static hg_status take_steps(planner *p, uint32_t first_value, hg_status status) {
  ops_plan *plan = p->plan;
  ops_step *steps = plan->made.data;
  size_t taken = 0;
  for (; taken < plan->made.count && status == HG_OK; taken++) {
    ops_step *step = &steps[taken];
    if (step->program == NULL) continue;
    step->first_value = first_value;
    step->value_count = (uint32_t)plan->values.count - first_value;
    count_bytes(plan, step);
    if (p->note != NULL && step->note[0] == '\0') snprintf(step->note, sizeof step->note, "%s", p->note);
    status = ops_add_step(plan, step);
    if (status != HG_OK) break;
  }
  ops_drop_steps(plan, taken);
  plan->made.count = 0;
  return status;
}

/* Writes one launch for these groups; or for the parts of a group, one launch after another. */
static hg_status add_steps(planner *p, const ops_group *groups, uint32_t count) {
  uint32_t first_value = (uint32_t)p->plan->values.count;
  hg_status status = count == 1 ? write_group(p, groups) : ops_write_maps(groups, count);
  for (uint32_t i = 0; i < count && status == HG_OK; i++)
    if (hg_array_append(&p->plan->allocator, &p->plan->values, groups[i].nodes, groups[i].node_count) == NULL)
      status = hg_fail_memory("a plan", groups[i].node_count);
  return take_steps(p, first_value, status);
}

/* Makes the group of a cluster's nodes. */
static hg_status gather_group(planner *p, uint32_t number, const uint32_t *own, uint32_t own_count, ops_group *group) {
  const hg_allocator *allocator = &p->plan->allocator;
  hg_array nodes = {.element_size = sizeof(value_id)}, results = {.element_size = sizeof(value_id)};
  hg_status status = HG_OK;
  hg_walk_begin(p);
  for (uint32_t i = 0; i < own_count && status == HG_OK; i++) {
    value_id value = own[i] + 1;
    status = hg_walk_push(p, own[i]);
    if (status == HG_OK) status = collect(p, number, &nodes);
    if (status == HG_OK && p->storage_of[own[i]] != 0 && hg_array_append(allocator, &results, &value, 1) == NULL)
      status = hg_fail_memory("a plan", sizeof value);
  }
  if (status == HG_OK) status = sort_values(allocator, nodes.data, nodes.count);
  *group = (ops_group){.computation = p->c, .plan = p->plan, .nodes = nodes.data, .node_count = (uint32_t)nodes.count,
                       .storage_of = p->storage_of, .results = results.data, .result_count = (uint32_t)results.count};
  return status;
}

static void drop_group(const hg_allocator *allocator, ops_group *group) {
  hg_release(allocator, (void *)group->nodes);
  hg_release(allocator, (void *)group->results);
}

/* A cluster that waits to be written, and is split if no launch can hold it. */
typedef struct part {
  uint32_t number, count, *nodes; /* the cluster's own nodes, in the part's memory */
  char note[sizeof((ops_step *)0)->note]; /* why it is a part of a split cluster; "": it is not */
} part;

static hg_status push_part(const hg_allocator *allocator, hg_array *parts, uint32_t number, const uint32_t *nodes,
                           uint32_t count, const char *note) {
  part *added = hg_array_append(allocator, parts, NULL, 1);
  uint32_t *own = added != NULL ? hg_allocate_unset(allocator, count, sizeof *own) : NULL;
  if (own == NULL) return hg_fail_memory("a plan", count);
  memcpy(own, nodes, count * sizeof *own);
  added->number = number, added->count = count, added->nodes = own;
  snprintf(added->note, sizeof added->note, "%s", note);
  return HG_OK;
}

/* Replaces a part that no launch can hold by its halves; the first comes off the stack first. */
static hg_status push_halves(planner *p, hg_array *parts, const part *whole) {
  const hg_allocator *allocator = &p->plan->allocator;
  char note[sizeof whole->note];
  plan_parts halves = {.count = 0};
  snprintf(note, sizeof note, "a part: %s", hg_last_error());
  hg_status status = hg_plan_split(p, whole->number, whole->nodes, whole->count, &halves);
  for (uint32_t end = halves.count, first; end > 0 && status == HG_OK; end = first) {
    for (first = end - 1; first > 0 && halves.numbers[first - 1] == halves.numbers[end - 1];) first--;
    status = push_part(allocator, parts, halves.numbers[first], halves.nodes + first, end - first, note);
  }
  hg_release(allocator, halves.nodes);
  return status;
}

static hg_status write_part(planner *p, hg_array *parts, const part *own) {
  ops_group group;
  p->note = own->note[0] != '\0' ? own->note : NULL;
  hg_status status = gather_group(p, own->number, own->nodes, own->count, &group);
  if (status == HG_OK && group.result_count > 0) status = add_steps(p, &group, 1);
  drop_group(&p->plan->allocator, &group);
  p->note = NULL;
  return status == HG_UNSUPPORTED ? push_halves(p, parts, own) : status;
}

/* Writes the launch of a cluster, or those of its parts. */
static hg_status write_cluster(planner *p, uint32_t number, const uint32_t *nodes, uint32_t count) {
  const hg_allocator *allocator = &p->plan->allocator;
  hg_array parts = {.element_size = sizeof(part)};
  hg_status status = push_part(allocator, &parts, number, nodes, count, "");
  while (parts.count > 0) {
    part own = ((const part *)parts.data)[--parts.count];
    if (status == HG_OK) status = write_part(p, &parts, &own);
    hg_release(allocator, own.nodes);
  }
  hg_array_release(allocator, &parts);
  return status;
}

static const uint32_t *own_nodes(const plan_listing *nodes_of, uint32_t number, uint32_t *count) {
  uint32_t first = nodes_of->first[number + 1];
  *count = nodes_of->first[number + 2] - first;
  return nodes_of->sorted + first;
}

/* Writes the launch of several clusters; if they are too many for one, two launches. */
static hg_status write_clusters(planner *p, const uint32_t *own, const ops_group *groups, uint32_t count,
                                const plan_listing *nodes_of) {
  uint32_t node_count;
  if (count == 1) {
    const uint32_t *nodes = own_nodes(nodes_of, own[0], &node_count);
    return write_cluster(p, own[0], nodes, node_count);
  }
  hg_status status = add_steps(p, groups, count);
  if (status != HG_UNSUPPORTED) return status;
  HG_TRY(write_clusters(p, own, groups, count / 2, nodes_of));
  return write_clusters(p, own + count / 2, groups + count / 2, count - count / 2, nodes_of);
}

/* Writes the launch of these clusters, which belong together. */
static hg_status write_launch(planner *p, uint32_t *own, uint32_t own_count, const plan_listing *nodes_of) {
  const hg_allocator *allocator = &p->plan->allocator;
  if (own_count == 1) return write_clusters(p, own, NULL, 1, nodes_of);
  uint32_t count = 0, node_count;
  ops_group *groups = hg_allocate(allocator, own_count, sizeof *groups);
  if (groups == NULL) return hg_fail_memory("a plan", own_count);
  hg_status status = HG_OK;
  for (uint32_t i = 0; i < own_count && status == HG_OK; i++) {
    const uint32_t *nodes = own_nodes(nodes_of, own[i], &node_count);
    status = gather_group(p, own[i], nodes, node_count, &groups[count]);
    own[count] = own[i];
    if (groups[count].result_count != 0) count++;
    else drop_group(allocator, &groups[count]);
  }
  if (status == HG_OK && count > 0) status = write_clusters(p, own, groups, count, nodes_of);
  while (count-- > 0) drop_group(allocator, &groups[count]);
  hg_release(allocator, groups);
  return status;
}

/* A cluster that comes after another one has more clusters before it: the other one's, and the other one itself. So
 * their number orders the clusters. */
static hg_status write_in_order(planner *p, uint32_t *keys, plan_listing *order, plan_listing *members,
                                plan_listing *nodes_of) {
  uint32_t count = (uint32_t)p->clusters.count;
  for (uint32_t i = 0; i < count; i++) keys[i] = hg_set_count(&p->sets, cluster_at(p, i)->before);
  hg_plan_sort(keys, count, count + 1, order);
  hg_plan_sort(p->launch_of, count, count, members);
  hg_plan_sort(p->cluster_of, p->node_count, count + 1, nodes_of);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t launch = order->sorted[i], first = members->first[launch];
    if (p->launch_of[launch] != launch) continue;
    HG_TRY(write_launch(p, members->sorted + first, members->first[launch + 1] - first, nodes_of));
    HG_TRY(hg_patience_ask(p->plan->target.patience));
  }
  return HG_OK;
}

static hg_status write_steps(planner *p) {
  const hg_allocator *allocator = &p->plan->allocator;
  uint64_t count = p->clusters.count, n = p->node_count;
  uint32_t *keys = hg_allocate(allocator, 6 * count + n + 5, sizeof *keys);
  if (keys == NULL) return hg_fail_memory("a plan", n);
  plan_listing order = {.sorted = keys + count, .first = keys + 2 * count};
  plan_listing members = {.sorted = order.first + count + 2, .first = order.first + 2 * count + 2};
  plan_listing nodes_of = {.first = members.first + count + 1, .sorted = members.first + 2 * count + 3};
  hg_status status = write_in_order(p, keys, &order, &members, &nodes_of);
  hg_release(allocator, keys);
  return status;
}

/* ---- copies: what is put out twice, and inputs that are put out or updated --------------------------------------- */

static hg_status add_copy(planner *p, uint32_t from, uint32_t to) {
  return take_steps(p, (uint32_t)p->plan->values.count, ops_write_copy(p->plan, from, to));
}

/* Copies inputs at the beginning, while they still have their old values: those that are outputs, and those that other
 * inputs will hold. */
static hg_status copy_inputs(planner *p) {
  const ops_output *outputs = p->c->outputs.data;
  const ops_input *inputs = p->c->inputs.data;
  for (uint32_t i = 0; i < p->c->outputs.count; i++)
    if (is_input(p, outputs[i].value))
      HG_TRY(add_copy(p, p->storage_of[outputs[i].value - 1] - 1, p->first_output + i));
  for (uint32_t i = 0; i < p->c->inputs.count; i++) {
    if (inputs[i].update == 0 || !is_input(p, inputs[i].update) || inputs[i].update == inputs[i].value) continue;
    uint32_t own = p->storage_of[inputs[i].update - 1];
    p->storage_of[inputs[i].update - 1] = 0;
    hg_status status = hg_plan_give_storage(p, inputs[i].update - 1);
    p->kept[i] = p->storage_of[inputs[i].update - 1];
    p->storage_of[inputs[i].update - 1] = own;
    HG_TRY(status);
    HG_TRY(add_copy(p, own - 1, p->kept[i] - 1));
  }
  return HG_OK;
}

static hg_status copy_results(planner *p) {
  const ops_output *outputs = p->c->outputs.data;
  const ops_input *inputs = p->c->inputs.data;
  for (uint32_t i = 0; i < p->c->outputs.count; i++) {
    uint32_t lies = p->storage_of[outputs[i].value - 1] - 1;
    if (!is_input(p, outputs[i].value) && lies != p->first_output + i) HG_TRY(add_copy(p, lies, p->first_output + i));
  }
  for (uint32_t i = 0; i < p->c->inputs.count; i++) {
    if (inputs[i].update == 0 || inputs[i].update == inputs[i].value) continue;
    uint32_t lies = p->kept[i] != 0 ? p->kept[i] : p->storage_of[inputs[i].update - 1];
    uint32_t own = p->storage_of[inputs[i].value - 1];
    if (lies != own) HG_TRY(add_copy(p, lies - 1, own - 1));
  }
  return HG_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static uint64_t count_inputs(const planner *p) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < p->node_count; i++) count += node_at(p, i)->input_count;
  return count;
}

static void list_users(planner *p) {
  uint32_t *first = p->first_user + 1; /* by node: where the next user is entered while the lists are filled */
  for (uint32_t i = 0; i < p->node_count; i++)
    for (uint32_t j = 0; j < node_at(p, i)->input_count; j++) first[node_at(p, i)->input[j]]++;
  for (uint32_t i = 0; i < p->node_count; i++) first[i + 1] += first[i];
  for (uint32_t i = 0; i < p->node_count; i++)
    for (uint32_t j = 0; j < node_at(p, i)->input_count; j++) p->users[first[node_at(p, i)->input[j] - 1]++] = i;
}

static hg_status make_planner(planner *p) {
  const hg_allocator *allocator = &p->plan->allocator;
  uint64_t n = p->node_count + 1u;
  p->live = hg_allocate(allocator, n, 1);
  p->is_inline = hg_allocate(allocator, n, 1);
  p->boxes = hg_allocate(allocator, n, 1);
  p->ends = hg_allocate(allocator, n, 1);
  p->uses = hg_allocate(allocator, n, sizeof *p->uses);
  p->reads = hg_allocate(allocator, n, sizeof *p->reads);
  p->places = hg_allocate(allocator, n, sizeof *p->places);
  p->copies = hg_allocate(allocator, n, sizeof *p->copies);
  p->cluster_of = hg_allocate(allocator, n, sizeof *p->cluster_of);
  p->storage_of = hg_allocate(allocator, n, sizeof *p->storage_of);
  p->next_node = hg_allocate(allocator, n, sizeof *p->next_node);
  p->stamp = hg_allocate(allocator, PLAN_WAYS * n, sizeof *p->stamp);
  p->first_user = hg_allocate(allocator, n + 1, sizeof *p->first_user);
  p->users = hg_allocate(allocator, count_inputs(p) + 1, sizeof *p->users);
  p->kept = hg_allocate(allocator, p->c->inputs.count, sizeof *p->kept);
  p->clusters.element_size = sizeof(cluster);
  p->stack.element_size = sizeof(uint32_t);
  p->edges.element_size = 2 * sizeof(uint32_t);
  if (p->live == NULL || p->is_inline == NULL || p->boxes == NULL || p->ends == NULL || p->first_user == NULL ||
      p->users == NULL || p->uses == NULL || p->reads == NULL || p->cluster_of == NULL || p->places == NULL ||
      p->copies == NULL || p->storage_of == NULL || p->next_node == NULL || p->stamp == NULL || p->kept == NULL)
    return hg_fail_memory("a plan", n);
  list_users(p);
  return hg_sets_begin(&p->sets, allocator, p->node_count);
}

static void drop_planner(planner *p) {
  const hg_allocator *allocator = &p->plan->allocator;
  hg_release(allocator, p->live);
  hg_release(allocator, p->is_inline);
  hg_release(allocator, p->boxes);
  hg_release(allocator, p->ends);
  hg_release(allocator, p->first_user);
  hg_release(allocator, p->users);
  hg_release(allocator, p->uses);
  hg_release(allocator, p->reads);
  hg_release(allocator, p->places);
  hg_release(allocator, p->copies);
  hg_release(allocator, p->cluster_of);
  hg_release(allocator, p->storage_of);
  hg_release(allocator, p->next_node);
  hg_release(allocator, p->next_member);
  hg_release(allocator, p->place);
  hg_release(allocator, p->launch_of);
  hg_release(allocator, p->stamp);
  hg_release(allocator, p->kept);
  hg_array_release(allocator, &p->stack);
  hg_array_release(allocator, &p->edges);
  hg_array_release(allocator, &p->clusters);
  hg_sets_release(&p->sets);
}

static hg_status plan_all(planner *p) {
  HG_TRY(make_planner(p));
  HG_TRY(hg_plan_choose_inline(p));
  HG_TRY(hg_plan_clusters(p));
  HG_TRY(hg_plan_storages(p));
  HG_TRY(hg_plan_join(p));
  HG_TRY(copy_inputs(p));
  HG_TRY(write_steps(p));
  HG_TRY(copy_results(p));
  return hg_plan_workspace(p->plan);
}

hg_status ops_plan_computation(const hg_allocator *allocator, const hg_computation *computation, uint32_t flags,
                               const ops_target *target, ops_plan *plan) {
  memset(plan, 0, sizeof *plan);
  plan->allocator = *allocator;
  plan->storages.element_size = sizeof(ops_storage);
  plan->steps.element_size = plan->made.element_size = sizeof(ops_step);
  plan->values.element_size = sizeof(value_id);
  plan->programs.element_size = sizeof(uint32_t);
  plan->target = *target;
  plan->for_gpu = target->for_gpu != 0;
  planner p;
  memset(&p, 0, sizeof p);
  p.c = computation, p.plan = plan, p.flags = flags, p.node_count = (uint32_t)computation->nodes.count;
  hg_status status = plan_all(&p);
  drop_planner(&p);
  plan->target.patience = NULL, plan->target.expected = NULL;
  hg_array_release(allocator, &plan->made);
  if (status != HG_OK) ops_plan_release(plan);
  return status;
}
