struct hg_matmul_int8_arguments {
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
  device uchar *p2;
  ulong n2;
  ulong s3;
  ulong s4;
  ulong s5;
};

constant ulong hg_matmul_int8_sites[] = {
  0x1ul, 0x14ul, 0x700000000ul, 0x0ul,
  0x1ul, 0x10000001cul, 0x700000000ul, 0x0ul,
  0x1ul, 0x600000023ul, 0x700000000ul, 0x0ul,
  0x1ul, 0x700000024ul, 0x700000000ul, 0x0ul,
  0x4ul, 0xffffffff0000002bul, 0x400000000ul, 0x0ul,
  0x4ul, 0xffffffff00000028ul, 0x400000000ul, 0x0ul,
  0x1ul, 0x200000031ul, 0x700000000ul, 0x0ul,
};

// lanes may end before others of their block
kernel void hg_matmul_int8(constant hg_matmul_int8_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup uint4 shared_words[132];
  threadgroup uchar *shared = (threadgroup uchar *)shared_words;
  uint fault = 0;
  ulong fault_index = 0, fault_extent = 0;
  uint v2, v3, v6, v10, v11, v15, v16, v19, v20, v22, v23, v28;
  uint v29, v31, v34, v35, v37, v38, v39, v40, v41, v42, v43, v44;
  uint v46, v48, v50, v51, v53, v54, v58;
  bool v5, v8, v9, v12, v13, v14, v25, v26, v27, v47, v55, v56;
  bool v57;
  uint s3 = (uint(a.s3));
  uint s4 = (uint(a.s4));
  uint s5 = (uint(a.s5));
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
    v20 = uint(block_x);
    v22 = uint(v20 << 4);
    v19 = uint(thread_y);
    v23 = v19 + v22;
    v10 = uint(thread_x);
    v31 = v19 * 17u + v10;
    v34 = uint(v19 << 4);
    v25 = v23 < s4;
    v26 = !v25;
    v6 = uint(global_y);
    v8 = v6 < s3;
    v9 = !v8;
    v38 = v10 * 17u;
    for (uint i = block_lane; i < 528; i += block_lanes) {
      ((threadgroup uint *)shared)[i] = 0;
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    v2 = 0u;
    v3 = 0u;
    while (true) {
      v5 = v3 < s5;
      if (v5) {
        do {
          v11 = v3 + v10;
          v12 = v11 < s5;
          v13 = !v12;
          v14 = v9 || v13;
          if (v14) {
            break;
          } else {
            v15 = s5 * v6 + v11;
            v16 = 0;
            {
              ulong i = ulong(v15), n = a.n0, e = i + 0x0ul;
              if (e >= n) {
                if (fault == 0) {
                  fault = 1;
                  fault_index = i;
                  fault_extent = n;
                }
              } else {
                v16 = *(device const uint *)(a.p0 + e * 4);
              }
            }
            *(threadgroup uint *)(shared + 0 + ulong(block_lane) * 4) = uint(v16);
            break;
          }
        } while (false);
        do {
          v27 = v13 || v26;
          if (v27) {
            break;
          } else {
            v28 = s5 * v23 + v11;
            v29 = 0;
            {
              ulong i = ulong(v28), n = a.n1, e = i + 0x0ul;
              if (e >= n) {
                if (fault == 0) {
                  fault = 2;
                  fault_index = i;
                  fault_extent = n;
                }
              } else {
                v29 = *(device const uint *)(a.p1 + e * 4);
              }
            }
            *(threadgroup uint *)(shared + 1024 + ulong(v31) * 4) = uint(v29);
            break;
          }
        } while (false);
        threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
        v35 = s5 - v3;
        v37 = uint(min(v35, 16u));
        v39 = v2;
        v40 = v34;
        v41 = v37;
        v42 = v38;
        while (true) {
          v43 = 0;
          {
            ulong i = ulong(v40), n = 256ul, e = i + 0x0ul;
            if (e >= n) {
              if (fault == 0) {
                fault = 3;
                fault_index = i;
                fault_extent = n;
              }
            } else {
              v43 = *(threadgroup const uint *)(shared + 0 + e * 4);
            }
          }
          v44 = 0;
          {
            ulong i = ulong(v42), n = 272ul, e = i + 0x0ul;
            if (e >= n) {
              if (fault == 0) {
                fault = 4;
                fault_index = i;
                fault_extent = n;
              }
            } else {
              v44 = *(threadgroup const uint *)(shared + 1024 + e * 4);
            }
          }
          v48 = dot4(v43, v44, v39, true, true);
          v50 = v40 + 1u;
          v51 = v42 + 1u;
          v46 = v41 + 0xffffffffu;
          v47 = v46 == 0u;
          if (v47) {
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            v53 = v3 + 16u;
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
            v2 = v48;
            v3 = v53;
            go = 2;
            break;
          } else {
            if (steps == 0) {
              if (fault == 0) {
                fault = 6;
                fault_index = 0;
                fault_extent = 0;
              }
              go = 1;
              break;
            }
            steps--;
            v39 = v48;
            v40 = v50;
            v41 = v46;
            v42 = v51;
            continue;
          }
          break;
        }
        if (go == 2) {
          go = 0;
          continue;
        }
        if (go != 0) break;
      } else {
        v54 = uint(global_x);
        v55 = v54 < s4;
        v56 = !v55;
        v57 = v9 || v56;
        if (v57) {
          go = 1;
          break;
        } else {
          v58 = v6 * s4 + v54;
          {
            ulong i = ulong(v58), n = a.n2, e = i + 0x0ul;
            if (e >= n) {
              if (fault == 0) {
                fault = 7;
                fault_index = i;
                fault_extent = n;
              }
            } else {
              *(device uint *)(a.p2 + e * 4) = uint(v2);
            }
          }
          go = 1;
          break;
        }
      }
      break;
    }
    if (go == 1) {
      go = 0;
      break;
    }
  } while (false);
  if (fault != 0) keep_fault(a.fault_record, a.fault_flag, lane, fault_index, fault_extent, hg_matmul_int8_sites + 4 * (fault - 1));
}

