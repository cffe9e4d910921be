// Package patch applies what models write to change a text: the SEARCH/REPLACE blocks of
// apply_diff, the patches of apply_patch, and replacements of one text by another. It is
// pure: texts come in, texts and reasons come out, and no file is touched.
//
// Lines that no change names keep every byte, their line ends included. A place that fits
// in two ways is a failure and not a guess. Reasons are written for the model, which reads
// them and tries again.
//
// Limits: the similarity search for an error message, and the search for a text with other
// blanks, stop after a fixed amount of work and then find nothing.
package patch
