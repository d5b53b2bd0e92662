// fft_move.cl - copy lines from one place to another: real to complex and back, cropped or padded.
//
// Defines : REAL_IN, REAL_OUT (1: values are real, 0: complex), HERMITIAN (1: in holds the first
//           half of a spectrum, whose other half is its mirrored conjugate; bin 0 counts as real),
//           CONJUGATE (1: complex values change the sign of their imaginary part), DOUBLE.
// In      : in  [lines][n_in], line l from value in_first + l * in_pitch on.
// Out     : out [lines][n_out], likewise. Past in's end come zeros; of a complex value that becomes
//           real the imaginary part is dropped, one that real values get is zero.
// Scalars : lines, n_in, n_out.
// NDRange : global (64 * any, any), local (64, 1): dimension 0 runs along a line, 1 along lines.
// Bounds  : nothing outside the lines is touched. in and out must not overlap, or must be the same
//           places of the same type.
// Source  : none.   Error: none, values are copied.

#if REAL_IN
typedef real in_value;
#define TO_COMPLEX(v) ((cplx){(v), 0})
#else
typedef cplx in_value;
#define TO_COMPLEX(v) (v)
#endif
#if REAL_OUT
typedef real out_value;
#define FROM_COMPLEX(v) ((v).re)
#elif CONJUGATE
typedef cplx out_value;
#define FROM_COMPLEX(v) ((cplx){(v).re, -(v).im})
#else
typedef cplx out_value;
#define FROM_COMPLEX(v) (v)
#endif

#if HERMITIAN
INLINE cplx value_of(__global const in_value *in, const size_t e, const ulong n_in,
                     const ulong n_out) {
    if (e == 0)
        return (cplx){in[0].re, 0};
    if (e < n_in)
        return in[e];
    return (cplx){in[n_out - e].re, -in[n_out - e].im};
}
#else
INLINE cplx value_of(__global const in_value *in, const size_t e, const ulong n_in,
                     const ulong n_out) {
    return e < n_in ? TO_COMPLEX(in[e]) : (cplx){0, 0};
}
#endif

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
move_lines(__global out_value *out, const ulong out_first, const ulong out_pitch,
           __global const in_value *in, const ulong in_first, const ulong in_pitch,
           const ulong lines, const ulong n_in, const ulong n_out) {
    for (size_t l = get_global_id(1); l < lines; l += get_global_size(1)) {
        __global const in_value *from = in + in_first + l * in_pitch;
        __global out_value *to = out + out_first + l * out_pitch;
        for (size_t e = get_global_id(0); e < n_out; e += get_global_size(0)) {
            const cplx value = value_of(from, e, n_in, n_out);
            to[e] = FROM_COMPLEX(value);
        }
    }
}
