/* kernels.cu - CUDA C beside which programs of blocks are timed: what a careful programmer writes, no access checked.
 * NVRTC compiles it. */

typedef unsigned int u32;

/* A pixel a thread, found by its number; 256 threads a block. */
extern "C" __global__ void blur(const float *__restrict__ x, float *__restrict__ y, u32 width, u32 height) {
  u32 at = blockIdx.x * 256 + threadIdx.x, row = at / width, column = at - row * width;
  u32 above = (max(row, 1u) - 1) * width, below = min(row + 1, height - 1) * width, own = row * width;
  u32 left = max(column, 1u) - 1, right = min(column + 1, width - 1);
  float corners = (x[above + left] + x[above + right]) + (x[below + left] + x[below + right]);
  float sides = (x[above + column] + x[below + column]) + (x[own + left] + x[own + right]);
  y[at] = fmaf(x[own + column], 4.0f, fmaf(sides, 2.0f, corners)) * 0.0625f;
}

/* Tiles of 64 x 64 by 64 x 4 threads. */
extern "C" __global__ void transpose(const float *__restrict__ x, float *__restrict__ y, u32 rows, u32 columns) {
  __shared__ float tile[64 * 65];
  u32 left = blockIdx.x * 64, top = blockIdx.y * 64;
#pragma unroll
  for (u32 i = 0; i < 64; i += 4)
    tile[(i + threadIdx.y) * 65 + threadIdx.x] = x[(top + i + threadIdx.y) * columns + left + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (u32 i = 0; i < 64; i += 4)
    y[(left + i + threadIdx.y) * rows + top + threadIdx.x] = tile[threadIdx.x * 65 + i + threadIdx.y];
}

/* Counts of bytes, sixteen a load, in the shared memory of a block of 256 threads, then added to y. */
extern "C" __global__ void histogram(const uint4 *__restrict__ x, u32 *__restrict__ y, u32 count) {
  __shared__ u32 bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (u32 at = blockIdx.x * 256 + threadIdx.x; at < count / 16; at += gridDim.x * 256) {
    uint4 given = x[at];
    u32 words[4] = {given.x, given.y, given.z, given.w};
#pragma unroll
    for (int i = 0; i < 16; i++) atomicAdd(&bins[words[i / 4] >> i % 4 * 8 & 255], 1u);
  }
  __syncthreads();
  atomicAdd(&y[threadIdx.x], bins[threadIdx.x]);
}

/* The product of matrices by tiles of 128 x 128, steps of 8 along k, two tiles each in shared memory; 256 threads of
 * 8 x 8 results. */
enum { STEP = 8, PITCH = 132, WIDTH = 128 };

typedef unsigned short bf16; /* its bits */

__device__ float4 four(const float *from) { return *(const float4 *)from; }
__device__ float4 four(const bf16 *from) {
  uint2 two = *(const uint2 *)from;
  return make_float4(__uint_as_float(two.x << 16), __uint_as_float(two.x & 0xffff0000), __uint_as_float(two.y << 16),
                     __uint_as_float(two.y & 0xffff0000));
}
__device__ u32 rounded(float x) { /* no NaN comes here */
  u32 bits = __float_as_uint(x);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
__device__ void keep(float *to, const float *x) { *(float4 *)to = make_float4(x[0], x[1], x[2], x[3]); }
__device__ void keep(bf16 *to, const float *x) {
  *(uint2 *)to = make_uint2(rounded(x[0]) | rounded(x[1]) << 16, rounded(x[2]) | rounded(x[3]) << 16);
}

template <bool tree, typename T>
__device__ void product(const T *__restrict__ a, const T *__restrict__ b, T *__restrict__ y, u32 n, u32 k) {
  __shared__ __align__(16) float tile_a[2][STEP][PITCH], tile_b[2][STEP][WIDTH];
  u32 thread = threadIdx.x, top = blockIdx.y * 128, left = blockIdx.x * 128;
  u32 row_a = thread >> 1, column_a = (thread & 1) * 4, row_b = thread >> 5, column_b = (thread & 31) * 4;
  u32 row = (thread >> 7) * 64 + (thread >> 2 & 7) * 4, column = (thread >> 5 & 3) * 32 + (thread & 3) * 4;
  const T *from_a = a + (top + row_a) * k + column_a, *from_b = b + row_b * n + left + column_b;
  float total[8][8] = {}, counter[6][64]; /* of the results of 256 products each, where they fold in a tree */
  float4 next_a = four(from_a), next_b = four(from_b);
  u32 buffer = 0;
  for (u32 done = 0; done < k; done += STEP) {
    tile_a[buffer][column_a][row_a] = next_a.x;
    tile_a[buffer][column_a + 1][row_a] = next_a.y;
    tile_a[buffer][column_a + 2][row_a] = next_a.z;
    tile_a[buffer][column_a + 3][row_a] = next_a.w;
    *(float4 *)&tile_b[buffer][row_b][column_b] = next_b;
    __syncthreads();
    if (done + STEP < k) {
      from_a += STEP;
      from_b += STEP * n;
      next_a = four(from_a);
      next_b = four(from_b);
    }
#pragma unroll
    for (int i = 0; i < STEP; i++) {
      float4 a0 = *(const float4 *)&tile_a[buffer][i][row], a1 = *(const float4 *)&tile_a[buffer][i][row + 32];
      float4 b0 = *(const float4 *)&tile_b[buffer][i][column], b1 = *(const float4 *)&tile_b[buffer][i][column + 16];
      float down[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
      float across[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
      for (int r = 0; r < 8; r++)
#pragma unroll
        for (int q = 0; q < 8; q++) total[r][q] = fmaf(down[r], across[q], total[r][q]);
    }
    buffer ^= 1;
    if (tree && ((done + STEP) % 256 == 0 || done + STEP >= k)) {
      int level = 0, last = done + STEP >= k;
      for (u32 chains = done / 256; last ? chains != 0 : chains & 1; chains >>= 1, level++)
        if (chains & 1)
#pragma unroll
          for (int i = 0; i < 64; i++) total[i / 8][i % 8] = counter[level][i] + total[i / 8][i % 8];
      if (!last)
#pragma unroll
        for (int i = 0; i < 64; i++) {
          counter[level][i] = total[i / 8][i % 8];
          total[i / 8][i % 8] = 0;
        }
    }
  }
#pragma unroll
  for (int r = 0; r < 8; r++) {
    T *out = y + (top + row + r / 4 * 32 + r % 4) * n + left + column;
    keep(out, total[r]);
    keep(out + 16, total[r] + 4);
  }
}

extern "C" __global__ __launch_bounds__(256, 2) void matmul(const float *__restrict__ a, const float *__restrict__ b,
                                                            float *__restrict__ y, u32 n, u32 k) {
  product<false>(a, b, y, n, k);
}

extern "C" __global__ __launch_bounds__(256, 2) void matmul_tree(const float *__restrict__ a,
                                                                 const float *__restrict__ b, float *__restrict__ y,
                                                                 u32 n, u32 k) {
  product<true>(a, b, y, n, k);
}

extern "C" __global__ __launch_bounds__(256, 2) void matmul_bf16(const bf16 *__restrict__ a, const bf16 *__restrict__ b,
                                                                 bf16 *__restrict__ y, u32 n, u32 k) {
  product<false>(a, b, y, n, k);
}

/* The same of signed bytes, four a word along k, with the second matrix by its columns: sums of 32 bits. */
extern "C" __global__ __launch_bounds__(256, 2) void matmul_int8(const int *__restrict__ a, const int *__restrict__ b,
                                                                 int *__restrict__ y, u32 n, u32 k) {
  __shared__ __align__(16) int tile_a[2][STEP][PITCH], tile_b[2][STEP][PITCH];
  u32 thread = threadIdx.x, top = blockIdx.y * 128, left = blockIdx.x * 128, own = thread >> 1, word = (thread & 1) * 4;
  u32 row = (thread >> 7) * 64 + (thread >> 2 & 7) * 4, column = (thread >> 5 & 3) * 32 + (thread & 3) * 4;
  const int *from_a = a + (top + own) * k + word, *from_b = b + (left + own) * k + word;
  int total[8][8] = {};
  int4 next_a = *(const int4 *)from_a, next_b = *(const int4 *)from_b;
  u32 buffer = 0;
  for (u32 done = 0; done < k; done += STEP) {
    int words_a[4] = {next_a.x, next_a.y, next_a.z, next_a.w}, words_b[4] = {next_b.x, next_b.y, next_b.z, next_b.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      tile_a[buffer][word + i][own] = words_a[i];
      tile_b[buffer][word + i][own] = words_b[i];
    }
    __syncthreads();
    if (done + STEP < k) {
      from_a += STEP;
      from_b += STEP;
      next_a = *(const int4 *)from_a;
      next_b = *(const int4 *)from_b;
    }
#pragma unroll
    for (int i = 0; i < STEP; i++) {
      int4 a0 = *(const int4 *)&tile_a[buffer][i][row], a1 = *(const int4 *)&tile_a[buffer][i][row + 32];
      int4 b0 = *(const int4 *)&tile_b[buffer][i][column], b1 = *(const int4 *)&tile_b[buffer][i][column + 16];
      int down[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
      int across[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
      for (int r = 0; r < 8; r++)
#pragma unroll
        for (int q = 0; q < 8; q++) total[r][q] = __dp4a(down[r], across[q], total[r][q]);
    }
    buffer ^= 1;
  }
#pragma unroll
  for (int r = 0; r < 8; r++) {
    int *out = y + (top + row + r / 4 * 32 + r % 4) * n + left + column;
    *(int4 *)out = make_int4(total[r][0], total[r][1], total[r][2], total[r][3]);
    *(int4 *)(out + 16) = make_int4(total[r][4], total[r][5], total[r][6], total[r][7]);
  }
}
