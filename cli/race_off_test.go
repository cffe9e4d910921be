//go:build !race

package cli

// raced: the race detector takes much memory.
const raced = false
