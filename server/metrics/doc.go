// Package metrics counts what a server and the runs of its process do, and prints the counts in the text format of
// Prometheus (version 0.0.4). The format is written by hand: the library of that name would add more code than all of
// this.
//
// No label holds text of a user, a model or a file: each has a few fixed values. Counts begin at zero with the process.
// Everything here is safe for concurrent use, except Text.
package metrics
