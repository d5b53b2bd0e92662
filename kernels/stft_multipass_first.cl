// stft_multipass_first.cl - the first pass of long frames' transforms: columns of frames, which are
// read in place and windowed, to lines. The passes between are those of fft_local.cl. For GPUs.
//
// Defines : N (length of this pass) and all that fft_local_passes.clh and fft_local_lines.clh need;
//           N_COLUMNS (lines of N values that make the complex transform of a frame, of half its
//           length or, with IQ, all of it); WIN_LENGTH, FORMAT, ALIGNED, INTERLEAVED, IQ and PLACED
//           as in stft_local.cl.
// In      : samples  see `Samples` in spectrod/analysis/stft/stft_stage.py.
//           window   [N N_COLUMNS] cplx: factors of a value's two parts.
//           twiddles, column_twiddles   as in fft_local.cl.
// Out     : lines    [frames * channels][N][N_COLUMNS] cplx.
// Scalars : n_lines = frames * channels; frame_first, the number of line 0's frame; others as in
//           stft_frames.cl.
// NDRange : global (ITEMS * LINES * groups), local (ITEMS * LINES): over N_COLUMNS columns of each
//           line.
// Bounds  : columns past the last load zeros and store nothing; no item leaves before a barrier. A
//           frame reads its own WIN_LENGTH samples and nothing else.
// Source  : as fft_local.cl.   Error: relative L2 of the power: see README.md.

#include "dft.clh"
#include "dft_fused.clh"

#define MIRRORS_FIRST 0
#define MIRRORS_LAST  0
#define STORES_PAIRS  0
#define TILE_BUFFERS  1
#define LOADS_REALS   0
#define STORES_REALS  0
#define INVERSE       0
#define IN_UNIT       1
#define OUT_UNIT      0

// clang-format off: each needs those before it
#include "fft_local_passes.clh"
#include "fft_local_lines.clh"
// clang-format on

#include "fft_local_pairs.clh"
#include "stft_places.clh"
// clang-format off: each needs those before it
#include "stft_samples.clh"
#include "stft_values.clh"
// clang-format on

__kernel __attribute__((reqd_work_group_size(ITEMS * LINES, 1, 1))) void
transform_frames(__global cplx *lines, __global const sample *restrict samples,
                 __global const cplx *restrict window, __global const cplx *restrict twiddles,
                 __global const cplx *restrict column_twiddles, const ulong first,
                 const ulong pitch, const ulong hop, const ulong row_num, const ulong row_den,
                 const ulong row_phase, const uint frame_first, const uint row_frames,
                 const uint done, const uint n_lines, const uint first_channel,
                 const uint channels) {
    __local exchanged tiles[TILES];
    buffers tile = {tiles + TILE_START, tiles + LAST_TILE_START};
    const int t = ITEM();
    const ulong number = get_group_id(0) * (ulong)LINES + LINE();
    const uint line = number / N_COLUMNS, column = number % N_COLUMNS;
    const bool exists = line < n_lines;
    const uint frame = line / channels;
    const ulong channel = PARTS * (ulong)(first_channel + line - frame * channels);
    const ulong place = first + begin_of(frame_first + (ulong)frame, hop, row_frames, done, row_num,
                                         row_den, row_phase);
    samples += SAMPLE_STEP * (INTERLEAVED ? channel + place * pitch : channel * pitch + place);

    cplx v[VALUES];
#pragma unroll
    for (int b = 0; b < BUTTERFLIES(RADIX_1); b++) {
        const int j = t + b * ITEMS;
        const int first_value = column + j * N_COLUMNS;
        const bool is_mine = exists && (IS_WHOLE(RADIX_1) || j < N / RADIX_1);
#pragma unroll
        for (int r = 0; r < RADIX_1; r++) {
            const int step = r * (N / RADIX_1) * N_COLUMNS;
            v[b * RADIX_1 + r] = is_mine ? windowed(load_value(samples, pitch, first_value, step),
                                                    (window + first_value)[step])
                                         : (cplx){0, 0};
        }
    }
    transform(v, &tile, twiddles, t, NOT_MIRRORED);
    if (exists)
        store_line(lines + line * (ulong)(N * N_COLUMNS) + column, N_COLUMNS, v, column_twiddles, t,
                   column, 1, RADIX_LAST);
}
