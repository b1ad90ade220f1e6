struct hg_pool_arguments {
  ulong lanes, fast_lanes;
  device uchar *fault_record, *fault_flag;
  ulong step_limit;
  device uchar *boundary, *resonance, *phase_advance;
  ulong first, block_count, first_lane, whole_lanes, total_x, total_y, grid_x, grid_y, grid_z;
  ulong reciprocal_x, reciprocal_y;
  uint block_size_x, block_size_y, block_size_z, phase, is_flat, block_lanes;
  device uchar *p0;
  ulong n0, share0;
  device uchar *p1;
  ulong n1;
};

constant ulong hg_pool_sites[] = {
  0x1ul, 0x100000003ul, 0x800000000ul, 0x0ul,
  0x1ul, 0x4ul, 0x800000000ul, 0x0ul,
  0x2ul, 0x4ul, 0x800000000ul, 0x0ul,
  0x6ul, 0xaul, 0x400000000ul, 0x0ul,
  0x1ul, 0x8ul, 0x800000000ul, 0x0ul,
  0x2ul, 0x8ul, 0x800000000ul, 0x0ul,
  0x1ul, 0x100000009ul, 0x800000000ul, 0x0ul,
};

kernel void hg_pool(constant hg_pool_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  uint fault = 0;
  ulong fault_index = 0, fault_extent = 0;
  ulong v1, v3, v5, v7, v9, v12, v13, v14;
  ulong block = ulong(group) + a.first, size = ulong(a.block_size_x) * a.block_size_y * a.block_size_z;
  uint block_lanes = uint(min(a.is_flat != 0 ? a.lanes - block * size : size, size));
  ulong thread_x = block_lane % a.block_size_x, thread_y = block_lane / a.block_size_x % a.block_size_y, thread_z = block_lane / a.block_size_x / a.block_size_y;
  ulong block_x = block % a.grid_x, block_y = block / a.grid_x % a.grid_y, block_z = block / a.grid_x / a.grid_y;
  ulong global_x = block_x * a.block_size_x + thread_x;
  ulong global_y = block_y * a.block_size_y + thread_y;
  ulong global_z = block_z * a.block_size_z + thread_z;
  ulong lane = (global_z * (a.grid_y * a.block_size_y) + global_y) * (a.grid_x * a.block_size_x) + global_x;
  ulong start0 = block * a.share0, top0 = start0;
  uint go = 0;
  do {
    v1 = 0xfffffffffffffffful;
    if (256ul <= start0 + a.share0 - top0) {
      v1 = top0;
      top0 += (256ul + 15) & ~15ul;
    }
    v3 = 0;
    {
      ulong i = lane, n = a.n1, e = i + 0x0ul;
      if (e >= n) {
        if (fault == 0) {
          fault = 1;
          fault_index = i;
          fault_extent = n;
        }
      } else {
        v3 = *(device const ulong *)(a.p1 + e * 8);
      }
    }
    v5 = ulong(ulong(block_lane));
    v7 = v5 * 8ul + v1;
    {
      ulong i = v7, n = a.n0, e = i + 0x0ul;
      if (e >= n || n - e < 8) {
        if (fault == 0) {
          fault = 2;
          fault_index = i;
          fault_extent = n;
        }
      } else {
        if ((e & 7) != 0) {
          if (fault == 0) {
            fault = 3;
            fault_index = i;
            fault_extent = 8;
          }
        } else {
          *(device ulong *)(a.p0 + e) = ulong(v3);
        }
      }
    }
    v12 = v5 ^ 1ul;
    v13 = v12 * 8ul + v1;
    if (v1 < start0 || v1 >= top0 || (v1 & 15) != 0) {
      if (fault == 0) {
        fault = 4;
        fault_index = v1;
        fault_extent = top0;
      }
    } else {
      top0 = v1;
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    v14 = 0;
    {
      ulong i = v13, n = a.n0, e = i + 0x0ul;
      if (e >= n || n - e < 8) {
        if (fault == 0) {
          fault = 5;
          fault_index = i;
          fault_extent = n;
        }
      } else {
        if ((e & 7) != 0) {
          if (fault == 0) {
            fault = 6;
            fault_index = i;
            fault_extent = 8;
          }
        } else {
          v14 = *(device const ulong *)(a.p0 + e);
        }
      }
    }
    {
      ulong i = lane, n = a.n1, e = i + 0x0ul;
      if (e >= n) {
        if (fault == 0) {
          fault = 7;
          fault_index = i;
          fault_extent = n;
        }
      } else {
        *(device ulong *)(a.p1 + e * 8) = ulong(v14);
      }
    }
    break;
  } while (false);
  if (fault != 0) keep_fault(a.fault_record, a.fault_flag, lane, fault_index, fault_extent, hg_pool_sites + 4 * (fault - 1));
}

