struct hg_argmax_arguments {
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

constant ulong hg_argmax_sites[] = {
  0x1ul, 0x7ul, 0x700000000ul, 0x0ul,
  0x4ul, 0xffffffff00000012ul, 0x400000000ul, 0x0ul,
  0x1ul, 0x10000001bul, 0x700000000ul, 0x0ul,
};

// lanes may end before others of their block
kernel void hg_argmax(constant hg_argmax_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup uint4 shared_words[85];
  threadgroup uchar *shared = (threadgroup uchar *)shared_words;
  uint fault = 0;
  ulong fault_index = 0, fault_extent = 0;
  uint v3, v4, v5, v8, v9, v10, v11, v13, v22, v23, v24, v28;
  uint v29, v36, v37, v38, v39, v41, v43, v46, v48, v49, v52, v53;
  uint v54, v55, v56, v66, v67, v70, v79, v80, v83, v92, v93, v96;
  uint v105, v106, v108;
  ulong v33, v35;
  bool v7, v14, v15, v16, v17, v18, v19, v20, v21, v25, v26, v27;
  bool v31, v44, v50, v51, v57, v58, v59, v60, v61, v62, v63, v64;
  bool v65, v68, v71, v72, v73, v74, v75, v76, v77, v78, v81, v84;
  bool v85, v86, v87, v88, v89, v90, v91, v94, v97, v98, v99, v100;
  bool v101, v102, v103, v104;
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
    for (uint i = block_lane; i < 68; i += block_lanes) {
      ((threadgroup uint *)shared)[i] = 0;
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    v33 = ulong(a.n0);
    v35 = ulong(min(v33, 0xfffffffful));
    v36 = uint(v35);
    v41 = uint(max(s2, 768u));
    v43 = v41 - 768u;
    v46 = uint(max(v36, 768u));
    v48 = v46 - 768u;
    v8 = uint(block_x);
    v9 = s2 * v8;
    v39 = 0xffffffffu;
    v38 = 0xff800000u;
    v37 = block_lane;
    while (true) {
      v49 = v37 + v9;
      v50 = v49 < v48;
      v44 = v37 < v43;
      v51 = v44 && v50;
      if (v51 && steps >= 4) {
        v52 = v37 + v9;
        {
          ulong e = ulong(v52) + 0x300ul;
          v56 = *(device const uint *)(a.p0 + e * 4);
        }
        {
          ulong e = ulong(v52) + 0x200ul;
          v55 = *(device const uint *)(a.p0 + e * 4);
        }
        {
          ulong e = ulong(v52) + 0x100ul;
          v54 = *(device const uint *)(a.p0 + e * 4);
        }
        v53 = *(device const uint *)(a.p0 + ulong(v52) * 4);
        v59 = num_f32(v53, v53);
        v60 = !v59;
        v57 = num_f32(v38, v38);
        v61 = v57 && v60;
        v62 = lt_f32(v38, v53);
        v63 = v62 || v61;
        v64 = v39 == 0xffffffffu;
        v65 = v64 || v63;
        v72 = num_f32(v54, v54);
        v73 = !v72;
        v66 = v65 ? v53 : v38;
        v68 = num_f32(v66, v66);
        v74 = v68 && v73;
        v75 = lt_f32(v66, v54);
        v76 = v75 || v74;
        v67 = v65 ? v37 : v39;
        v77 = v67 == 0xffffffffu;
        v78 = v77 || v76;
        v70 = v37 + 256u;
        v80 = v78 ? v70 : v67;
        v79 = v78 ? v54 : v66;
        v85 = num_f32(v55, v55);
        v86 = !v85;
        v81 = num_f32(v79, v79);
        v87 = v81 && v86;
        v88 = lt_f32(v79, v55);
        v89 = v88 || v87;
        v90 = v80 == 0xffffffffu;
        v91 = v90 || v89;
        v83 = v37 + 512u;
        v93 = v91 ? v83 : v80;
        v92 = v91 ? v55 : v79;
        v98 = num_f32(v56, v56);
        v99 = !v98;
        v94 = num_f32(v92, v92);
        v100 = v94 && v99;
        v101 = lt_f32(v92, v56);
        v102 = v101 || v100;
        v103 = v93 == 0xffffffffu;
        v104 = v103 || v102;
        v96 = v37 + 768u;
        v106 = v104 ? v96 : v93;
        v105 = v104 ? v56 : v92;
        v108 = v37 + 1024u;
        steps -= 4;
        v39 = v106;
        v38 = v105;
        v37 = v108;
        continue;
      } else {
        v3 = v37;
        v4 = v38;
        v5 = v39;
        while (true) {
          v16 = num_f32(v4, v4);
          v7 = v3 < s2;
          if (v7) {
            v10 = v3 + v9;
            v11 = 0;
            {
              ulong i = ulong(v10), n = a.n0, e = i + 0x0ul;
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
            v17 = num_f32(v11, v11);
            v18 = !v17;
            v19 = v16 && v18;
            v15 = lt_f32(v4, v11);
            v20 = v15 || v19;
            v14 = v5 == 0xffffffffu;
            v21 = v14 || v20;
            v22 = v21 ? v11 : v4;
            v23 = v21 ? v3 : v5;
            v13 = v3 + 256u;
            if (steps == 0) {
              if (fault == 0) {
                fault = 2;
                fault_index = 0;
                fault_extent = 0;
              }
              shared[16 + block_lane] = 1;
              *(threadgroup uint *)(shared + 0) = 1;
              go = 1;
              break;
            }
            steps--;
            v3 = v13;
            v4 = v22;
            v5 = v23;
            continue;
          } else {
            {
              uint own24 = 0;
              threadgroup uint *place24 = (threadgroup uint *)(shared + 336);
              threadgroup uint *second24 = (threadgroup uint *)(shared + 272);
              bool careful = true;
              do {
                own24 = v4;
                if (block_lanes != 256) break;
                place24[block_lane] = own24;
                threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
                if (*(threadgroup uint *)(shared + 0) != 0) break;
                {
                  uint f = block_lane / 32;
                  if (f < 1) {
                    threadgroup uint *from24 = place24 + f * 256;
                    uint row24_0 = from24[block_lane % 32 + 0];
                    uint row24_4 = from24[block_lane % 32 + 128];
                    row24_0 = max_f32(row24_0, row24_4);
                    uint row24_2 = from24[block_lane % 32 + 64];
                    uint row24_6 = from24[block_lane % 32 + 192];
                    row24_2 = max_f32(row24_2, row24_6);
                    row24_0 = max_f32(row24_0, row24_2);
                    uint row24_1 = from24[block_lane % 32 + 32];
                    uint row24_5 = from24[block_lane % 32 + 160];
                    row24_1 = max_f32(row24_1, row24_5);
                    uint row24_3 = from24[block_lane % 32 + 96];
                    uint row24_7 = from24[block_lane % 32 + 224];
                    row24_3 = max_f32(row24_3, row24_7);
                    row24_1 = max_f32(row24_1, row24_3);
                    row24_0 = max_f32(row24_0, row24_1);
                    row24_0 = max_f32(row24_0, simd_shuffle_xor(row24_0, ushort(16)));
                    row24_0 = max_f32(row24_0, simd_shuffle_xor(row24_0, ushort(8)));
                    row24_0 = max_f32(row24_0, simd_shuffle_xor(row24_0, ushort(4)));
                    row24_0 = max_f32(row24_0, simd_shuffle_xor(row24_0, ushort(2)));
                    row24_0 = max_f32(row24_0, simd_shuffle_xor(row24_0, ushort(1)));
                    if (block_lane % 32 == 0) second24[f] = row24_0;
                  }
                }
                threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
                v24 = second24[0];
                careful = false;
              } while (false);
              if (careful) {
                place24[block_lane] = own24;
                threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
                if (*(threadgroup uint *)(shared + 0) == 0) {
                  for (uint h = half_of(block_lanes); h > 0; h >>= 1) {
                    if (block_lane < h && block_lane + h < block_lanes) {
                      place24[block_lane] = max_f32(place24[block_lane], place24[block_lane + h]);
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
                            place24[i] = max_f32(place24[i], place24[i + h]);
                          } else if (has_left || has_right) {
                            place24[i] = has_left ? place24[i] : place24[i + h];
                          }
                          ended[i] = uchar((ended[i] & 1) | (has_left || has_right ? 0 : 2));
                        }
                      }
                    }
                  }
                  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
                }
                v24 = place24[0];
                threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
              }
            }
            v25 = eq_f32(v4, v24);
            v26 = !v16;
            v27 = v25 || v26;
            v28 = v27 ? v5 : 0xffffffffu;
            {
              uint own29 = 0;
              threadgroup uint *place29 = (threadgroup uint *)(shared + 336);
              threadgroup uint *second29 = (threadgroup uint *)(shared + 272);
              bool careful = true;
              do {
                own29 = v28;
                if (block_lanes != 256) break;
                place29[block_lane] = own29;
                threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
                if (*(threadgroup uint *)(shared + 0) != 0) break;
                {
                  uint f = block_lane / 32;
                  if (f < 1) {
                    threadgroup uint *from29 = place29 + f * 256;
                    uint row29_0 = from29[block_lane % 32 + 0];
                    uint row29_4 = from29[block_lane % 32 + 128];
                    row29_0 = uint(min(uint(row29_0), uint(row29_4)));
                    uint row29_2 = from29[block_lane % 32 + 64];
                    uint row29_6 = from29[block_lane % 32 + 192];
                    row29_2 = uint(min(uint(row29_2), uint(row29_6)));
                    row29_0 = uint(min(uint(row29_0), uint(row29_2)));
                    uint row29_1 = from29[block_lane % 32 + 32];
                    uint row29_5 = from29[block_lane % 32 + 160];
                    row29_1 = uint(min(uint(row29_1), uint(row29_5)));
                    uint row29_3 = from29[block_lane % 32 + 96];
                    uint row29_7 = from29[block_lane % 32 + 224];
                    row29_3 = uint(min(uint(row29_3), uint(row29_7)));
                    row29_1 = uint(min(uint(row29_1), uint(row29_3)));
                    row29_0 = uint(min(uint(row29_0), uint(row29_1)));
                    row29_0 = uint(min(uint(row29_0), uint(simd_shuffle_xor(row29_0, ushort(16)))));
                    row29_0 = uint(min(uint(row29_0), uint(simd_shuffle_xor(row29_0, ushort(8)))));
                    row29_0 = uint(min(uint(row29_0), uint(simd_shuffle_xor(row29_0, ushort(4)))));
                    row29_0 = uint(min(uint(row29_0), uint(simd_shuffle_xor(row29_0, ushort(2)))));
                    row29_0 = uint(min(uint(row29_0), uint(simd_shuffle_xor(row29_0, ushort(1)))));
                    if (block_lane % 32 == 0) second29[f] = row29_0;
                  }
                }
                threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
                v29 = second29[0];
                careful = false;
              } while (false);
              if (careful) {
                place29[block_lane] = own29;
                threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
                if (*(threadgroup uint *)(shared + 0) == 0) {
                  for (uint h = half_of(block_lanes); h > 0; h >>= 1) {
                    if (block_lane < h && block_lane + h < block_lanes) {
                      place29[block_lane] = uint(min(uint(place29[block_lane]), uint(place29[block_lane + h])));
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
                            place29[i] = uint(min(uint(place29[i]), uint(place29[i + h])));
                          } else if (has_left || has_right) {
                            place29[i] = has_left ? place29[i] : place29[i + h];
                          }
                          ended[i] = uchar((ended[i] & 1) | (has_left || has_right ? 0 : 2));
                        }
                      }
                    }
                  }
                  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
                }
                v29 = place29[0];
                threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
              }
            }
            v31 = block_lane == 0u;
            if (v31) {
              {
                ulong i = ulong(v8), n = a.n1, e = i + 0x0ul;
                if (e >= n) {
                  if (fault == 0) {
                    fault = 3;
                    fault_index = i;
                    fault_extent = n;
                  }
                } else {
                  *(device uint *)(a.p1 + e * 4) = uint(v29);
                }
              }
              go = 1;
              break;
            } else {
              go = 1;
              break;
            }
          }
          break;
        }
        if (go != 0) break;
      }
      break;
    }
    if (go == 1) {
      go = 0;
      break;
    }
  } while (false);
  if (fault != 0) keep_fault(a.fault_record, a.fault_flag, lane, fault_index, fault_extent, hg_argmax_sites + 4 * (fault - 1));
}

