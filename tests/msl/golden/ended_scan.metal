struct hg_ended_scan_arguments {
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
};

constant ulong hg_ended_scan_sites[] = {
  0x1ul, 0x0ul, 0x800000000ul, 0x0ul,
  0x3ul, 0xffffffff00000006ul, 0x400000007ul, 0x0ul,
  0x1ul, 0x100000004ul, 0x800000000ul, 0x0ul,
};

// lanes may end before others of their block
kernel void hg_ended_scan(constant hg_ended_scan_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup uint4 shared_words[41];
  threadgroup uchar *shared = (threadgroup uchar *)shared_words;
  uint fault = 0;
  ulong fault_index = 0, fault_extent = 0;
  uint v1, v4;
  bool v3;
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
    v1 = 0;
    {
      ulong i = lane, n = a.n0, e = i + 0x0ul;
      if (e >= n) {
        if (fault == 0) {
          fault = 1;
          fault_index = i;
          fault_extent = n;
        }
      } else {
        v1 = *(device const uint *)(a.p0 + e * 4);
      }
    }
    v3 = 100u < v1;
    for (uint i = block_lane; i < 20; i += block_lanes) {
      ((threadgroup uint *)shared)[i] = 0;
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    if (v3) {
      if (fault == 0) {
        fault = 2;
        fault_index = 0;
        fault_extent = 0;
      }
      shared[16 + block_lane] = 1;
      *(threadgroup uint *)(shared + 0) = 1;
      break;
    } else {
      {
        uint own4 = 0;
        threadgroup uint *place4 = (threadgroup uint *)(shared + 144);
        threadgroup uint *second4 = (threadgroup uint *)(shared + 400);
        bool careful = true;
        do {
          own4 = v1;
          if (block_lane % 32 >= 31) place4[block_lane - 31] = own4;
          {
            uint left = simd_shuffle_up(own4, ushort(1));
            if (block_lane % 32 >= 1) {
              own4 = (left + own4);
            }
          }
          if (block_lane % 32 >= 30) place4[block_lane - 29] = own4;
          {
            uint left = simd_shuffle_up(own4, ushort(2));
            if (block_lane % 32 >= 2) {
              own4 = (left + own4);
            }
          }
          if (block_lane % 32 >= 28) place4[block_lane - 25] = own4;
          {
            uint left = simd_shuffle_up(own4, ushort(4));
            if (block_lane % 32 >= 4) {
              own4 = (left + own4);
            }
          }
          if (block_lane % 32 >= 24) place4[block_lane - 17] = own4;
          {
            uint left = simd_shuffle_up(own4, ushort(8));
            if (block_lane % 32 >= 8) {
              own4 = (left + own4);
            }
          }
          if (block_lane % 32 >= 16) place4[block_lane - 1] = own4;
          threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
          if (*(threadgroup uint *)(shared + 0) != 0) break;
          own4 = v1;
          {
            uint left = simd_shuffle_up(own4, ushort(1));
            if (block_lane >= 32 && block_lane % 32 < 1) left = place4[block_lane - 32];
            if (block_lane >= 1) {
              own4 = (left + own4);
            }
          }
          {
            uint left = simd_shuffle_up(own4, ushort(2));
            if (block_lane >= 32 && block_lane % 32 < 2) left = place4[block_lane - 31];
            if (block_lane >= 2) {
              own4 = (left + own4);
            }
          }
          {
            uint left = simd_shuffle_up(own4, ushort(4));
            if (block_lane >= 32 && block_lane % 32 < 4) left = place4[block_lane - 29];
            if (block_lane >= 4) {
              own4 = (left + own4);
            }
          }
          {
            uint left = simd_shuffle_up(own4, ushort(8));
            if (block_lane >= 32 && block_lane % 32 < 8) left = place4[block_lane - 25];
            if (block_lane >= 8) {
              own4 = (left + own4);
            }
          }
          {
            uint left = simd_shuffle_up(own4, ushort(16));
            if (block_lane >= 32 && block_lane % 32 < 16) left = place4[block_lane - 17];
            if (block_lane >= 16) {
              own4 = (left + own4);
            }
          }
          second4[block_lane] = own4;
          threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
          uint row4_0 = block_lane >= 1 ? second4[block_lane - 1] : 0u;
          uint alone4 = row4_0;
          uint row4_1 = block_lane >= 33 ? second4[block_lane - 33] : 0u;
          row4_0 = (row4_1 + row4_0);
          v4 = block_lane > 1 ? row4_0 : alone4;
          if (block_lane == 0) v4 = 0;
          careful = false;
        } while (false);
        if (careful) {
          own4 = v1;
          place4[block_lane] = own4;
          threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
          {
            threadgroup uchar *ended = shared + 16;
            uint elected = 0;
            while ((ended[elected] & 1) != 0) elected++;
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            if (block_lane == elected) {
              for (uint i = 0; i < block_lanes; i++) ended[i] = uchar(ended[i] != 0 ? 3 : 0);
              for (uint s = 1; s < block_lanes; s <<= 1) {
                for (uint i = block_lanes - 1; i >= s; i--) {
                  bool has_left = (ended[i - s] & 2) == 0, has_right = (ended[i] & 2) == 0;
                  if (has_left && has_right) {
                    place4[i] = (place4[i - s] + place4[i]);
                  } else if (has_left || has_right) {
                    place4[i] = has_left ? place4[i - s] : place4[i];
                  }
                  ended[i] = uchar((ended[i] & 1) | (has_left || has_right ? 0 : 2));
                }
              }
            }
          }
          threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
          v4 = block_lane > 0 && (shared[16 + block_lane - 1] & 2) == 0 ? place4[block_lane - 1] : 0;
          threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
        }
      }
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
    }
  } while (false);
  if (fault != 0) keep_fault(a.fault_record, a.fault_flag, lane, fault_index, fault_extent, hg_ended_scan_sites + 4 * (fault - 1));
}

