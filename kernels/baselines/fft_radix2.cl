// fft_radix2.cl - one pass of the plain Stockham transform: radix 2, one butterfly an item.
// The baseline that other kernels are measured against, in the forms in which it was published.
//
// Defines : LENGTH (power of two, 2 to 2^26), TWIDDLES (0: table, 1: sincos, 2: sin and cos,
//           3: native_sin and native_cos), LANES (without it one butterfly an item; 2 or 4: so many
//           neighbours, at most LENGTH / 2), INVERSE, DOUBLE (not with native functions).
//           native_* may be used in this file alone: its error is what TWIDDLES 3 is measured for.
// In      : in    [lines][LENGTH] complex, line l from in_first + l * in_pitch on.
//           roots [LENGTH/2] complex, exp(-2 pi i k / LENGTH); read where TWIDDLES is 0.
// Out     : out   [lines][LENGTH] complex; not the memory of in, unless LENGTH is 2.
// Scalars : span (length of the transforms that are finished: 1, 2, 4, ... LENGTH / 2), lines,
//           scale (factor of what is stored).
// NDRange : at least lines * LENGTH / 2 / LANES items along dimension 0.
// Bounds  : items past the last butterfly leave.
// Source  : E. Bainville, "OpenCL fast Fourier transform", 2010.
// Error   : relative L2 with the table 8.6e-8 (LENGTH 64), 1.2e-7 (1024), 1.7e-7 (2^20), in double
//           2.1e-16 (1024); with sincos, sin and cos, and PoCL's native functions twice that from
//           1024 on, as their angles are rounded.

#if !defined(LENGTH) || !defined(TWIDDLES)
#error "fft_radix2.cl needs LENGTH and TWIDDLES"
#endif

#if defined(DOUBLE) && TWIDDLES == 3
#error "fft_radix2.cl: native functions are single precision"
#endif

#define HALF (LENGTH / 2)
#ifdef LANES
#define N_LANES LANES
#else
#define N_LANES 1
#endif
#ifdef INVERSE
#define DIRECTION -1
#else
#define DIRECTION 1
#endif

// ---- Lanes: neighbouring butterflies in one vector ----------------------------------------------

typedef union {
    real all;
    scalar each[N_LANES];
} lanes;

INLINE cplx load_lanes(__global const scalar *in) {
    lanes re, im;
#pragma unroll
    for (int i = 0; i < N_LANES; i++) {
        re.each[i] = in[2 * i];
        im.each[i] = in[2 * i + 1];
    }
    return (cplx){re.all, im.all};
}

// Lanes lie side by side, or, where a transform is shorter than the lanes are many, in blocks of
// span with their twins' blocks between.
INLINE void store_lanes(__global scalar *out, const cplx v, const uint span) {
    const lanes re = {v.re}, im = {v.im};
#pragma unroll
    for (uint i = 0; i < N_LANES; i++) {
        const uint place = span >= N_LANES ? i : 2 * i - (i & (span - 1));
        out[2 * place] = re.each[i];
        out[2 * place + 1] = im.each[i];
    }
}

// ---- Twiddle factors exp(-pi i k / span), k of the lanes ----------------------------------------

#if TWIDDLES == 0
INLINE cplx twiddle(__global const scalar *roots, const uint k, const uint span) {
    const uint stride = HALF / span;
    lanes re, im;
#pragma unroll
    for (uint i = 0; i < N_LANES; i++) {
        const uint place = ((k + i) & (span - 1)) * stride;
        re.each[i] = roots[2 * place];
        im.each[i] = roots[2 * place + 1];
    }
    return (cplx){re.all, im.all};
}
#else
INLINE cplx twiddle(__global const scalar *roots, const uint k, const uint span) {
    lanes angle;
#pragma unroll
    for (uint i = 0; i < N_LANES; i++)
        angle.each[i] = ((k + i) & (span - 1)) * (CONSTANT(-3.14159265358979323846) / span);
#if TWIDDLES == 1
    real cosine;
    const real sine = sincos(angle.all, &cosine);
    return (cplx){cosine, sine};
#elif TWIDDLES == 2
    return (cplx){cos(angle.all), sin(angle.all)};
#else
    return (cplx){native_cos(angle.all), native_sin(angle.all)};
#endif
}
#endif

// ---- The kernel ---------------------------------------------------------------------------------

__kernel void fft_radix2_pass(__global scalar *out, const ulong out_first, const ulong out_pitch,
                              __global const scalar *in, const ulong in_first, const ulong in_pitch,
                              __global const scalar *restrict roots, const uint span,
                              const ulong lines, const scalar scale) {
    const size_t number = get_global_id(0) * N_LANES, line = number / HALF;
    if (line >= lines)
        return;
    // Butterfly j reads at distance LENGTH / 2 and writes at distance span.
    const uint j = number % HALF, k = j & (span - 1);
    in += 2 * (in_first + line * in_pitch + j);
    out += 2 * (out_first + line * out_pitch + 2 * j - k);

    const cplx forward = twiddle(roots, k, span), w = {forward.re, DIRECTION * forward.im};
    const cplx a = load_lanes(in), b = cmul(load_lanes(in + 2 * HALF), w);
    store_lanes(out, cscale(cadd(a, b), scale), span);
    store_lanes(out + 2 * span, cscale(csub(a, b), scale), span);
}
