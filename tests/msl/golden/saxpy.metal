struct hg_saxpy_arguments {
  ulong lanes, fast_lanes;
  device uchar *fault_record, *fault_flag;
  ulong step_limit;
  device uchar *boundary, *resonance, *phase_advance;
  ulong first, block_count, first_lane, whole_lanes, total_x, total_y, grid_x, grid_y, grid_z;
  ulong reciprocal_x, reciprocal_y;
  uint block_size_x, block_size_y, block_size_z, phase, is_flat, block_lanes;
  device uchar *p0;
  ulong n0;
  device uchar *p1;
  ulong n1;
  ulong s2;
};

kernel void hg_saxpy(constant hg_saxpy_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  uint4 w0 = uint4(0);
  uint e0[4];
  uint4 w1 = uint4(0);
  uint e1[4];
  uint4 w2 = uint4(0);
  uint e2[4];
  uint v1, v2, v4;
  uint s2 = (uint(a.s2));
  uint block_lanes = 512;
  ulong base = ulong(group) * block_lanes + a.first_lane, first = base + block_lane * 4;
  bool whole = first < a.whole_lanes;
  if (!whole) {
    if (base < a.whole_lanes) return;
    first = a.whole_lanes + block_lane;
    if (first >= a.lanes) return;
  }
  if (whole) {
    w0 = *(device const uint4 *)(a.p1 + first * 4);
    w1 = *(device const uint4 *)(a.p0 + first * 4);
  } else {
    w0.x = *(device const uint *)(a.p1 + first * 4);
    w1.x = *(device const uint *)(a.p0 + first * 4);
  }
  e0[0] = w0.x;
  e0[1] = w0.y;
  e0[2] = w0.z;
  e0[3] = w0.w;
  e1[0] = w1.x;
  e1[1] = w1.y;
  e1[2] = w1.z;
  e1[3] = w1.w;
  for (uint k = 0; k < 4; k++) {
    uint go = 0;
    do {
      v1 = e0[k];
      v2 = e1[k];
      v4 = fma_f32(v2, s2, v1);
      e2[k] = v4;
      break;
    } while (false);
  }
  w2.x = e2[0];
  w2.y = e2[1];
  w2.z = e2[2];
  w2.w = e2[3];
  if (whole) {
    *(device uint4 *)(a.p1 + first * 4) = w2;
  } else {
    *(device uint *)(a.p1 + first * 4) = uint(w2.x);
  }
}

