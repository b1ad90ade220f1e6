struct hg_column_sum_arguments {
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

constant ulong hg_column_sum_sites[] = {
  0x1ul, 0xaul, 0x700000000ul, 0x0ul,
  0x1ul, 0xcul, 0x700000000ul, 0x0ul,
  0x1ul, 0x8ul, 0x700000000ul, 0x0ul,
  0x1ul, 0xeul, 0x700000000ul, 0x0ul,
  0x4ul, 0xffffffff00000015ul, 0x400000000ul, 0x0ul,
  0x1ul, 0x100000019ul, 0x800000000ul, 0x0ul,
};

kernel void hg_column_sum(constant hg_column_sum_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  uint fault = 0;
  ulong fault_index = 0, fault_extent = 0;
  uint v3, v4, v5, v6, v7, v8, v9, v13, v14, v15, v16, v17;
  uint v18, v19, v20, v21, v22, v24, v25, v26, v27, v28, v29;
  bool v11;
  uint s2 = (uint(a.s2));
  uint s3 = (uint(a.s3));
  ulong lane = (ulong(group) + a.first) * 256 + block_lane;
  if (lane >= a.lanes) return;
  ulong steps = a.step_limit;
  uint go = 0;
  do {
    v3 = uint(lane);
    v4 = 0x80000000u;
    v5 = 0x80000000u;
    v6 = 0x80000000u;
    v7 = 0u;
    v8 = v3;
    v9 = 0x80000000u;
    while (true) {
      v11 = v7 < s2;
      if (v11) {
        v13 = v8 + s3;
        v15 = s3 + v13;
        v18 = s3 + v15;
        {
          ulong i0 = ulong(v13);
          ulong i1 = ulong(v15);
          ulong i2 = ulong(v8);
          ulong i3 = ulong(v18);
          bool fits = true;
          uint most0 = max(v13, v15);
          most0 = max(most0, v8);
          most0 = max(most0, v18);
          fits = fits && ulong(most0) < a.n0;
          if (fits) {
            v14 = *(device const uint *)(a.p0 + i0 * 4);
            v16 = *(device const uint *)(a.p0 + i1 * 4);
            v17 = *(device const uint *)(a.p0 + i2 * 4);
            v19 = *(device const uint *)(a.p0 + i3 * 4);
          } else {
            v14 = 0;
            {
              ulong i = ulong(v13), n = a.n0, e = i + 0x0ul;
              if (e >= n) {
                if (fault == 0) {
                  fault = 1;
                  fault_index = i;
                  fault_extent = n;
                }
              } else {
                v14 = *(device const uint *)(a.p0 + e * 4);
              }
            }
            v16 = 0;
            {
              ulong i = ulong(v15), n = a.n0, e = i + 0x0ul;
              if (e >= n) {
                if (fault == 0) {
                  fault = 2;
                  fault_index = i;
                  fault_extent = n;
                }
              } else {
                v16 = *(device const uint *)(a.p0 + e * 4);
              }
            }
            v17 = 0;
            {
              ulong i = ulong(v8), n = a.n0, e = i + 0x0ul;
              if (e >= n) {
                if (fault == 0) {
                  fault = 3;
                  fault_index = i;
                  fault_extent = n;
                }
              } else {
                v17 = *(device const uint *)(a.p0 + e * 4);
              }
            }
            v19 = 0;
            {
              ulong i = ulong(v18), n = a.n0, e = i + 0x0ul;
              if (e >= n) {
                if (fault == 0) {
                  fault = 4;
                  fault_index = i;
                  fault_extent = n;
                }
              } else {
                v19 = *(device const uint *)(a.p0 + e * 4);
              }
            }
          }
        }
        v20 = add_f32(v4, v14);
        v21 = add_f32(v5, v17);
        v22 = add_f32(v6, v19);
        v25 = s3 + v18;
        v26 = add_f32(v9, v16);
        v24 = v7 + 4u;
        if (steps == 0) {
          if (fault == 0) {
            fault = 5;
            fault_index = 0;
            fault_extent = 0;
          }
          go = 1;
          break;
        }
        steps--;
        v4 = v20;
        v5 = v21;
        v6 = v22;
        v7 = v24;
        v8 = v25;
        v9 = v26;
        continue;
      } else {
        v27 = add_f32(v4, v6);
        v28 = add_f32(v5, v9);
        v29 = add_f32(v27, v28);
        {
          ulong i = lane, n = a.n1, e = i + 0x0ul;
          if (e >= n) {
            if (fault == 0) {
              fault = 6;
              fault_index = i;
              fault_extent = n;
            }
          } else {
            *(device uint *)(a.p1 + e * 4) = uint(v29);
          }
        }
        go = 1;
        break;
      }
      break;
    }
    if (go == 1) {
      go = 0;
      break;
    }
  } while (false);
  if (fault != 0) keep_fault(a.fault_record, a.fault_flag, lane, fault_index, fault_extent, hg_column_sum_sites + 4 * (fault - 1));
}

