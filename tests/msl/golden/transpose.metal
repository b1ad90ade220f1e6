struct hg_transpose_arguments {
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

constant ulong hg_transpose_sites[] = {
  0x1ul, 0x9ul, 0x700000000ul, 0x0ul,
  0x1ul, 0x10000001aul, 0x700000000ul, 0x0ul,
};

kernel void hg_transpose(constant hg_transpose_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup uint4 shared_words[68];
  threadgroup uchar *shared = (threadgroup uchar *)shared_words;
  uint fault = 0;
  ulong fault_index = 0, fault_extent = 0;
  uint v0, v4, v9, v10, v11, v13, v14, v17, v19, v20, v23, v24;
  uint v25, v29, v30, v31;
  bool v2, v3, v6, v7, v8, v21, v22, v26, v27, v28;
  uint s2 = (uint(a.s2));
  uint s3 = (uint(a.s3));
  ulong block = ulong(group) + a.first, size = ulong(a.block_size_x) * a.block_size_y * a.block_size_z;
  uint block_lanes = uint(min(a.is_flat != 0 ? a.lanes - block * size : size, size));
  ulong thread_x = block_lane % a.block_size_x, thread_y = block_lane / a.block_size_x % a.block_size_y, thread_z = block_lane / a.block_size_x / a.block_size_y;
  ulong block_x = block % a.grid_x, block_y = block / a.grid_x % a.grid_y, block_z = block / a.grid_x / a.grid_y;
  ulong global_x = block_x * a.block_size_x + thread_x;
  ulong global_y = block_y * a.block_size_y + thread_y;
  ulong global_z = block_z * a.block_size_z + thread_z;
  ulong lane = (global_z * (a.grid_y * a.block_size_y) + global_y) * (a.grid_x * a.block_size_x) + global_x;
  uint go = 0;
  do {
    do {
      v0 = uint(global_x);
      v2 = v0 < s3;
      v3 = !v2;
      v4 = uint(global_y);
      v6 = v4 < s2;
      v7 = !v6;
      v8 = v3 || v7;
      v11 = uint(thread_y);
      v13 = uint(thread_x);
      for (uint i = block_lane; i < 272; i += block_lanes) {
        ((threadgroup uint *)shared)[i] = 0;
      }
      threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
      if (v8) {
        break;
      } else {
        v9 = s3 * v4 + v0;
        v10 = 0;
        {
          ulong i = ulong(v9), n = a.n0, e = i + 0x0ul;
          if (e >= n) {
            if (fault == 0) {
              fault = 1;
              fault_index = i;
              fault_extent = n;
            }
          } else {
            v10 = *(device const uint *)(a.p0 + e * 4);
          }
        }
        v14 = v11 * 17u + v13;
        *(threadgroup uint *)(shared + 0 + ulong(v14) * 4) = uint(v10);
        break;
      }
    } while (false);
    v17 = uint(block_x);
    v19 = uint(v17 << 4);
    v20 = v11 + v19;
    v21 = v20 < s3;
    v22 = !v21;
    v23 = uint(block_y);
    v24 = uint(v23 << 4);
    v25 = v13 + v24;
    v26 = v25 < s2;
    v27 = !v26;
    v28 = v22 || v27;
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    if (v28) {
      break;
    } else {
      v29 = v13 * 17u + v11;
      v30 = *(threadgroup const uint *)(shared + 0 + ulong(v29) * 4);
      v31 = s2 * v20 + v25;
      {
        ulong i = ulong(v31), n = a.n1, e = i + 0x0ul;
        if (e >= n) {
          if (fault == 0) {
            fault = 2;
            fault_index = i;
            fault_extent = n;
          }
        } else {
          *(device uint *)(a.p1 + e * 4) = uint(v30);
        }
      }
      break;
    }
  } while (false);
  if (fault != 0) keep_fault(a.fault_record, a.fault_flag, lane, fault_index, fault_extent, hg_transpose_sites + 4 * (fault - 1));
}

