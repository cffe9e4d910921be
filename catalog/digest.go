package catalog

import (
	"encoding/binary"
	"math/bits"
)

// Mix adds a number to a digest. It is one step of a permutation, so two that differ
// in one number always differ; it is no defence against an attacker who wants two to be
// equal.
func Mix(digest, n uint64) uint64 {
	return bits.RotateLeft64(digest^n*0x9e3779b97f4a7c15, 29) * 0xbf58476d1ce4e5b9
}

// MixText adds a text.
func MixText(digest uint64, s string) uint64 {
	digest = Mix(digest, uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		digest = Mix(digest, binary.LittleEndian.Uint64([]byte(s[:8])))
	}
	var last [8]byte
	copy(last[:], s)
	return Mix(digest, binary.LittleEndian.Uint64(last[:]))
}
