/* contract_pack.c - see contract_pack.h. Lanes along a list are runs, each with one stride; for K the distance of each
 * element from the first one is counted in the list's parts. */
#include "backend/cpu/contract/contract_pack.h"

#include "atlas/tables.h"

enum { CHUNK = 256 };

int hg_contract_has_lists(const hg_contraction *c) {
  for (int i = 0; i < 3; i++)
    if (c->a_axis[i].count + c->b_axis[i].count != 0) return 1;
  return 0;
}

static int64_t place_of(const hg_axis *axis, int64_t stride, uint64_t number) {
  int64_t place = 0;
  if (axis->count == 0) return (int64_t)number * stride;
  for (uint64_t i = 0; i < axis->count; i++, number /= axis->size[i - 1])
    place += (int64_t)(number % axis->size[i]) * axis->stride[i];
  return place;
}

static uint32_t find_runs(const contract_factor *f, const contract_part *part, contract_run *runs) {
  uint32_t count = 0;
  for (uint32_t lane = 0; lane < part->used; lane += runs[count++].count) {
    uint64_t number = part->first + lane, left = part->used - lane;
    uint64_t inside = f->lane->count == 0 ? left : f->lane->size[0] - number % f->lane->size[0];
    runs[count] = (contract_run){lane, (uint32_t)(inside < left ? inside : left),
                                 place_of(f->lane, f->lane_stride, number)};
  }
  return count;
}

static void find_places(const contract_factor *f, uint64_t first, uint64_t count, int64_t *places) {
  uint64_t digit[HG_AXIS_PARTS] = {0}, number = first;
  int64_t place = place_of(f->k, f->k_stride, first);
  for (uint64_t i = 0; i < f->k->count; i++, number /= f->k->size[i - 1]) digit[i] = number % f->k->size[i];
  for (uint64_t k = 0; k < count; k++) {
    places[k] = place;
    place += f->k_stride;
    for (uint64_t i = 0; i < f->k->count && ++digit[i] == f->k->size[i]; i++) { /* carries */
      digit[i] = 0;
      place -= (int64_t)f->k->size[i] * f->k->stride[i];
      if (i + 1 < f->k->count) place += f->k->stride[i + 1];
    }
  }
}

void hg_contract_pack(contract_pack *pack, uint32_t size, const contract_factor *f, const contract_part *part,
                      uint8_t *to) {
  int64_t places[CHUNK], at = place_of(f->batch, f->batch_stride, part->item), bytes = (int64_t)atlas_bytes(f->type);
  contract_run runs[CONTRACT_MAX_COLUMNS];
  contract_source source = {.lane_stride = f->lane_stride, .k_stride = f->k_stride, .type = f->type};
  if (f->lane->count == 0 && f->k->count == 0) {
    at += (int64_t)part->first * f->lane_stride + (int64_t)part->from_k * f->k_stride;
    source.from = f->from + at * bytes;
    pack(to, part->width, part->used, part->count, &source);
    return;
  }
  source.from = f->from + at * bytes;
  source.runs = runs, source.places = places;
  source.run_count = find_runs(f, part, runs);
  for (uint64_t done = 0; done < part->count; done += CHUNK) {
    uint64_t count = part->count - done < CHUNK ? part->count - done : CHUNK;
    find_places(f, part->from_k + done, count, places);
    pack(to + done * part->width * size, part->width, part->used, count, &source);
  }
}
