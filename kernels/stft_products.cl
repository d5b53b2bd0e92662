// stft_products.cl - from lines of spectra to what is asked for: power, bands, averages, levels.
//
// Defines : IQ (1: two-sided spectra, written in ascending order of frequency; 0: half spectra),
//           WEIGHTED (1: each bin's power has a factor), BAND_SUMS (1: the values are those of
//           stft_bands.cl), DECIBELS (1: levels), AVERAGING (over frames, 0: none, 1: mean, 2:
//           maximum, 3: minimum, 4: exponential).
// In      : lines [frames * channels], each from one to the next pitch; of spectra as transforms
//           leave them, cplx, or of bands' sums, real. weights [n_bins] real, of the power of bins
//           in ascending order of frequency.
// Out     : rows; channel c of row r begins at value first + r * row_pitch + c * n_values of out.
//           state [channels][n_values] real, from value state_first on: read where primed, written
//           where a row is unfinished, or the average exponential; of averages that add up
//           [channels][2][n_values], second what rounding lost.
// Scalars : nfft, floor_db [dB], frames (a row), done (frames that row 0 has in state).
// NDRange : global (64 * any, any), local (64, 1): dimension 0 runs over values, 1 over the lines,
//           rows or channels named with the kernel.
// Bounds  : nothing but the values named is read or written. What is not a number stays so, through
//           maxima and levels too.
// Source  : Heinzel et al. 2002 for bins without a twin; average.clh.
// Error   : that of the transform, one rounding of each factor, and an ulp for any number of
//           frames.

#include "decibels.clh"
#include "stft_order.clh"

#if BAND_SUMS
typedef real value;
#else
typedef cplx value;
#endif

// ---- One value of a line ------------------------------------------------------------------------

INLINE real power_of(__global const value *restrict line, const ulong v,
                     __global const real *restrict weights, const ulong nfft) {
#if BAND_SUMS
    return line[v];
#else
    const real power = squared_magnitude(line[place_of(v, nfft)]);
#if WEIGHTED
    return power * weights[v];
#elif IQ
    return power;
#else
    return v == 0 || 2 * v == nfft ? CONSTANT(0.5) * power : power;
#endif
#endif
}

INLINE real finished(const real power, const real floor_db) {
#if DECIBELS
    return decibels(power, floor_db);
#else
    return power;
#endif
}

// ---- Every frame a row --------------------------------------------------------------------------

// Over lines. Complex spectra, in ascending order.
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
write_spectra(__global cplx *restrict out, const ulong first, const ulong row_pitch,
              const ulong n_values, __global const cplx *restrict lines, const ulong pitch,
              const ulong n_lines, const ulong channels, const ulong nfft) {
    for (size_t l = get_global_id(1); l < n_lines; l += get_global_size(1)) {
        const ulong frame = l / channels, channel = l - frame * channels;
        __global cplx *row = out + first + frame * row_pitch + channel * n_values;
        for (size_t v = get_global_id(0); v < n_values; v += get_global_size(0))
            row[v] = lines[l * pitch + place_of(v, nfft)];
    }
}

// Over lines. Power or levels.
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
write_power(__global real *restrict out, const ulong first, const ulong row_pitch,
            const ulong n_values, __global const value *restrict lines, const ulong pitch,
            const ulong n_lines, const ulong channels, const ulong nfft,
            __global const real *restrict weights, const real floor_db) {
    for (size_t l = get_global_id(1); l < n_lines; l += get_global_size(1)) {
        const ulong frame = l / channels, channel = l - frame * channels;
        __global real *row = out + first + frame * row_pitch + channel * n_values;
        for (size_t v = get_global_id(0); v < n_values; v += get_global_size(0))
            row[v] = finished(power_of(lines + l * pitch, v, weights, nfft), floor_db);
    }
}

// ---- Averages over frames -----------------------------------------------------------------------

#if AVERAGING
typedef real part;
#include "average.clh"

INLINE average restored(__global const real *state, const ulong v, const ulong n_values) {
    return (average){state[v], ADDS ? state[n_values + v] : 0};
}

INLINE void save(__global real *state, const ulong v, const ulong n_values, const average own) {
    state[v] = own.value;
    if (ADDS)
        state[n_values + v] = own.lost;
}

