// stft_power.cl - window, real FFT and one-sided power of overlapping frames, in one kernel.
//
// Defines : NFFT (power of two, 64 to 8192), WIN_LENGTH (2 to NFFT), N_PASSES (2 to 4) and
//           RADIX_1 to RADIX_4 (2, 4 or 8; their product is NFFT/2, those past N_PASSES are 1),
//           ITEM_VALUES (complex values a work-item holds, a multiple of every radix),
//           GROUP_FRAMES (frames a work-group computes), LOCAL_BUFFERS (1 or 2),
//           LOCAL_PAD (a gap of one value after so many, 0 for none).
// In      : samples  [channels][channel_stride] real [FS]; frame p of a channel starts at p * hop.
//           window   [NFFT] real [1]; entries from WIN_LENGTH on are not used.
//           twiddles [NFFT/2 - 1 + NFFT/4 + 1] cplx [1], laid out as spectrod/fft/twiddles.py says.
// Out     : power    [n_frames][channels][NFFT/2 + 1] real; bins 0 and NFFT/2 are not doubled.
// Scalars : hop [samples], n_frames, quarter_scale = a quarter of the factor from |X|^2 to power.
// NDRange : global (ITEMS * ceil(n_frames / GROUP_FRAMES), GROUP_FRAMES, channels),
//           local (ITEMS, GROUP_FRAMES, 1) with ITEMS = NFFT / 2 / ITEM_VALUES.
// Bounds  : frames past the last load zeros and store nothing; no item leaves before a barrier.
//           A frame reads its own WIN_LENGTH samples and nothing else.
// Source  : Stockham passes as Govindaraju et al. 2008; even-length real input as one complex
//           transform of half the length, Sorensen et al. 1987.
// Error   : relative L2 1.3e-7 (NFFT 64) to 1.7e-7 (8192) against float64; see README.md.

#include "dft.clh"

#if !defined(NFFT) || !defined(WIN_LENGTH) || !defined(N_PASSES) || !defined(RADIX_1)
#error "stft_power.cl needs NFFT, WIN_LENGTH, N_PASSES and RADIX_1 to RADIX_4"
#endif
#if RADIX_1 * RADIX_2 * RADIX_3 * RADIX_4 * 2 != NFFT
#error "stft_power.cl: the radices must multiply to NFFT / 2"
#endif
#ifndef ITEM_VALUES
#define ITEM_VALUES 8 // the least that a radix-8 pass can work on
#endif
#ifndef GROUP_FRAMES
#define GROUP_FRAMES 1
#endif
#ifndef LOCAL_BUFFERS
#define LOCAL_BUFFERS 1 // half the local memory of 2, for one more barrier a pass
#endif
#ifndef LOCAL_PAD
#define LOCAL_PAD 0
#endif

#define HALF  (NFFT / 2)
#define ITEMS (HALF / ITEM_VALUES)

// ---- Local memory: where value i of a frame lies ------------------------------------------------

#if LOCAL_PAD > 0
#define TILE_LENGTH   (HALF + HALF / LOCAL_PAD)
#define TILE_INDEX(i) ((i) + (i) / LOCAL_PAD)
#else
#define TILE_LENGTH   HALF
#define TILE_INDEX(i) (i)
#endif
#define TILE(pass) (tile + ((pass) - 1) % LOCAL_BUFFERS * TILE_LENGTH)

// ---- In registers -------------------------------------------------------------------------------

INLINE void dft_all(cplx *v, const int radix) {
    const int step = ITEM_VALUES / radix;
#pragma unroll
    for (int b = 0; b < step; b++)
        dft(v + b, step, radix);
}

// ---- Between memory and registers ---------------------------------------------------------------
// Register i of work-item t holds value t + i * ITEMS.

// Two neighbouring windowed samples make one complex value. vload2 needs the alignment of one
// sample only, so any hop is legal. Samples past the window are not read: they are another
// frame's, or nobody's.
INLINE cplx load_pair(__global const real *restrict frame,
                            __global const real *restrict window, const int m) {
    if (2 * m + 1 < WIN_LENGTH) {
        const float2 x = vload2(m, frame), w = vload2(m, window);
        return (cplx){x.x * w.x, x.y * w.y};
    }
    if (2 * m < WIN_LENGTH)
        return (cplx){frame[2 * m] * window[2 * m], 0};
    return (cplx){0, 0};
}

INLINE void load_tile(cplx *v, __local const cplx *tile, const int t) {
#pragma unroll
    for (int i = 0; i < ITEM_VALUES; i++)
        v[i] = tile[TILE_INDEX(t + i * ITEMS)];
}

