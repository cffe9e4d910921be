package content

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/roost-dev/roost/internal/inputfile"
)

// A bundle file is a head, zstd frames (one for each content), the index, and a tail. An index row holds a hash, the
// offset and length of its frame, the length of the content, and a byte of flags; rows are in order of hashes.
const (
	bundleHead = "roost bundle 1\n"
	bundleTail = "roostend"
	rowSize    = 32 + 8 + 8 + 8 + 1
	tailSize   = 8 + 4 + len(bundleTail) // count of rows, CRC-32C of rows and count
	maxIndex   = 1 << 30                 // bytes of the largest index that is read: 18 million contents

	flagManifest = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// row is the index entry of one content.
type row struct {
	key      Key
	offset   int64
	stored   int64
	size     int64
	manifest bool
}

// bundle is a bundle with its index. The file is opened for each use: hundreds of bundles would be hundreds of
// handles, and Windows cannot remove an open file.
type bundle struct {
	name string
	path string
	size int64
	rows []byte
}

func (b *bundle) count() int { return len(b.rows) / rowSize }

func (b *bundle) key(i int) (k Key) {
	copy(k[:], b.rows[i*rowSize:])
	return k
}

func (b *bundle) row(i int) row {
	r := b.rows[i*rowSize : (i+1)*rowSize]
	number := func(at int) int64 { return int64(binary.LittleEndian.Uint64(r[at:])) }
	return row{key: Key(r[:32]), offset: number(32), stored: number(40), size: number(48), manifest: r[56]&flagManifest != 0}
}

func (b *bundle) find(k Key) (int, bool) {
	return sort.Find(b.count(), func(i int) int { return bytes.Compare(k[:], b.rows[i*rowSize:i*rowSize+len(k)]) })
}

// openBundle reads a bundle's index. A damaged index is ErrDamaged.
func openBundle(name, path string) (*bundle, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	bad := func(why string) (*bundle, error) { return nil, fmt.Errorf("bundle %s %w: %s", name, ErrDamaged, why) }
	size := info.Size()
	if size < int64(len(bundleHead)+tailSize) {
		return bad("it is too short")
	}
	// Most indexes fit into the first read.
	last := make([]byte, min(size, 16<<10))
	if _, err := f.ReadAt(last, size-int64(len(last))); err != nil {
		return nil, err
	}
	tail := last[len(last)-tailSize:]
	if string(tail[12:]) != bundleTail {
		return bad("its end is missing")
	}
	n := binary.LittleEndian.Uint64(tail)
	if n > maxIndex/rowSize || int64(n)*rowSize > size-int64(len(bundleHead)+tailSize) {
		return bad("its index is longer than the file")
	}
	whole := int(n)*rowSize + tailSize
	if whole > len(last) {
		last = make([]byte, whole)
		if _, err := f.ReadAt(last, size-int64(whole)); err != nil {
			return nil, err
		}
	}
	last = last[len(last)-whole:]
	b := &bundle{name: name, path: path, size: size, rows: slices.Clone(last[:int(n)*rowSize])}
	if crc32.Checksum(last[:len(b.rows)+8], castagnoli) != binary.LittleEndian.Uint32(last[len(b.rows)+8:]) {
		return bad("its index has a wrong checksum")
	}
	end := size - int64(whole)
	for i := range b.count() {
		r := b.row(i)
		switch {
		case i > 0 && bytes.Compare(b.rows[(i-1)*rowSize:(i-1)*rowSize+32], r.key[:]) >= 0:
			return bad("its index is not in order")
		case r.offset < int64(len(bundleHead)) || r.stored < 0 || r.size < 0 || r.offset > end || r.stored > end-r.offset:
			return bad("its index points outside the bundle")
		}
	}
	return b, nil
}

// window is how far back in bytes a compressed content refers. It bounds the memory of an encoder and a decoder.
const window = 4 << 20

var encoding = []zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(window)}

// encoder serves all callers: EncodeAll may be called from several goroutines.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	enc, _ := zstd.NewWriter(nil, encoding...) // only wrong options are errors
	return enc
})

// decoders keeps the memory of decoders for the next content. Each works in the goroutine of its caller.
var decoders = sync.Pool{New: func() any {
	// As above.
	dec, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderLowmem(true))
	return dec
}}

// copyTo writes a content to w, and compares it with its hash.
func (b *bundle) copyTo(ctx context.Context, f io.ReaderAt, r row, w io.Writer) error {
	bad := func(why error) error {
		return fmt.Errorf("bundle %s %w: content %s: %w", b.name, ErrDamaged, r.key.Hash(), why)
	}
	dec := decoders.Get().(*zstd.Decoder)
	defer func() {
		_ = dec.Reset(nil) // it lets go of the file
		decoders.Put(dec)
	}()
	if err := dec.Reset(io.NewSectionReader(f, r.offset, r.stored)); err != nil {
		return bad(err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), inputfile.ContextReader(ctx, io.LimitReader(dec, r.size+1)))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return bad(err)
	case n != r.size || !bytes.Equal(sum.Sum(nil), r.key[:]):
		return bad(errDiffers)
	}
	return nil
}

var errDiffers = errors.New("the bytes differ from the hash")

