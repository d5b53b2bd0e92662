// stft_frames.cl - frames of samples, windowed and padded with zeros, as lines for a transform.
//
// Defines : FORMAT (see stft_samples.clh), IQ (1: channels 2c and 2c + 1 are the real and the
//           imaginary part of signal c), PLACED as in stft_places.clh.
// In      : samples; sample p of channel c is number p * sample_step + c * channel_step.
//           window  [win_length] real, divided by the format's full scale.
// Out     : lines   [frames * channels][nfft] real, or cplx where IQ, from one to the next pitch;
//           line l is channel l % channels of frame l / channels. Past win_length come zeros.
// Scalars : first (position of frame 0; frames follow every hop), first_channel (of the samples),
//           n_lines = frames * channels; frame_first, the number of line 0's frame; row_frames (a
//           row has), done (of those that row 0 has before frame 0), row_num, row_den, row_phase.
// NDRange : global (64 * any, any), local (64, 1): dimension 0 runs along a line, 1 over lines.
// Bounds  : of a frame win_length samples are read, nothing else.
// Source  : none.   Error: one rounding of the sample (32 bits), one of the product.

#include "stft_places.clh"
#include "stft_samples.clh"

#if IQ
typedef cplx value;
#else
typedef real value;
#endif

INLINE value windowed(__global const sample *restrict samples, const ulong i,
                      const ulong quadrature, const real factor) {
#if IQ
    return (cplx){load_sample(samples, i) * factor, load_sample(samples, i + quadrature) * factor};
#else
    return load_sample(samples, i) * factor;
#endif
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
gather_frames(__global value *restrict lines, const ulong pitch,
              __global const sample *restrict samples, const ulong first_channel, const ulong first,
              const ulong hop, const ulong sample_step, const ulong channel_step,
              __global const real *restrict window, const ulong n_lines, const ulong channels,
              const ulong win_length, const ulong nfft, const ulong frame_first,
              const ulong row_frames, const ulong done, const ulong row_num, const ulong row_den,
              const ulong row_phase) {
    const value zero = {0};
    for (size_t l = get_global_id(1); l < n_lines; l += get_global_size(1)) {
        const ulong frame = l / channels, channel = l - frame * channels;
        const ulong place = first + begin_of(frame_first + frame, hop, row_frames, done, row_num,
                                             row_den, row_phase);
        const ulong start = place * sample_step + (first_channel + channel * PARTS) * channel_step;
        __global value *line = lines + l * pitch;
        for (size_t i = get_global_id(0); i < nfft; i += get_global_size(0))
            line[i] = i < win_length
                          ? windowed(samples, start + i * sample_step, channel_step, window[i])
                          : zero;
    }
}
