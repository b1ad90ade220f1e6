struct hg_strided_arguments {
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
  ulong s3;
};

constant ulong hg_strided_sites[] = {
  0x1ul, 0x5ul, 0x700000000ul, 0x2ul,
  0x1ul, 0x6ul, 0x700000000ul, 0x3ul,
  0x1ul, 0x3ul, 0x700000000ul, 0x0ul,
  0x1ul, 0x4ul, 0x700000000ul, 0x1ul,
  0x1ul, 0x10000000dul, 0x800000000ul, 0x0ul,
};

kernel void hg_strided(constant hg_strided_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  uint fault = 0;
  ulong fault_index = 0, fault_extent = 0;
  uint v1, v4, v5, v6, v7, v8, v9, v10, v12, v16, v17, v18;
  uint v19, v20;
  bool v14;
  uint s2 = (uint(a.s2));
  uint s3 = (uint(a.s3));
  ulong lane = (ulong(group) + a.first) * 256 + block_lane;
  if (lane >= a.lanes) return;
  uint go = 0;
  do {
    v1 = uint(lane);
    v4 = v1;
    v5 = 0u;
    v6 = s2;
    while (true) {
      {
        ulong i0 = ulong(v4);
        bool fits = true;
        fits = fits && i0 + 0x3ul < a.n0;
        fits = fits && ((ulong(a.p0) + i0 * 4) & 15) == 0;
        if (fits) {
          uint4 q9 = *(device const uint4 *)(a.p0 + i0 * 4);
          v9 = q9.x;
          v10 = q9.y;
          v7 = q9.z;
          v8 = q9.w;
        } else {
          v7 = 0;
          {
            ulong i = ulong(v4), n = a.n0, e = i + 0x2ul;
            if (e >= n) {
              if (fault == 0) {
                fault = 1;
                fault_index = i;
                fault_extent = n;
              }
            } else {
              v7 = *(device const uint *)(a.p0 + e * 4);
            }
          }
          v8 = 0;
          {
            ulong i = ulong(v4), n = a.n0, e = i + 0x3ul;
            if (e >= n) {
              if (fault == 0) {
                fault = 2;
                fault_index = i;
                fault_extent = n;
              }
            } else {
              v8 = *(device const uint *)(a.p0 + e * 4);
            }
          }
          v9 = 0;
          {
            ulong i = ulong(v4), n = a.n0, e = i + 0x0ul;
            if (e >= n) {
              if (fault == 0) {
                fault = 3;
                fault_index = i;
                fault_extent = n;
              }
            } else {
              v9 = *(device const uint *)(a.p0 + e * 4);
            }
          }
          v10 = 0;
          {
            ulong i = ulong(v4), n = a.n0, e = i + 0x1ul;
            if (e >= n) {
              if (fault == 0) {
                fault = 4;
                fault_index = i;
                fault_extent = n;
              }
            } else {
              v10 = *(device const uint *)(a.p0 + e * 4);
            }
          }
        }
      }
      v17 = add_f32(v9, v10);
      v18 = add_f32(v7, v8);
      v19 = add_f32(v17, v18);
      v20 = add_f32(v5, v19);
      v16 = v4 + s3;
      v12 = v6 + 0xffffffffu;
      v14 = v12 == 0u;
      if (v14) {
        {
          ulong i = lane, n = a.n1, e = i + 0x0ul;
          if (e >= n) {
            if (fault == 0) {
              fault = 5;
              fault_index = i;
              fault_extent = n;
            }
          } else {
            *(device uint *)(a.p1 + e * 4) = uint(v20);
          }
        }
        go = 1;
        break;
      } else {
        v4 = v16;
        v5 = v20;
        v6 = v12;
        continue;
      }
      break;
    }
    if (go == 1) {
      go = 0;
      break;
    }
  } while (false);
  if (fault != 0) keep_fault(a.fault_record, a.fault_flag, lane, fault_index, fault_extent, hg_strided_sites + 4 * (fault - 1));
}

