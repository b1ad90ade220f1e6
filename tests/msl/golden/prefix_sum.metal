struct hg_prefix_sum_arguments {
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

constant ulong hg_prefix_sum_sites[] = {
  0x1ul, 0x9ul, 0x700000000ul, 0x0ul,
  0x1ul, 0x10000000eul, 0x700000000ul, 0x0ul,
  0x4ul, 0xffffffff00000011ul, 0x400000000ul, 0x0ul,
  0x4ul, 0xffffffff00000011ul, 0x400000000ul, 0x0ul,
};

// lanes may end before others of their block
kernel void hg_prefix_sum(constant hg_prefix_sum_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup uint4 shared_words[149];
  threadgroup uchar *shared = (threadgroup uchar *)shared_words;
  uint fault = 0;
  ulong fault_index = 0, fault_extent = 0;
  uint v2, v3, v4, v5, v6, v9, v11, v12, v13, v14, v15, v17;
  uint v18;
  bool v7, v10;
  uint s2 = (uint(a.s2));
  ulong block = ulong(group) + a.first, size = ulong(a.block_size_x) * a.block_size_y * a.block_size_z;
  uint block_lanes = uint(min(a.is_flat != 0 ? a.lanes - block * size : size, size));
  ulong thread_x = block_lane % a.block_size_x, thread_y = block_lane / a.block_size_x % a.block_size_y, thread_z = block_lane / a.block_size_x / a.block_size_y;
  ulong block_x = block % a.grid_x, block_y = block / a.grid_x % a.grid_y, block_z = block / a.grid_x / a.grid_y;
  ulong global_x = block_x * a.block_size_x + thread_x;
  ulong global_y = block_y * a.block_size_y + thread_y;
  ulong global_z = block_z * a.block_size_z + thread_z;
  ulong lane = (global_z * (a.grid_y * a.block_size_y) + global_y) * (a.grid_x * a.block_size_x) + global_x;
  ulong steps = a.step_limit;
  uint go = 0;
  do {
    v2 = uint(block_x);
    v3 = s2 * v2;
    v6 = s2 + v3;
    for (uint i = block_lane; i < 68; i += block_lanes) {
      ((threadgroup uint *)shared)[i] = 0;
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    v4 = 0u;
    v5 = v3;
    while (true) {
      v7 = v5 < v6;
      if (v7) {
        do {
          v9 = v5 + block_lane;
          v10 = v9 < v6;
          if (v10) {
            v11 = 0;
            {
              ulong i = ulong(v9), n = a.n0, e = i + 0x0ul;
              if (e >= n) {
                if (fault == 0) {
                  fault = 1;
                  fault_index = i;
                  fault_extent = n;
                }
              } else {
                v11 = *(device const uint *)(a.p0 + e * 4);
              }
            }
            v12 = v11;
            break;
          } else {
            v12 = 0u;
            break;
          }
        } while (false);
        {
          uint own13 = 0;
          threadgroup uint *place13 = (threadgroup uint *)(shared + 336);
          threadgroup uint *second13 = (threadgroup uint *)(shared + 1360);
          bool careful = true;
          do {
            own13 = v12;
            if (block_lane % 32 >= 31) place13[block_lane - 31] = own13;
            {
              uint left = simd_shuffle_up(own13, ushort(1));
              if (block_lane % 32 >= 1) {
                own13 = (left + own13);
              }
            }
            if (block_lane % 32 >= 30) place13[block_lane - 29] = own13;
            {
              uint left = simd_shuffle_up(own13, ushort(2));
              if (block_lane % 32 >= 2) {
                own13 = (left + own13);
              }
            }
            if (block_lane % 32 >= 28) place13[block_lane - 25] = own13;
            {
              uint left = simd_shuffle_up(own13, ushort(4));
              if (block_lane % 32 >= 4) {
                own13 = (left + own13);
              }
            }
            if (block_lane % 32 >= 24) place13[block_lane - 17] = own13;
            {
              uint left = simd_shuffle_up(own13, ushort(8));
              if (block_lane % 32 >= 8) {
                own13 = (left + own13);
              }
            }
            if (block_lane % 32 >= 16) place13[block_lane - 1] = own13;
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            if (*(threadgroup uint *)(shared + 0) != 0) break;
            own13 = v12;
            {
              uint left = simd_shuffle_up(own13, ushort(1));
              if (block_lane >= 32 && block_lane % 32 < 1) left = place13[block_lane - 32];
              if (block_lane >= 1) {
                own13 = (left + own13);
              }
            }
            {
              uint left = simd_shuffle_up(own13, ushort(2));
              if (block_lane >= 32 && block_lane % 32 < 2) left = place13[block_lane - 31];
              if (block_lane >= 2) {
                own13 = (left + own13);
              }
            }
            {
              uint left = simd_shuffle_up(own13, ushort(4));
              if (block_lane >= 32 && block_lane % 32 < 4) left = place13[block_lane - 29];
              if (block_lane >= 4) {
                own13 = (left + own13);
              }
            }
            {
              uint left = simd_shuffle_up(own13, ushort(8));
              if (block_lane >= 32 && block_lane % 32 < 8) left = place13[block_lane - 25];
              if (block_lane >= 8) {
                own13 = (left + own13);
              }
            }
            {
              uint left = simd_shuffle_up(own13, ushort(16));
              if (block_lane >= 32 && block_lane % 32 < 16) left = place13[block_lane - 17];
              if (block_lane >= 16) {
                own13 = (left + own13);
              }
            }
            second13[block_lane] = own13;
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            uint row13_0 = own13;
            uint alone13 = row13_0;
            uint row13_1 = block_lane >= 32 ? second13[block_lane - 32] : 0u;
            row13_0 = (row13_1 + row13_0);
            uint row13_2 = block_lane >= 64 ? second13[block_lane - 64] : 0u;
            uint row13_3 = block_lane >= 96 ? second13[block_lane - 96] : 0u;
            row13_2 = (row13_3 + row13_2);
            row13_0 = (row13_2 + row13_0);
            uint row13_4 = block_lane >= 128 ? second13[block_lane - 128] : 0u;
            uint row13_5 = block_lane >= 160 ? second13[block_lane - 160] : 0u;
            row13_4 = (row13_5 + row13_4);
            uint row13_6 = block_lane >= 192 ? second13[block_lane - 192] : 0u;
            uint row13_7 = block_lane >= 224 ? second13[block_lane - 224] : 0u;
            row13_6 = (row13_7 + row13_6);
            row13_4 = (row13_6 + row13_4);
            row13_0 = (row13_4 + row13_0);
            v13 = block_lane > 0 ? row13_0 : alone13;
            careful = false;
          } while (false);
          if (careful) {
            own13 = v12;
            place13[block_lane] = own13;
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
                      place13[i] = (place13[i - s] + place13[i]);
                    } else if (has_left || has_right) {
                      place13[i] = has_left ? place13[i - s] : place13[i];
                    }
                    ended[i] = uchar((ended[i] & 1) | (has_left || has_right ? 0 : 2));
                  }
                }
              }
            }
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            v13 = place13[block_lane];
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
          }
        }
        {
          uint own14 = 0;
          threadgroup uint *place14 = (threadgroup uint *)(shared + 336);
          threadgroup uint *second14 = (threadgroup uint *)(shared + 272);
          bool careful = true;
          do {
            own14 = v12;
            if (block_lanes != 256) break;
            place14[block_lane] = own14;
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            if (*(threadgroup uint *)(shared + 0) != 0) break;
            {
              uint f = block_lane / 32;
              if (f < 1) {
                threadgroup uint *from14 = place14 + f * 256;
                uint row14_0 = from14[block_lane % 32 + 0];
                uint row14_4 = from14[block_lane % 32 + 128];
                row14_0 = (row14_0 + row14_4);
                uint row14_2 = from14[block_lane % 32 + 64];
                uint row14_6 = from14[block_lane % 32 + 192];
                row14_2 = (row14_2 + row14_6);
                row14_0 = (row14_0 + row14_2);
                uint row14_1 = from14[block_lane % 32 + 32];
                uint row14_5 = from14[block_lane % 32 + 160];
                row14_1 = (row14_1 + row14_5);
                uint row14_3 = from14[block_lane % 32 + 96];
                uint row14_7 = from14[block_lane % 32 + 224];
                row14_3 = (row14_3 + row14_7);
                row14_1 = (row14_1 + row14_3);
                row14_0 = (row14_0 + row14_1);
                row14_0 = (row14_0 + simd_shuffle_xor(row14_0, ushort(16)));
                row14_0 = (row14_0 + simd_shuffle_xor(row14_0, ushort(8)));
                row14_0 = (row14_0 + simd_shuffle_xor(row14_0, ushort(4)));
                row14_0 = (row14_0 + simd_shuffle_xor(row14_0, ushort(2)));
                row14_0 = (row14_0 + simd_shuffle_xor(row14_0, ushort(1)));
                if (block_lane % 32 == 0) second14[f] = row14_0;
              }
            }
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            v14 = second14[0];
            careful = false;
          } while (false);
          if (careful) {
            place14[block_lane] = own14;
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            if (*(threadgroup uint *)(shared + 0) == 0) {
              for (uint h = half_of(block_lanes); h > 0; h >>= 1) {
                if (block_lane < h && block_lane + h < block_lanes) {
                  place14[block_lane] = (place14[block_lane] + place14[block_lane + h]);
                }
                threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
              }
            } else {
              {
                threadgroup uchar *ended = shared + 16;
                uint elected = 0;
                while ((ended[elected] & 1) != 0) elected++;
                threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
                if (block_lane == elected) {
                  for (uint i = 0; i < block_lanes; i++) ended[i] = uchar(ended[i] != 0 ? 3 : 0);
                  for (uint h = half_of(block_lanes); h > 0; h >>= 1) {
                    for (uint i = 0; i < h && i + h < block_lanes; i++) {
                      bool has_left = (ended[i] & 2) == 0, has_right = (ended[i + h] & 2) == 0;
                      if (has_left && has_right) {
                        place14[i] = (place14[i] + place14[i + h]);
                      } else if (has_left || has_right) {
                        place14[i] = has_left ? place14[i] : place14[i + h];
                      }
                      ended[i] = uchar((ended[i] & 1) | (has_left || has_right ? 0 : 2));
                    }
                  }
                }
              }
              threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            }
            v14 = place14[0];
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
          }
        }
        v15 = v4 + v14;
        v17 = v5 + 256u;
        if (v10) {
          v18 = v4 + v13;
          {
            ulong i = ulong(v9), n = a.n1, e = i + 0x0ul;
            if (e >= n) {
              if (fault == 0) {
                fault = 2;
                fault_index = i;
                fault_extent = n;
              }
            } else {
              *(device uint *)(a.p1 + e * 4) = uint(v18);
            }
          }
          if (steps == 0) {
            if (fault == 0) {
              fault = 3;
              fault_index = 0;
              fault_extent = 0;
            }
            shared[16 + block_lane] = 1;
            *(threadgroup uint *)(shared + 0) = 1;
            go = 1;
            break;
          }
          steps--;
          v4 = v15;
          v5 = v17;
          continue;
        } else {
          if (steps == 0) {
            if (fault == 0) {
              fault = 4;
              fault_index = 0;
              fault_extent = 0;
            }
            shared[16 + block_lane] = 1;
            *(threadgroup uint *)(shared + 0) = 1;
            go = 1;
            break;
          }
          steps--;
          v4 = v15;
          v5 = v17;
          continue;
        }
      } else {
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
  if (fault != 0) keep_fault(a.fault_record, a.fault_flag, lane, fault_index, fault_extent, hg_prefix_sum_sites + 4 * (fault - 1));
}