// The Stockham order: what a butterfly makes lies `span` apart, `span` being the length of the
// transforms that the passes before have finished.
INLINE void store_tile(__local cplx *tile, const cplx *v, const int t, const int radix,
                             const int span) {
    const int step = ITEM_VALUES / radix;
#pragma unroll
    for (int b = 0; b < step; b++) {
        const int j = t + b * ITEMS, k = j % span;
        const int first = (j - k) * radix + k;
#pragma unroll
        for (int r = 0; r < radix; r++)
            tile[TILE_INDEX(first + r * span)] = v[b + r * step];
    }
}

INLINE void apply_twiddles(cplx *v, __global const cplx *restrict twiddles, const int t,
                                 const int radix, const int span) {
    __global const cplx *table = twiddles + span - 1;
    const int step = ITEM_VALUES / radix;
#pragma unroll
    for (int b = 0; b < step; b++) {
        const int k = (t + b * ITEMS) % span;
#pragma unroll
        for (int r = 1; r < radix; r++)
            v[b + r * step] = cmul(v[b + r * step], table[(r - 1) * span + k]);
    }
}

// ---- One pass from local memory to local memory -------------------------------------------------

INLINE void fft_pass(__local cplx *out, __local const cplx *in,
                           __global const cplx *restrict twiddles, const int t, const int radix,
                           const int span) {
    cplx v[ITEM_VALUES];
    load_tile(v, in, t);
#if LOCAL_BUFFERS == 1
    barrier(CLK_LOCAL_MEM_FENCE); // in and out are the same memory: all must have read it
#endif
    apply_twiddles(v, twiddles, t, radix, span);
    dft_all(v, radix);
    store_tile(out, v, t, radix, span);
    barrier(CLK_LOCAL_MEM_FENCE);
}

// ---- From the half-length complex transform to the power of the real one ------------------------

// Bins k and NFFT/2 - k come from the same two values. Both sums below are twice the spectrum,
// so the factor is a quarter of the power's.
INLINE void store_power_pair(__global real *restrict power, __local const cplx *z,
                                   __global const cplx *restrict turns, const int k,
                                   const real quarter_scale) {
    const cplx a = z[TILE_INDEX(k)], b = z[TILE_INDEX((HALF - k) % HALF)];
    const cplx even = {a.re + b.re, a.im - b.im};
    const cplx odd = cmul(turns[k], (cplx){a.im + b.im, b.re - a.re});
    const real scale = k == 0 ? quarter_scale : 2 * quarter_scale; // DC and Nyquist have no twin
    power[k] = scale * squared_magnitude(cadd(even, odd));
    power[HALF - k] = scale * squared_magnitude(csub(even, odd));
}

INLINE void store_power(__global real *restrict power, __local const cplx *z,
                              __global const cplx *restrict turns, const int t,
                              const real quarter_scale) {
#pragma unroll
    for (int i = 0; i < ITEM_VALUES / 2; i++)
        store_power_pair(power, z, turns, t + i * ITEMS, quarter_scale);
    if (t == 0)
        store_power_pair(power, z, turns, HALF / 2, quarter_scale);
}

// ---- The kernel ---------------------------------------------------------------------------------

__kernel __attribute__((reqd_work_group_size(ITEMS, GROUP_FRAMES, 1))) void
stft_power(__global real *restrict power, __global const real *restrict samples,
           __global const real *restrict window, __global const cplx *restrict twiddles,
           const ulong channel_stride, const uint hop, const uint n_frames,
           const real quarter_scale) {
    __local cplx tiles[GROUP_FRAMES][LOCAL_BUFFERS * TILE_LENGTH];
    __local cplx *tile = tiles[get_local_id(1)];
    const int t = get_local_id(0);
    const size_t channel = get_global_id(2), channels = get_global_size(2);
    const size_t frame = get_group_id(0) * GROUP_FRAMES + get_local_id(1);
    const bool exists = frame < n_frames;

    cplx v[ITEM_VALUES];
    __global const real *x = samples + channel * channel_stride + frame * hop;
#pragma unroll
    for (int i = 0; i < ITEM_VALUES; i++)
        v[i] = exists ? load_pair(x, window, t + i * ITEMS) : (cplx){0, 0};
    dft_all(v, RADIX_1);
    store_tile(TILE(1), v, t, RADIX_1, 1);
    barrier(CLK_LOCAL_MEM_FENCE);

    fft_pass(TILE(2), TILE(1), twiddles, t, RADIX_2, RADIX_1);
#if N_PASSES >= 3
    fft_pass(TILE(3), TILE(2), twiddles, t, RADIX_3, RADIX_1 * RADIX_2);
#endif
#if N_PASSES >= 4
    fft_pass(TILE(4), TILE(3), twiddles, t, RADIX_4, RADIX_1 * RADIX_2 * RADIX_3);
#endif

    if (exists)
        store_power(power + (frame * channels + channel) * (HALF + 1), TILE(N_PASSES),
                    twiddles + HALF - 1, t, quarter_scale);
}