// What a value has come to after frames begin to end - 1, in their order, from where it was.
INLINE average continued(average state, __global const value *restrict line,
                         const ulong frame_pitch, const ulong begin, const ulong end, const ulong v,
                         __global const real *restrict weights, const ulong nfft,
                         const real smoothing) {
    for (ulong f = begin; f < end; f++)
        state = joined(state, power_of(line + f * frame_pitch, v, weights, nfft), smoothing);
    return state;
}

// The same from where was says, or where there is none from the first of the frames on.
INLINE average accumulated(__global const real *was, const ulong n_values,
                           __global const value *restrict line, const ulong frame_pitch,
                           const ulong begin, const ulong end, const ulong v,
                           __global const real *restrict weights, const ulong nfft,
                           const real smoothing) {
    if (was)
        return continued(restored(was, v, n_values), line, frame_pitch, begin, end, v, weights,
                         nfft, smoothing);
    const average one = {power_of(line + begin * frame_pitch, v, weights, nfft), 0};
    return continued(one, line, frame_pitch, begin + 1, end, v, weights, nfft, smoothing);
}

// Over rows, n_rows of which are finished, times channels; at least one row. Who makes row 0 makes
// the unfinished one as well: no other may write the state that row 0 goes on from.
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
average_rows(__global real *restrict out, const ulong first, const ulong row_pitch,
             const ulong n_values, __global const value *restrict lines, const ulong pitch,
             const ulong n_frames, const ulong channels, const ulong nfft,
             __global const real *restrict weights, const real floor_db, __global real *state,
             const ulong state_first, const ulong frames, const ulong done, const ulong primed,
             const ulong n_rows) {
    const ulong frame_pitch = channels * pitch, unfinished = n_rows ? n_rows * frames - done : 0;
    const real share = AVERAGING == 1 ? (real)frames : 1;
    for (size_t l = get_global_id(1); l < max(n_rows, (ulong)1) * channels;
         l += get_global_size(1)) {
        const ulong row = l / channels, channel = l - row * channels;
        __global const value *line = lines + channel * pitch;
        __global real *own = state + state_first + channel * n_values * (1 + ADDS);
        __global const real *was = row == 0 && primed ? own : 0;
        const ulong begin = row ? row * frames - done : 0, end = (row + 1) * frames - done;
        for (size_t v = get_global_id(0); v < n_values; v += get_global_size(0)) {
            if (row < n_rows)
                out[first + row * row_pitch + channel * n_values + v] = finished(
                    accumulated(was, n_values, line, frame_pitch, begin, end, v, weights, nfft, 0)
                            .value /
                        share,
                    floor_db);
            if (row == 0 && unfinished < n_frames)
                save(own, v, n_values,
                     accumulated(n_rows ? 0 : was, n_values, line, frame_pitch, unfinished,
                                 n_frames, v, weights, nfft, 0));
        }
    }
}

// Over channels: an average that never ends is one chain.
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
smooth_rows(__global real *restrict out, const ulong first, const ulong row_pitch,
            const ulong n_values, __global const value *restrict lines, const ulong pitch,
            const ulong n_frames, const ulong channels, const ulong nfft,
            __global const real *restrict weights, const real floor_db, __global real *state,
            const ulong state_first, const ulong frames, const ulong done, const ulong primed,
            const ulong n_rows, const real smoothing) {
    for (size_t c = get_global_id(1); c < channels; c += get_global_size(1)) {
        __global const value *line = lines + c * pitch;
        __global real *own = state + state_first + c * n_values * (1 + ADDS);
        __global real *row = out + first + c * n_values;
        const ulong first_end = min(frames - done, n_frames);
        for (size_t v = get_global_id(0); v < n_values; v += get_global_size(0)) {
            average so_far = accumulated(primed ? own : 0, n_values, line, channels * pitch, 0,
                                         first_end, v, weights, nfft, smoothing);
            ulong end = first_end;
            for (ulong r = 0; r < n_rows; r++) {
                row[r * row_pitch + v] = finished(so_far.value, floor_db);
                const ulong begin = end;
                end = min(begin + frames, n_frames);
                so_far = continued(so_far, line, channels * pitch, begin, end, v, weights, nfft,
                                   smoothing);
            }
            save(own, v, n_values, so_far);
        }
    }
}
#endif
