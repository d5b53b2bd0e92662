// stft_bands.cl - weighted sums over neighbouring bins of power: one work-group adds up some bands.
//
// Defines : IQ (1: two-sided spectra), BAND_ITEMS (a power of two: work-items that add up a band).
// In      : lines [n_lines][n_bins] cplx, from one to the next pitch, as transforms leave them.
//           rows [3][n_bands]: first bin in ascending order of frequency, number of bins, number of
//           the first weight. weights real, of one band after the other.
// Out     : sums [n_lines][n_bands] real.
// Scalars : nfft; first_band, past_band: the bands of this launch.
// NDRange : global (GROUP * any, any), local (GROUP, 1), GROUP = max(64, BAND_ITEMS): dimension 0
//           runs over the items of all bands, 1 over lines.
// Bounds  : items past the last band add nothing; no item leaves before a barrier.
// Source  : Kahan 1965.
// Error   : an ulp for each weight and power, one for every doubling of BAND_ITEMS. A sum of
//           infinite powers is NaN.

#include "stft_order.clh"

#define GROUP       (BAND_ITEMS > 64 ? BAND_ITEMS : 64)
#define GROUP_BANDS (GROUP / BAND_ITEMS)

// Every BAND_ITEMS-th bin, so that neighbours read neighbours.
INLINE real partial_sum(__global const cplx *restrict line, __global const real *restrict weights,
                        const ulong first, const ulong count, const ulong item, const ulong nfft) {
    real sum = 0, lost = 0;
    for (ulong i = item; i < count; i += BAND_ITEMS) {
        const real term = weights[i] * squared_magnitude(line[place_of(first + i, nfft)]) - lost;
        const real next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    return sum;
}

#if BAND_ITEMS > 1
INLINE real sum_of_items(__local real *sums, const real own, const int item) {
    sums[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int step = BAND_ITEMS / 2; step > 0; step /= 2) {
        if (item < step)
            sums[item] += sums[item + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const real sum = sums[0];
    barrier(CLK_LOCAL_MEM_FENCE); // the next line's sums go where this one was
    return sum;
}
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
sum_bands(__global real *restrict sums, __global const cplx *restrict lines, const ulong pitch,
          __global const ulong *restrict rows, __global const real *restrict weights,
          const ulong n_lines, const ulong n_bands, const ulong nfft, const ulong first_band,
          const ulong past_band) {
    const int item = get_local_id(0) % BAND_ITEMS;
    const ulong band = first_band + get_group_id(0) * GROUP_BANDS + get_local_id(0) / BAND_ITEMS;
    const ulong row = min(band, past_band - 1);
    const ulong first = rows[row], count = band < past_band ? rows[n_bands + row] : 0;
#if BAND_ITEMS > 1
    __local real partial[GROUP];
    __local real *own = partial + get_local_id(0) / BAND_ITEMS * BAND_ITEMS;
#endif
    for (size_t l = get_global_id(1); l < n_lines; l += get_global_size(1)) {
        real sum = partial_sum(lines + l * pitch, weights + rows[2 * n_bands + row], first, count,
                               item, nfft);
#if BAND_ITEMS > 1
        sum = sum_of_items(own, sum, item);
#endif
        if (item == 0 && band < past_band)
            sums[l * n_bands + band] = sum;
    }
}
