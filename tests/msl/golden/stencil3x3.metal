struct hg_stencil3x3_arguments {
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
};

constant ulong hg_stencil3x3_sites[] = {
  0x1ul, 0x45ul, 0x300000000ul, 0x0ul,
  0x1ul, 0x45ul, 0x300000000ul, 0x0ul,
  0x1ul, 0x10000001eul, 0x400000000ul, 0x1ul,
  0x1ul, 0x10000002dul, 0x400000000ul, 0x6ul,
  0x1ul, 0x10000001bul, 0x400000000ul, 0x0ul,
  0x1ul, 0x100000024ul, 0x400000000ul, 0x3ul,
  0x1ul, 0x100000027ul, 0x400000000ul, 0x4ul,
  0x1ul, 0x10000002aul, 0x400000000ul, 0x5ul,
  0x1ul, 0x100000030ul, 0x400000000ul, 0x7ul,
  0x1ul, 0x100000021ul, 0x400000000ul, 0x2ul,
  0x1ul, 0x100000033ul, 0x400000000ul, 0x8ul,
  0x1ul, 0x200000036ul, 0x300000000ul, 0x0ul,
};

kernel void hg_stencil3x3(constant hg_stencil3x3_arguments &a [[buffer(0)]], uint block_lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
  threadgroup uint4 shared_words[81];
  threadgroup uchar *shared = (threadgroup uchar *)shared_words;
  uint fault = 0;
  ulong fault_index = 0, fault_extent = 0;
  uint v2, v3, v4, v6, v7, v9, v10, v12, v14, v15, v17, v18;
  uint v19, v20, v21, v22, v23, v24, v25, v26, v27, v28, v31, v34;
  uint v35, v36, v37, v38, v39, v40, v41, v42, v43, v44, v45, v48;
  uint v49, v52, v53, v57, v58, v59, v60, v61, v62, v63, v64, v65;
  uint v66, v67, v68, v69, v70, v71, v72, v73, v74, v75, v76, v77;
  uint v78, v79, v80, v81, v82, v83, v84, v85, v86, v87;
  bool v33, v50, v51, v54, v55, v56;
  uint s3 = (uint(a.s3));
  uint s4 = (uint(a.s4));
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
      v2 = div_u32(block_lane, 18u);
      v3 = uint(v2);
      v4 = uint(block_y);
      v6 = uint(v4 << 4);
      v7 = uint(v6);
      v9 = v7 + 0xffffffffu;
      v10 = v3 + v9;
      v12 = uint(max(int(v10), int(0u)));
      v14 = s4 + 0xffffffffu;
      v15 = uint(min(int(v12), int(v14)));
      v17 = uint(block_x);
      v18 = uint(v17 << 4);
      v19 = uint(v18);
      v20 = v19 + 0xffffffffu;
      v21 = rem_u32(block_lane, 18u);
      v22 = uint(v21);
      v23 = v20 + v22;
      v24 = uint(max(int(v23), int(0u)));
      v25 = s3 + 0xffffffffu;
      v26 = uint(min(int(v24), int(v25)));
      v27 = v15 * s3 + v26;
      v28 = 0;
      {
        ulong i = ulong(long(int(v27))), n = a.n0, e = i + 0x0ul;
        if (e >= n) {
          if (fault == 0) {
            fault = 1;
            fault_index = i;
            fault_extent = n;
          }
        } else {
          v28 = *(device const uint *)(a.p0 + e * 4);
        }
      }
      for (uint i = block_lane; i < 324; i += block_lanes) {
        ((threadgroup uint *)shared)[i] = 0;
      }
      threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
      *(threadgroup uint *)(shared + 0 + ulong(block_lane) * 4) = uint(v28);
      v31 = block_lane + 256u;
      v33 = v31 < 324u;
      if (v33) {
        v34 = div_u32(v31, 18u);
        v35 = uint(v34);
        v36 = v9 + v35;
        v37 = uint(max(int(v36), int(0u)));
        v38 = uint(min(int(v14), int(v37)));
        v39 = rem_u32(v31, 18u);
        v40 = uint(v39);
        v41 = v20 + v40;
        v42 = uint(max(int(v41), int(0u)));
        v43 = uint(min(int(v25), int(v42)));
        v44 = s3 * v38 + v43;
        v45 = 0;
        {
          ulong i = ulong(long(int(v44))), n = a.n0, e = i + 0x0ul;
          if (e >= n) {
            if (fault == 0) {
              fault = 2;
              fault_index = i;
              fault_extent = n;
            }
          } else {
            v45 = *(device const uint *)(a.p0 + e * 4);
          }
        }
        *(threadgroup uint *)(shared + 0 + ulong(v31) * 4) = uint(v45);
        break;
      } else {
        break;
      }
    } while (false);
    v48 = uint(global_x);
    v49 = uint(v48);
    v50 = int(v49) < int(s3);
    v51 = !v50;
    v52 = uint(global_y);
    v53 = uint(v52);
    v54 = int(v53) < int(s4);
    v55 = !v54;
    v56 = v51 || v55;
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    if (v56) {
      break;
    } else {
      v61 = 0;
      {
        ulong i = 0ul, n = a.n1, e = i + 0x1ul;
        if (e >= n) {
          if (fault == 0) {
            fault = 3;
            fault_index = i;
            fault_extent = n;
          }
        } else {
          v61 = *(device const uint *)(a.p1 + e * 4);
        }
      }
      v62 = 0;
      {
        ulong i = 0ul, n = a.n1, e = i + 0x6ul;
        if (e >= n) {
          if (fault == 0) {
            fault = 4;
            fault_index = i;
            fault_extent = n;
          }
        } else {
          v62 = *(device const uint *)(a.p1 + e * 4);
        }
      }
      v63 = 0;
      {
        ulong i = 0ul, n = a.n1, e = i + 0x0ul;
        if (e >= n) {
          if (fault == 0) {
            fault = 5;
            fault_index = i;
            fault_extent = n;
          }
        } else {
          v63 = *(device const uint *)(a.p1);
        }
      }
      v65 = 0;
      {
        ulong i = 0ul, n = a.n1, e = i + 0x3ul;
        if (e >= n) {
          if (fault == 0) {
            fault = 6;
            fault_index = i;
            fault_extent = n;
          }
        } else {
          v65 = *(device const uint *)(a.p1 + e * 4);
        }
      }
      v69 = 0;
      {
        ulong i = 0ul, n = a.n1, e = i + 0x4ul;
        if (e >= n) {
          if (fault == 0) {
            fault = 7;
            fault_index = i;
            fault_extent = n;
          }
        } else {
          v69 = *(device const uint *)(a.p1 + e * 4);
        }
      }
      v70 = 0;
      {
        ulong i = 0ul, n = a.n1, e = i + 0x5ul;
        if (e >= n) {
          if (fault == 0) {
            fault = 8;
            fault_index = i;
            fault_extent = n;
          }
        } else {
          v70 = *(device const uint *)(a.p1 + e * 4);
        }
      }
      v71 = 0;
      {
        ulong i = 0ul, n = a.n1, e = i + 0x7ul;
        if (e >= n) {
          if (fault == 0) {
            fault = 9;
            fault_index = i;
            fault_extent = n;
          }
        } else {
          v71 = *(device const uint *)(a.p1 + e * 4);
        }
      }
      v74 = 0;
      {
        ulong i = 0ul, n = a.n1, e = i + 0x2ul;
        if (e >= n) {
          if (fault == 0) {
            fault = 10;
            fault_index = i;
            fault_extent = n;
          }
        } else {
          v74 = *(device const uint *)(a.p1 + e * 4);
        }
      }
      v77 = 0;
      {
        ulong i = 0ul, n = a.n1, e = i + 0x8ul;
        if (e >= n) {
          if (fault == 0) {
            fault = 11;
            fault_index = i;
            fault_extent = n;
          }
        } else {
          v77 = *(device const uint *)(a.p1 + e * 4);
        }
      }
      v57 = uint(thread_y);
      v58 = uint(thread_x);
      v59 = v57 * 18u + v58;
      v73 = *(threadgroup const uint *)(shared + 0 + ulong(v59) * 4);
      v79 = mul_f32(v63, v73);
      {
        ulong e = ulong(v59) + 0x1ul;
        v68 = *(threadgroup const uint *)(shared + 0 + e * 4);
      }
      v80 = fma_f32(v61, v68, v79);
      {
        ulong e = ulong(v59) + 0x2ul;
        v67 = *(threadgroup const uint *)(shared + 0 + e * 4);
      }
      v81 = fma_f32(v67, v74, v80);
      {
        ulong e = ulong(v59) + 0x12ul;
        v66 = *(threadgroup const uint *)(shared + 0 + e * 4);
      }
      v82 = fma_f32(v65, v66, v81);
      {
        ulong e = ulong(v59) + 0x13ul;
        v72 = *(threadgroup const uint *)(shared + 0 + e * 4);
      }
      v83 = fma_f32(v69, v72, v82);
      {
        ulong e = ulong(v59) + 0x14ul;
        v75 = *(threadgroup const uint *)(shared + 0 + e * 4);
      }
      v84 = fma_f32(v70, v75, v83);
      {
        ulong e = ulong(v59) + 0x24ul;
        v76 = *(threadgroup const uint *)(shared + 0 + e * 4);
      }
      v85 = fma_f32(v62, v76, v84);
      {
        ulong e = ulong(v59) + 0x25ul;
        v60 = *(threadgroup const uint *)(shared + 0 + e * 4);
      }
      v86 = fma_f32(v60, v71, v85);
      {
        ulong e = ulong(v59) + 0x26ul;
        v64 = *(threadgroup const uint *)(shared + 0 + e * 4);
      }
      v87 = fma_f32(v64, v77, v86);
      v78 = s3 * v53 + v49;
      {
        ulong i = ulong(long(int(v78))), n = a.n2, e = i + 0x0ul;
        if (e >= n) {
          if (fault == 0) {
            fault = 12;
            fault_index = i;
            fault_extent = n;
          }
        } else {
          *(device uint *)(a.p2 + e * 4) = uint(v87);
        }
      }
      break;
    }
  } while (false);
  if (fault != 0) keep_fault(a.fault_record, a.fault_flag, lane, fault_index, fault_extent, hg_stencil3x3_sites + 4 * (fault - 1));
}

