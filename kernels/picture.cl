// picture.cl - from the power of columns and bins to the levels and the palette entries of pixels.
//
// Defines : N_LEVELS (palette entries of levels), GAP (entry of the lines that hatch a gap; its
//           ground is entry N_LEVELS), HATCH_PERIOD, HATCH_WIDTH [px].
// In      : power [bins][columns] real, as the transpose leaves it; spans [2][rows] ulong, of each
//           row of pixels the first bin and the one after its last. levels as out.
// Out     : levels [rows][columns] real; entries [rows][columns] uchar.
// Scalars : columns, n_rows; factor of power, floor_db, then offset_db is added [dB]; lo_db, and
//           entries_per_db = (N_LEVELS - 1) / (hi_db - lo_db).
// NDRange : global (64 * any, any), local (64, 1): dimension 0 runs over columns, 1 over rows.
// Bounds  : nothing but the values named is read or written. NaN makes a NaN, and that a gap.
// Error   : of levels that of decibels.clh; entries are NumPy's of the same levels, bit for bit.

#include "decibels.clh"

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
pixel_levels(__global real *restrict levels, __global const real *restrict power,
             __global const ulong *restrict spans, const ulong columns, const ulong n_rows,
             const real factor, const real floor_db, const real offset_db) {
    for (size_t row = get_global_id(1); row < n_rows; row += get_global_size(1)) {
        const ulong first = spans[row], stop = spans[n_rows + row];
        for (size_t x = get_global_id(0); x < columns; x += get_global_size(0)) {
            real largest = power[first * columns + x];
            for (ulong bin = first + 1; bin < stop; bin++) {
                const real next = power[bin * columns + x];
                largest = next > largest || isnan(next) ? next : largest;
            }
            levels[row * columns + x] = decibels(largest * factor, floor_db) + offset_db;
        }
    }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
pixel_entries(__global uchar *restrict entries, __global const real *restrict levels,
              const ulong columns, const ulong n_rows, const real lo_db,
              const real entries_per_db) {
    for (size_t row = get_global_id(1); row < n_rows; row += get_global_size(1)) {
        for (size_t x = get_global_id(0); x < columns; x += get_global_size(0)) {
            const real level = levels[row * columns + x];
            const real entry =
                clamp((level - lo_db) * entries_per_db, (real)0, (real)(N_LEVELS - 1));
            const uchar gap = (row + x) % HATCH_PERIOD < HATCH_WIDTH ? GAP : N_LEVELS;
            entries[row * columns + x] = isnan(level) ? gap : convert_uchar_rte(entry);
        }
    }
}
