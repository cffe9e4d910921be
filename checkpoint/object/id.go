package object

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
)

// ID names an object: git's SHA-1 of its kind, size and content, as 40 lower-case
// hex digits.
type ID string

// Valid reports whether the id has the form of one.
func (id ID) Valid() bool {
	if len(id) != 2*sha1.Size {
		return false
	}
	for i := range len(id) {
		if c := id[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

var (
	// ErrMissing: the store has no such object, or no such ref.
	ErrMissing = errors.New("is not in the object store")
	// ErrDamaged: what is there is not what was written.
	ErrDamaged = errors.New("is damaged in the object store")
	// ErrTooLarge: the object is larger than the caller wants to read.
	ErrTooLarge = errors.New("is larger than asked for")
	// ErrLength: a stream did not have the length that was said.
	ErrLength = errors.New("its length is not what was said")
	// ErrName: a name that a tree or a ref cannot have.
	ErrName = errors.New("is a name that git refuses")
)

// Kind is what an object is.
type Kind string

// The kinds of objects.
const (
	KindBlob   Kind = "blob"
	KindTree   Kind = "tree"
	KindCommit Kind = "commit"
	KindTag    Kind = "tag"
)

// sum is an id as bytes, as packs and trees hold it.
type sum [sha1.Size]byte

func (s sum) ID() ID { return ID(hex.EncodeToString(s[:])) }

// sum gives the id's bytes.
func (id ID) sum() (s sum, err error) {
	if !id.Valid() {
		return s, fmt.Errorf("%q is not the name of an object", string(id))
	}
	_, err = hex.Decode(s[:], []byte(id))
	return s, err
}

// prefix is what an object's hash begins with.
func prefix(kind Kind, size int64) []byte {
	b := append(make([]byte, 0, 32), kind...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, size, 10)
	return append(b, 0)
}

func hashOf(kind Kind, content []byte) (s sum) {
	h := sha1.New()
	h.Write(prefix(kind, int64(len(content))))
	h.Write(content)
	h.Sum(s[:0])
	return s
}
