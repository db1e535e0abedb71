#!/bin/sh
# What several files say of the operators is the same in all of them.
. "${srcdir:?is set by make check}/tests/tap.sh"
scratch

# The rows of lib/operators.def, as the kernels' sources repeat them: elementwise ones, whose roles the device code needs too.
rows() {
    sed -n 's/^FL_\(OPERATOR\|RULER\)(/FL_ELEMENTWISE(/p; s/^FL_GATED_OPERATOR(/FL_ELEMENTWISE_GATED(/p; s/^FL_PAIRED_OPERATOR(/FL_ELEMENTWISE_PAIRED(/p' \
        "$srcdir/lib/operators.def" | sort
}
kernels() {
    sed -n '/^FL_ELEMENTWISE\(_GATED\|_PAIRED\)\{0,1\}(/p' "$srcdir"/kernels/*.hip | sort
}
kernels_repeat_the_table() {
    rows >"$folder/rows" && kernels >"$folder/kernels" && test -s "$folder/rows" && diff "$folder/rows" "$folder/kernels"
}
check "kernels/*.hip has each row of lib/operators.def" kernels_repeat_the_table

# families FILE: the operators that the table names.
families() {
    sed -n 's/^FL_[A-Z_]*(\([a-z0-9_]*\), \([a-z0-9_]*\), .*/\2/p' "$srcdir/lib/operators.def" | sort -u
}
built() {
    sed -n 's|.*lib/operators/\([a-z0-9_]*\)\.c.*|\1|p' "$srcdir/operators.mk" | sort
}
operators_are_built() {
    families >"$folder/families" && built >"$folder/built" && diff "$folder/families" "$folder/built"
}
check "operators.mk has each operator of lib/operators.def" operators_are_built

# check_each WHAT FILE PATTERN: every operator is in a file, as the pattern has it with NAME for the operator.
check_each() {
    for operator in $(families); do
        check "$1 $operator" grep -q "$(printf '%s' "$3" | sed "s/NAME/$operator/g")" "$srcdir/$2"
    done
}
check_each "fuseline.h includes" include/fuseline/fuseline.h '<fuseline/NAME\.h>'
check_each "docs/operators.md has a row for" docs/operators.md '^| .NAME.[ :]'
plan
