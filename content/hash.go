package content

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Hash names a content: the SHA-256 of its bytes as 64 lower-case hexadecimal digits.
type Hash string

// HashOf returns the name of a content.
func HashOf(data []byte) Hash { return key(sha256.Sum256(data)).hash() }

// Valid reports whether the text has the form of a hash.
func (h Hash) Valid() bool {
	_, err := h.key()
	return err == nil
}

// Errors that callers distinguish.
var (
	// ErrMissing: the store does not have the content or the name.
	ErrMissing = errors.New("is not in the content store")
	// ErrDamaged: the stored bytes differ from what was written.
	ErrDamaged = errors.New("is damaged in the content store")
	// ErrTooLarge: the content is larger than the caller's limit.
	ErrTooLarge = errors.New("is larger than the limit")
	// ErrLength: a stream was shorter or longer than announced.
	ErrLength = errors.New("its length is not the announced one")
)

// key is a hash as bundles hold it.
type key [sha256.Size]byte

func (k key) hash() Hash { return Hash(hex.EncodeToString(k[:])) }

func (h Hash) key() (k key, err error) {
	if len(h) != 2*len(k) {
		return k, fmt.Errorf("%q is not the name of a content", string(h))
	}
	for i := range len(h) {
		if c := h[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return k, fmt.Errorf("%q is not the name of a content", string(h))
		}
	}
	_, err = hex.Decode(k[:], []byte(h))
	return k, err
}
