//go:build !purego

package esjson

// stringBlocks is stringRun for whole blocks of 64 bytes, which it takes apart by bits: text of programs has an escape in
// each line, and a branch for each of them is what reading such files costs. It needs nothing that an amd64 may lack; the build tag
// purego leaves it out.
//
//go:noescape
func stringBlocks(p []byte) int