// bundleWriter writes one bundle. A small one stays in memory until the end.
type bundleWriter struct {
	create  func() (*os.File, error)
	fault   func(op string) error
	f       *os.File
	flushed int64 // bytes that are written to f
	buf     []byte
	rows    []row
	have    map[Key]bool // by hash: whether it is a manifest
}

// flushSize bounds the bytes of a bundle that wait in memory.
const flushSize = 4 << 20

func newBundleWriter(create func() (*os.File, error), fault func(string) error) *bundleWriter {
	return &bundleWriter{create: create, fault: fault, buf: []byte(bundleHead), have: map[Key]bool{}}
}

func (w *bundleWriter) at() int64 { return w.flushed + int64(len(w.buf)) }

// Write adds bytes at the end.
func (w *bundleWriter) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	if len(w.buf) >= flushSize {
		return len(p), w.flush()
	}
	return len(p), nil
}

func (w *bundleWriter) flush() error {
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

// cutBack drops everything from an offset on.
func (w *bundleWriter) cutBack(at int64) error {
	if at >= w.flushed {
		w.buf = w.buf[:at-w.flushed]
		return nil
	}
	w.buf, w.flushed = w.buf[:0], at
	return w.f.Truncate(at)
}

func (w *bundleWriter) note(r row) {
	w.rows = append(w.rows, r)
	w.have[r.key] = r.manifest
}

// setManifest turns a content of this bundle into a manifest.
func (w *bundleWriter) setManifest(k Key) {
	for i := range w.rows {
		if w.rows[i].key == k {
			w.rows[i].manifest, w.have[k] = true, true
		}
	}
}

// add writes one content.
func (w *bundleWriter) add(k Key, data []byte, manifest bool) error {
	start := w.at()
	var err error
	if len(data) <= window {
		_, err = w.Write(encoder().EncodeAll(data, nil))
	} else { // in pieces: a large content takes memory once, not twice
		enc, _ := zstd.NewWriter(w, encoding...)
		_, err = enc.Write(data)
		err = errors.Join(err, enc.Close())
	}
	if err != nil {
		return errors.Join(err, w.cutBack(start))
	}
	w.note(row{key: k, offset: start, stored: w.at() - start, size: int64(len(data)), manifest: manifest})
	return nil
}

// frame copies the frame of a content from another bundle, after comparing the content with its hash.
func (w *bundleWriter) frame(ctx context.Context, b *bundle, f io.ReaderAt, r row) error {
	if err := b.copyTo(ctx, f, r, io.Discard); err != nil {
		return err
	}
	start := w.at()
	if _, err := io.Copy(w, io.NewSectionReader(f, r.offset, r.stored)); err != nil {
		return errors.Join(err, w.cutBack(start))
	}
	r.offset = start
	w.note(r)
	return nil
}

// finish writes the index and syncs the file, which it closes.
func (w *bundleWriter) finish() (*bundle, error) {
	slices.SortFunc(w.rows, func(a, b row) int { return bytes.Compare(a.key[:], b.key[:]) })
	index := make([]byte, 0, len(w.rows)*rowSize+tailSize)
	for _, r := range w.rows {
		index = append(index, r.key[:]...)
		for _, n := range []int64{r.offset, r.stored, r.size} {
			index = binary.LittleEndian.AppendUint64(index, uint64(n))
		}
		flags := byte(0)
		if r.manifest {
			flags = flagManifest
		}
		index = append(index, flags)
	}
	rows := index
	index = binary.LittleEndian.AppendUint64(index, uint64(len(w.rows)))
	index = binary.LittleEndian.AppendUint32(index, crc32.Checksum(index, castagnoli))
	w.buf = append(append(w.buf, index...), bundleTail...)
	if err := w.flush(); err != nil {
		return nil, err
	}
	if err := w.fault("sync"); err != nil {
		return nil, err
	}
	if err := w.f.Sync(); err != nil {
		return nil, err
	}
	return &bundle{size: w.flushed, rows: rows}, w.f.Close()
}

// drop closes and removes the file; after a rename there is nothing to remove.
func (w *bundleWriter) drop() {
	if w.f != nil {
		w.f.Close()
		_ = os.Remove(w.f.Name())
		w.f = nil
	}
}

// take copies the needed contents of a bundle, or nothing.
func (w *bundleWriter) take(ctx context.Context, b *bundle, need func(Key) bool) (err error) {
	start, count := w.at(), len(w.rows)
	defer func() {
		if err != nil {
			for _, r := range w.rows[count:] {
				delete(w.have, r.key)
			}
			w.rows = w.rows[:count]
			err = errors.Join(err, w.cutBack(start))
		}
	}()
	f, err := os.Open(b.path)
	if err != nil {
		return err
	}
	defer f.Close()
	for i := range b.count() {
		r := b.row(i)
		if manifest, ok := w.have[r.key]; ok && (manifest || !r.manifest) || !need(r.key) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, ok := w.have[r.key]; ok { // the same bytes were a file in another bundle
			w.setManifest(r.key)
			continue
		}
		if err := w.frame(ctx, b, f, r); err != nil {
			return err
		}
	}
	return nil
}
