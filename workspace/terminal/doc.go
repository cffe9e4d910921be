// Package terminal turns what programs wrote for a terminal into text that a
// model reads: overwritten lines are resolved, repeated lines folded, long output
// cut in the middle. The functions are pure.
//
// Lengths and offsets are UTF-16 code units, as in the tasks that other tools
// wrote; strings are UTF-8 in which a lone surrogate, where the input holds one,
// has its three-byte form. No function makes a lone surrogate: where a cut
// would fall inside a pair, the half is dropped too.
package terminal
