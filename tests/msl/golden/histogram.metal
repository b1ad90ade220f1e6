struct hg_histogram_arguments {
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

constant ulong hg_histogram_sites[] = {
  0x1ul, 0x5ul, 0x800000000ul, 0x0ul,
  0x4ul, 0xffffffff00000008ul, 0x400000000ul, 0x0ul,
  0x1ul, 0x10000000bul, 0x700000000ul, 0x0ul,
};

// lanes may end before others of their block
kernel void hg_histogram(constant hg_histogram_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup uint4 shared_words[64];
  threadgroup uchar *shared = (threadgroup uchar *)shared_words;
  uint fault = 0;
  ulong fault_index = 0, fault_extent = 0;
  uint v4, v6, v13, v14, v36, v38, v40, v42, v44, v46, v48, v50;
  uint v52, v54, v56, v58, v60, v62, v64, v66, v68, v70, v72, v74;
  uint v76, v78, v80, v82, v84, v86, v88, v90, v92, v94, v96, v98;
  uint v100, v102, v104, v106, v108, v110, v112, v114;
  ulong v1, v7, v9, v10, v15, v16, v17, v21, v22, v23, v25, v30;
  ulong v31, v32, v34, v37, v39, v41, v43, v45, v47, v49, v51, v53;
  ulong v55, v57, v59, v61, v63, v65, v99, v101, v103, v105, v115;
  bool v3, v19, v26, v28, v35, v67, v69, v71, v73, v75, v77, v79;
  bool v81, v83, v85, v87, v89, v91, v93, v95, v97, v107, v109, v111;
  bool v113;
  ulong s2 = (ulong(a.s2));
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
    for (uint i = block_lane; i < 256; i += block_lanes) {
      ((threadgroup uint *)shared)[i] = 0;
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    v15 = ulong(a.n0);
    v16 = ulong(min(s2, v15));
    v7 = ulong(a.grid_x);
    v9 = ulong(v7 << 8);
    v30 = v9 * 15ul;
    v31 = ulong(max(v16, v30));
    v32 = v31 - v30;
    v21 = v9 * 3ul;
    v22 = ulong(max(v16, v21));
    v23 = v22 - v21;
    v19 = v9 < 0xffffffffffffffful;
    v25 = v19 ? v23 : 0ul;
    v28 = v9 < 0xffffffffffffffful;
    v34 = v28 ? v32 : 0ul;
    v17 = lane;
    while (true) {
      v26 = v17 < v25;
      if (v26 && steps >= 16) {
        v35 = v17 < v34;
        if (v35) {
          v37 = v17 + v9;
          v38 = *(device const uchar *)(a.p0 + v37);
          v39 = v37 + v9;
          v40 = *(device const uchar *)(a.p0 + v39);
          v41 = v39 + v9;
          v42 = *(device const uchar *)(a.p0 + v41);
          v43 = v41 + v9;
          v44 = *(device const uchar *)(a.p0 + v43);
          v45 = v43 + v9;
          v46 = *(device const uchar *)(a.p0 + v45);
          v47 = v45 + v9;
          v48 = *(device const uchar *)(a.p0 + v47);
          v49 = v47 + v9;
          v50 = *(device const uchar *)(a.p0 + v49);
          v51 = v49 + v9;
          v52 = *(device const uchar *)(a.p0 + v51);
          v53 = v51 + v9;
          v54 = *(device const uchar *)(a.p0 + v53);
          v55 = v53 + v9;
          v56 = *(device const uchar *)(a.p0 + v55);
          v57 = v55 + v9;
          v58 = *(device const uchar *)(a.p0 + v57);
          v59 = v57 + v9;
          v60 = *(device const uchar *)(a.p0 + v59);
          v61 = v59 + v9;
          v62 = *(device const uchar *)(a.p0 + v61);
          v63 = v61 + v9;
          v64 = *(device const uchar *)(a.p0 + v63);
          v65 = v63 + v9;
          v66 = *(device const uchar *)(a.p0 + v65);
          v36 = *(device const uchar *)(a.p0 + v17);
          v68 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v36) * 4), uint(1u), memory_order_relaxed));
          v70 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v38) * 4), uint(1u), memory_order_relaxed));
          v72 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v40) * 4), uint(1u), memory_order_relaxed));
          v74 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v42) * 4), uint(1u), memory_order_relaxed));
          v76 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v44) * 4), uint(1u), memory_order_relaxed));
          v78 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v46) * 4), uint(1u), memory_order_relaxed));
          v80 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v48) * 4), uint(1u), memory_order_relaxed));
          v82 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v50) * 4), uint(1u), memory_order_relaxed));
          v84 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v52) * 4), uint(1u), memory_order_relaxed));
          v86 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v54) * 4), uint(1u), memory_order_relaxed));
          v88 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v56) * 4), uint(1u), memory_order_relaxed));
          v90 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v58) * 4), uint(1u), memory_order_relaxed));
          v92 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v60) * 4), uint(1u), memory_order_relaxed));
          v94 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v62) * 4), uint(1u), memory_order_relaxed));
          v96 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v64) * 4), uint(1u), memory_order_relaxed));
          v98 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v66) * 4), uint(1u), memory_order_relaxed));
          v99 = v65 + v9;
          steps -= 16;
          v17 = v99;
          continue;
        } else {
          v101 = v17 + v9;
          v102 = *(device const uchar *)(a.p0 + v101);
          v103 = v101 + v9;
          v104 = *(device const uchar *)(a.p0 + v103);
          v105 = v103 + v9;
          v106 = *(device const uchar *)(a.p0 + v105);
          v100 = *(device const uchar *)(a.p0 + v17);
          v108 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v100) * 4), uint(1u), memory_order_relaxed));
          v110 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v102) * 4), uint(1u), memory_order_relaxed));
          v112 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v104) * 4), uint(1u), memory_order_relaxed));
          v114 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v106) * 4), uint(1u), memory_order_relaxed));
          v115 = v105 + v9;
          steps -= 4;
          v17 = v115;
          continue;
        }
      } else {
        v1 = v17;
        while (true) {
          v3 = v1 < s2;
          if (v3) {
            v4 = 0;
            {
              ulong i = v1, n = a.n0, e = i + 0x0ul;
              if (e >= n) {
                if (fault == 0) {
                  fault = 1;
                  fault_index = i;
                  fault_extent = n;
                }
              } else {
                v4 = *(device const uchar *)(a.p0 + e);
              }
            }
            v6 = uint(atomic_fetch_add_explicit((threadgroup atomic_uint *)(shared + 0 + ulong(v4) * 4), uint(1u), memory_order_relaxed));
            v10 = v1 + v9;
            if (steps == 0) {
              if (fault == 0) {
                fault = 2;
                fault_index = 0;
                fault_extent = 0;
              }
              go = 1;
              break;
            }
            steps--;
            v1 = v10;
            continue;
          } else {
            threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
            v13 = *(threadgroup const uint *)(shared + 0 + ulong(block_lane) * 4);
            v14 = 0;
            {
              ulong i = ulong(block_lane), n = a.n1, e = i + 0x0ul;
              if (e >= n) {
                if (fault == 0) {
                  fault = 3;
                  fault_index = i;
                  fault_extent = n;
                }
              } else {
                v14 = uint(atomic_fetch_add_explicit((device atomic_uint *)(a.p1 + e * 4), uint(v13), memory_order_relaxed));
              }
            }
            go = 1;
            break;
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
  if (fault != 0) keep_fault(a.fault_record, a.fault_flag, lane, fault_index, fault_extent, hg_histogram_sites + 4 * (fault - 1));
}

