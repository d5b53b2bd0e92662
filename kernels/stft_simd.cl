// stft_simd.cl - frames of samples to their spectra, bands, averages or levels in one launch, with
// vectors for registers, for CPUs: no local memory, no barrier; a work-item computes frames one
// after the other, in memory of its own, and writes nothing but what is asked for.
//
// Defines : N, LANES (8 or 16), COLUMNS (1: the lanes are columns of one frame, see
//           stft_simd_columns.clh; 0: they are frames, see stft_simd_lines.clh), SCRATCH and the
//           radices as fft_simd.cl says; OWN_VALUES (cplx of LANES in a work-item's own memory).
//           IQ (0: real samples, N = NFFT / 2; 1: I/Q, N = NFFT), WIN_LENGTH (samples under the
//           window, up to IQ ? N : 2 N), FORMAT (16, 24, 32: bits of an integer sample; 0: float),
//           INTERLEAVED, COMPLEX_OUT, WEIGHTED, DECIBELS (0 or 1), N_BANDS (count, 0 for none),
//           AVERAGING (0 none, 1 mean, 2 maximum, 3 minimum, 4 exponential).
//           PLACED as in stft_places.clh.
//           STAGED (COLUMNS only; 1: a frame is first copied to own memory, from its beginning to
//           its end), always where its samples are not a row of neighbours under a full window.
// In      : source     samples; sample p of channel c is the one numbered c pitch + p, or p pitch +
//                      c if INTERLEAVED. Frame f begins at p = first + f hop; if PLACED see below.
//           twiddles   as fft_simd.cl says; lane_twiddles, real_twiddles, window: see the layouts.
//           weights    [bins] scalar, if WEIGHTED.
//           bands      [N_BANDS][2] int: a band's first bin, and how many it has.
//           band_weights [] scalar, one band's after the other's, each filled up to whole vectors
//                      if COLUMNS.
//           state      [channels][values] scalar, if AVERAGING: linear, a mean's the sum; of those
//                      that add up [channels][2][values], second what rounding lost. Read if
//                      primed.
//           scratch    OWN_VALUES cplx of LANES a work-item, if SCRATCH; else not read.
// Out     : out        [rows][channels][values] scalar, or two of them if COMPLEX_OUT; values are
//                      N_BANDS, or the bins. Power is |X|^2, of a real frame's bins 0 and N half.
//           state      where the last row is not complete, or never ends (exponential).
// Scalars : n_frames, channels (of results), pitch, first, hop; frames (a row of an average has),
//           done (frames that the first row has already), primed; tasks (in all) and chunk (tasks
//           a work-item computes); row_num, row_den, row_phase; smoothing; floor_db. A task is a
//           frame of a channel (COLUMNS), LANES consecutive ones (not COLUMNS), or if AVERAGING a
//           row, if exponential a channel.
// NDRange : global (items, 1, 1) with items * chunk covering all tasks, local (1, 1, 1).
// Bounds  : no byte of `source` outside the frames is read, none of `out` outside the rows written.
// Source  : fft_simd.cl; real frames as complex ones of half the length (Sorensen 1987).
// Error   : relative L2 of power 1.5e-7; see README.md.

#include "decibels.clh"
#include "dft.clh"
#include "fft_simd_passes.clh"
#include "stft_places.clh"
#include "stft_simd_results.clh"
#include "stft_simd_samples.clh"

// What all work-items of a launch have in common.
typedef struct {
    __global scalar *out;
    __global const sample *source;
    __global const scalar *twiddles, *lane_twiddles, *real_twiddles, *window;
    results_spec results;
    __global scalar *state;
    ulong n_frames, channels, pitch, first, hop;
    ulong frames, done;
    bool primed;
    scalar smoothing;
    ulong row_num, row_den, row_phase;
} launch;

// First sample of a frame: its number times the values of type `sample` that each one takes.
INLINE __global const sample *frame_of(const launch *l, const ulong channel, const ulong frame) {
    const ulong place = l->first + begin_of(frame, l->hop, l->frames, l->done, l->row_num,
                                            l->row_den, l->row_phase);
    const ulong part = channel * PARTS;
    const ulong number = INTERLEAVED ? place * l->pitch + part : part * l->pitch + place;
    return l->source + number * SAMPLE_STEP;
}

#if COLUMNS
#include "stft_simd_columns.clh"
#else
#include "stft_simd_lines.clh"
#endif

#if AVERAGING
#include "stft_simd_average.clh"
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void stft_simd(
    __global scalar *out, __global const sample *source, __global const scalar *restrict twiddles,
    __global const scalar *restrict lane_twiddles, __global const scalar *restrict real_twiddles,
    __global const scalar *restrict window, __global const scalar *restrict weights,
    __global const int *restrict bands, __global const scalar *restrict band_weights,
    __global scalar *state, __global cplx *scratch, const ulong n_frames, const ulong channels,
    const ulong pitch, const ulong first, const ulong hop, const ulong frames, const ulong done,
    const ulong primed, const ulong tasks, const ulong chunk, const ulong row_num,
    const ulong row_den, const ulong row_phase, const scalar smoothing, const scalar floor_db) {
#if SCRATCH
    OWN cplx *own = scratch + get_group_id(0) * OWN_VALUES;
#else
    cplx own[OWN_VALUES];
#endif
    const launch l = {out,
                      source,
                      twiddles,
                      lane_twiddles,
                      real_twiddles,
                      window,
                      {weights, bands, band_weights, floor_db},
                      state,
                      n_frames,
                      channels,
                      pitch,
                      first,
                      hop,
                      frames,
                      done,
                      primed != 0,
                      smoothing,
                      row_num,
                      row_den,
                      row_phase};
    const ulong end = min(tasks, (get_group_id(0) + 1) * chunk);
    for (ulong task = get_group_id(0) * chunk; task < end; task++)
        compute(&l, own, task);
}
