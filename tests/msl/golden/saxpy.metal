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

constant ulong hg_saxpy_sites[] = {
  0x1ul, 0x100000001ul, 0x800000000ul, 0x0ul,
  0x1ul, 0x0ul, 0x800000000ul, 0x0ul,
  0x1ul, 0x100000004ul, 0x800000000ul, 0x0ul,
};

kernel void hg_saxpy(constant hg_saxpy_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  uint fault = 0;
  ulong fault_index = 0, fault_extent = 0;
  uint v1, v2, v4;
  uint s2 = (uint(a.s2));
  ulong lane = (ulong(group) + a.first) * 256ul + block_lane;
  if (lane >= a.lanes) return;
  uint go = 0;
  do {
    v1 = 0;
    {
      ulong i = lane, n = a.n1, e = i + 0x0ul;
      if (e >= n) {
        if (fault == 0) {
          fault = 1;
          fault_index = i;
          fault_extent = n;
        }
      } else {
        v1 = *(device const uint *)(a.p1 + e * 4);
      }
    }
    v2 = 0;
    {
      ulong i = lane, n = a.n0, e = i + 0x0ul;
      if (e >= n) {
        if (fault == 0) {
          fault = 2;
          fault_index = i;
          fault_extent = n;
        }
      } else {
        v2 = *(device const uint *)(a.p0 + e * 4);
      }
    }
    v4 = fma_f32(v2, s2, v1);
    {
      ulong i = lane, n = a.n1, e = i + 0x0ul;
      if (e >= n) {
        if (fault == 0) {
          fault = 3;
          fault_index = i;
          fault_extent = n;
        }
      } else {
        *(device uint *)(a.p1 + e * 4) = uint(v4);
      }
    }
    break;
  } while (false);
  if (fault != 0) keep_fault(a.fault_record, a.fault_flag, lane, fault_index, fault_extent, hg_saxpy_sites + 4 * (fault - 1));
}

