package object

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"

	"github.com/klauspost/compress/zlib"
)

// Kinds of entries as a pack numbers them.
const (
	packCommit = 1
	packTree   = 2
	packBlob   = 3
	packTag    = 4
	packOffset = 6 // the difference to an entry further ahead in the same pack
	packRef    = 7 // the difference to an object that is named
)

const (
	packHead = 12 // "PACK", version, how many entries
	// packTail is the SHA-1 of all that precedes it.
	packTail = sha1.Size
	// spill is how much of a pack waits in memory before it goes to its file.
	spill = 4 << 20
	// quick is from which size on speed counts more than what compressing saves.
	quick = 256 << 10
)

var packKinds = map[Kind]byte{KindCommit: packCommit, KindTree: packTree, KindBlob: packBlob, KindTag: packTag}

// packWriter writes one pack without differences. Small ones stay in memory until
// the end; larger ones go to a file that create gives.
type packWriter struct {
	create  func() (*os.File, error)
	fault   func(op string) error
	f       *os.File
	flushed int64 // bytes that are in f
	buf     []byte
	list    []indexed
	have    map[sum]bool
	small   *zlib.Writer
	large   *zlib.Writer
}

func newPackWriter(create func() (*os.File, error), fault func(string) error) *packWriter {
	w := &packWriter{create: create, fault: fault, have: map[sum]bool{}}
	w.buf = append(w.buf, "PACK\x00\x00\x00\x02\x00\x00\x00\x00"...)
	return w
}

func (w *packWriter) at() int64 { return w.flushed + int64(len(w.buf)) }

// Write adds bytes at the end.
func (w *packWriter) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	if len(w.buf) >= spill {
		return len(p), w.flush()
	}
	return len(p), nil
}

func (w *packWriter) flush() error {
	if w.f == nil {
		f, err := w.create()
		if err != nil {
			return err
		}
		w.f = f
	}
	if err := w.fault("write"); err != nil {
		return err
	}
	n, err := w.f.WriteAt(w.buf, w.flushed)
	if err != nil {
		return err
	}
	w.flushed += int64(n)
	w.buf = w.buf[:0]
	return nil
}

// back drops all that was written from at on.
func (w *packWriter) back(at int64) error {
	if at >= w.flushed {
		w.buf = w.buf[:at-w.flushed]
		return nil
	}
	w.buf, w.flushed = w.buf[:0], at
	return w.f.Truncate(at)
}

// sink counts the checksum of an entry on its way.
type sink struct {
	w   io.Writer
	crc uint32
}

func (s *sink) Write(p []byte) (int, error) {
	s.crc = crc32.Update(s.crc, crc32.IEEETable, p)
	return s.w.Write(p)
}

// deflater gives a compressor that writes to out.
func (w *packWriter) deflater(size int64, out io.Writer) *zlib.Writer {
	z, level := &w.small, zlib.DefaultCompression
	if size >= quick {
		z, level = &w.large, zlib.BestSpeed
	}
	if *z == nil {
		*z, _ = zlib.NewWriterLevel(out, level) // only a wrong level is an error
	} else {
		(*z).Reset(out)
	}
	return *z
}

func entryHead(kind byte, size int64) []byte {
	c := kind<<4 | byte(size&15)
	out := make([]byte, 0, 10)
	for size >>= 4; size > 0; size >>= 7 {
		out = append(out, c|0x80)
		c = byte(size & 0x7f)
	}
	return append(out, c)
}

// add writes one object.
func (w *packWriter) add(id sum, kind Kind, data []byte) error {
	_, err := w.stream(kind, bytes.NewReader(data), int64(len(data)), &id, nil)
	return err
}

// stream writes an object from a reader and gives its id, unless it is known. When
// there says that the object is stored already, it is taken out again. After an error
// the pack is as before.
func (w *packWriter) stream(kind Kind, r io.Reader, size int64, known *sum, there func(sum) bool) (id sum, err error) {
	start := w.at()
	defer func() {
		if err != nil {
			if e := w.back(start); e != nil {
				err = fmt.Errorf("%w (and the pack cannot be cut back: %v)", err, e)
			}
		}
	}()
	out := &sink{w: w}
	if _, err := out.Write(entryHead(packKinds[kind], size)); err != nil {
		return id, err
	}
	z := w.deflater(size, out)
	var h hash.Hash
	to := io.Writer(z)
	if known == nil {
		h = sha1.New()
		h.Write(prefix(kind, size))
		to = io.MultiWriter(h, z)
	}
	n, err := io.Copy(to, io.LimitReader(r, size))
	if err != nil {
		return id, err
	}
	if n < size {
		return id, fmt.Errorf("%w: it ended after %d bytes of %d", ErrLength, n, size)
	}
	if known == nil {
		if n, err := io.ReadFull(r, make([]byte, 1)); n > 0 {
			return id, fmt.Errorf("%w: it has more than %d bytes", ErrLength, size)
		} else if err != io.EOF {
			return id, err
		}
		h.Sum(id[:0])
	} else {
		id = *known
	}
	if err := z.Close(); err != nil {
		return id, err
	}
	if there != nil && (w.have[id] || there(id)) {
		return id, w.back(start)
	}
	w.list = append(w.list, indexed{id: id, crc: out.crc, off: start})
	w.have[id] = true
	return id, nil
}

// raw takes over an entry as it lies in another pack; want is its checksum there.
func (w *packWriter) raw(id sum, entry io.Reader, want uint32) error {
	start := w.at()
	out := &sink{w: w}
	_, err := io.Copy(out, entry)
	if err == nil && out.crc != want {
		err = fmt.Errorf("object %s %w: its bytes in the pack changed", id.ID(), ErrDamaged)
	}
	if err != nil {
		if e := w.back(start); e != nil {
			err = fmt.Errorf("%w (and the pack cannot be cut back: %v)", err, e)
		}
		return err
	}
	w.list = append(w.list, indexed{id: id, crc: want, off: start})
	w.have[id] = true
	return nil
}

// finish ends the pack in its file, synced, and gives its checksum.
func (w *packWriter) finish() (check sum, err error) {
	binary.BigEndian.PutUint32(w.head(), uint32(len(w.list)))
	h := sha1.New()
	if w.flushed > 0 {
		if err := w.flush(); err != nil {
			return check, err
		}
		// The count stands in front of what the checksum is about, and is known only now:
		// a large pack is read once more.
		if _, err := w.f.WriteAt(binary.BigEndian.AppendUint32(nil, uint32(len(w.list))), 8); err != nil {
			return check, err
		}
		if _, err := io.Copy(h, io.NewSectionReader(w.f, 0, w.flushed)); err != nil {
			return check, err
		}
	} else {
		h.Write(w.buf)
	}
	h.Sum(check[:0])
	w.buf = append(w.buf, check[:]...)
	if err := w.flush(); err != nil {
		return check, err
	}
	if err := w.fault("sync"); err != nil {
		return check, err
	}
	return check, w.f.Sync()
}

// head is where the count stands while the pack is in memory.
func (w *packWriter) head() []byte {
	if w.flushed > 0 {
		return make([]byte, 4)
	}
	return w.buf[8:packHead]
}

// drop closes the file, if there is one, and removes it.
func (w *packWriter) drop() {
	if w.f != nil {
		w.f.Close()
		_ = os.Remove(w.f.Name())
		w.f = nil
	}
}
