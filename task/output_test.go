package task

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// heap is blobs in memory.
type heap map[string]string

func (h heap) Range(hash string, off, length int64) ([]byte, error) {
	text, ok := h[hash]
	if !ok {
		return nil, errors.New("no such blob")
	}
	return []byte(text[min(off, int64(len(text))):min(off+length, int64(len(text)))]), nil
}

func TestKeptOutputIsFoundByItsName(t *testing.T) {
	s := New(heap{"first": "one", "second": "twice", "torn": "half"})
	for _, f := range []*ToolFinished{
		nil, {}, {Output: "first", Size: 3}, {Output: "first", Size: 3, Artifact: "cmd-1.txt"}, {Artifact: "cmd-3.txt"}, {Output: "second", Size: 5, Artifact: "cmd-2.txt"}, {Output: "torn", Size: 8, Artifact: "cmd-4.txt"},
	} {
		s.order = append(s.order, &Call{Progress: Progress{Finished: f}})
	}
	for name, want := range map[string]string{"cmd-1.txt": "one", "cmd-2.txt": "twice", "cmd-3.txt": "", "cmd-9.txt": "", "": ""} {
		k, ok := s.Kept(name)
		if ok != (want != "") || k.Size != int64(len(want)) {
			t.Errorf("%q: got %+v, %v, want ok = (want != \"\") and k.Size = int64(len(want))", name, k, ok)
		}
		if !ok {
			continue
		}
		if err := iotest.TestReader(io.NewSectionReader(k, 0, k.Size), []byte(want)); err != nil {
			t.Errorf("%q: got %v, want no error", name, err)
		}
		buf := make([]byte, 100)
		if n, err := k.ReadAt(buf, 1); n != len(want)-1 || !errors.Is(err, io.EOF) || !bytes.Equal(buf[:n], []byte(want[1:])) {
			t.Errorf("%q: %d bytes, %v", name, n, err)
		}
		if _, err := k.ReadAt(buf, k.Size); !errors.Is(err, io.EOF) {
			t.Errorf("%q: behind its end %v", name, err)
		}
		if _, err := k.ReadAt(buf, -1); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%q: before its beginning %v", name, err)
		}
	}
	torn, _ := s.Kept("cmd-4.txt")
	if _, err := torn.ReadAt(make([]byte, 8), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an output that lost its end: %v", err)
	}
	delete(s.blobs.(heap), "first")
	gone, _ := s.Kept("cmd-1.txt")
	if _, err := gone.ReadAt(make([]byte, 1), 0); err == nil || !strings.Contains(err.Error(), "no such blob") {
		t.Errorf("an output that is gone: %v", err)
	}
}
