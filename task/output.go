package task

import (
	"fmt"
	"io"
)

// Kept is the whole output of a command, as it was kept when it was more than its
// result shows. It is an io.ReaderAt.
type Kept struct {
	Size  int64 // bytes
	hash  string
	blobs Blobs
}

// Kept finds the output of an earlier command by the artifact name that the result gave the model; false when there
// is none.
func (s *State) Kept(artifact string) (Kept, bool) {
	for i := len(s.order) - 1; i >= 0; i-- {
		f := s.order[i].Finished
		if f != nil && f.Artifact == artifact && artifact != "" && f.Output != "" {
			return Kept{Size: f.Size, hash: f.Output, blobs: s.blobs}, true
		}
	}
	return Kept{}, false
}

// ReadAt reads from an offset in bytes.
func (k Kept) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read a kept output: offset %d", off)
	}
	if off >= k.Size {
		return 0, io.EOF
	}
	want := min(int64(len(p)), k.Size-off)
	data, err := k.blobs.Range(k.hash, off, want)
	n := copy(p, data)
	switch {
	case err != nil:
		return n, fmt.Errorf("read a kept output: %w", err)
	case int64(n) < want:
		return n, fmt.Errorf("read a kept output: %w", io.ErrUnexpectedEOF)
	case n < len(p):
		return n, io.EOF
	}
	return n, nil
}
