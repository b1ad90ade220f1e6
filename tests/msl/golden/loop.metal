struct hg_loop_arguments {
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

constant ulong hg_loop_sites[] = {
  0x1ul, 0x4ul, 0x700000000ul, 0x0ul,
  0x1ul, 0x100000005ul, 0x700000000ul, 0x0ul,
  0x1ul, 0x10000000aul, 0x700000000ul, 0x0ul,
  0x4ul, 0xffffffff0000000cul, 0x400000000ul, 0x0ul,
  0x4ul, 0xffffffff0000000cul, 0x400000000ul, 0x0ul,
  0x1ul, 0x10000000eul, 0x800000000ul, 0x1000ul,
};

// lanes may end before others of their block
kernel void hg_loop(constant hg_loop_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup uint4 shared_words[25];
  threadgroup uchar *shared = (threadgroup uchar *)shared_words;
  uint fault = 0;
  ulong fault_index = 0, fault_extent = 0;
  uint v2, v3, v6, v7, v9, v11, v13;
  bool v5, v8;
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
    for (uint i = block_lane; i < 20; i += block_lanes) {
      ((threadgroup uint *)shared)[i] = 0;
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    v2 = 0u;
    v3 = block_lane;
    while (true) {
      v5 = v3 < s2;
      if (v5) {
        v6 = 0;
        {
          ulong i = ulong(v3), n = a.n0, e = i + 0x0ul;
          if (e >= n) {
            if (fault == 0) {
              fault = 1;
              fault_index = i;
              fault_extent = n;
            }
          } else {
            v6 = *(device const uint *)(a.p0 + e * 4);
          }
        }
        v7 = 0;
        {
          ulong i = ulong(v3), n = a.n1, e = i + 0x0ul;
          if (e >= n) {
            if (fault == 0) {
              fault = 2;
              fault_index = i;
              fault_extent = n;
            }
          } else {
            v7 = *(device const uint *)(a.p1 + e * 4);
          }
        }
        v8 = lt_f32(v6, v7);
        v9 = add_f32(v2, v6);
        v11 = v3 + 64u;
        if (v8) {
          {
            ulong i = ulong(v3), n = a.n1, e = i + 0x0ul;
            if (e >= n) {
              if (fault == 0) {
                fault = 3;
                fault_index = i;
                fault_extent = n;
              }
            } else {
              *(device uint *)(a.p1 + e * 4) = uint(v6);
            }
          }
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
          v3 = v11;
          continue;
        } else {
          if (steps == 0) {
            if (fault == 0) {
              fault = 5;
              fault_index = 0;
              fault_extent = 0;
            }
            shared[16 + block_lane] = 1;
            *(threadgroup uint *)(shared + 0) = 1;
            go = 1;
            break;
          }
          steps--;
          v2 = v9;
          v3 = v11;
          continue;
        }
      } else {
        {
          uint own13 = 0;
          threadgroup uint *place13 = (threadgroup uint *)(shared + 144);
          threadgroup uint *second13 = (threadgroup uint *)(shared + 80);
          bool careful = true;
          do {
            own13 = v2;
            if (block_lanes != 64) break;
            place13[block_lane] = own13;
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            if (*(threadgroup uint *)(shared + 0) != 0) break;
            {
              uint f = block_lane / 32;
              if (f < 1) {
                threadgroup uint *from13 = place13 + f * 64;
                uint row13_0 = from13[block_lane % 32 + 0];
                uint row13_1 = from13[block_lane % 32 + 32];
                row13_0 = add_f32(row13_0, row13_1);
                row13_0 = add_f32(row13_0, simd_shuffle_xor(row13_0, ushort(16)));
                row13_0 = add_f32(row13_0, simd_shuffle_xor(row13_0, ushort(8)));
                row13_0 = add_f32(row13_0, simd_shuffle_xor(row13_0, ushort(4)));
                row13_0 = add_f32(row13_0, simd_shuffle_xor(row13_0, ushort(2)));
                row13_0 = add_f32(row13_0, simd_shuffle_xor(row13_0, ushort(1)));
                if (block_lane % 32 == 0) second13[f] = row13_0;
              }
            }
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            v13 = second13[0];
            careful = false;
          } while (false);
          if (careful) {
            place13[block_lane] = own13;
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            if (*(threadgroup uint *)(shared + 0) == 0) {
              for (uint h = half_of(block_lanes); h > 0; h >>= 1) {
                if (block_lane < h && block_lane + h < block_lanes) {
                  place13[block_lane] = add_f32(place13[block_lane], place13[block_lane + h]);
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
                        place13[i] = add_f32(place13[i], place13[i + h]);
                      } else if (has_left || has_right) {
                        place13[i] = has_left ? place13[i] : place13[i + h];
                      }
                      ended[i] = uchar((ended[i] & 1) | (has_left || has_right ? 0 : 2));
                    }
                  }
                }
              }
              threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            }
            v13 = place13[0];
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
          }
        }
        {
          ulong i = lane, n = a.n1, e = i + 0x1000ul;
          if (e >= n || i >= n) {
            if (fault == 0) {
              fault = 6;
              fault_index = i;
              fault_extent = n;
            }
          } else {
            *(device uint *)(a.p1 + e * 4) = uint(v13);
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
  if (fault != 0) keep_fault(a.fault_record, a.fault_flag, lane, fault_index, fault_extent, hg_loop_sites + 4 * (fault - 1));
}

