package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/internal/failpoint"
)

// Batch is a set of objects that become durable together. It belongs to one goroutine.
type Batch struct {
	s     *Store
	ctx   context.Context
	w     *packWriter
	found bool // objects of others' were found to be there
	done  bool
}

// Begin starts a batch, and makes the store when it is not there. Close or Discard
// must follow.
func (s *Store) Begin(ctx context.Context) (*Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.make(); err != nil {
		return nil, err
	}
	if _, err := s.refresh(false); err != nil {
		return nil, err
	}
	s.hold.Lock()
	defer s.hold.Unlock()
	if err := s.note(ctx, "", false); err != nil {
		return nil, err
	}
	s.held.batches++
	return &Batch{s: s, ctx: ctx, w: newPackWriter(s.temp, s.fault)}, nil
}

// stands reports whether an object need not be written.
func (b *Batch) stands(id sum) bool {
	if b.w.have[id] {
		return true
	}
	there, _ := b.s.there(id, false) // what cannot be held is written again
	b.found = b.found || there
	return there
}

func (b *Batch) open() error {
	if b.done {
		return errors.New("write to the object store: the batch is closed")
	}
	return b.ctx.Err()
}

func (b *Batch) put(kind Kind, data []byte) (ID, error) {
	if err := b.open(); err != nil {
		return "", err
	}
	id := hashOf(kind, data)
	if !b.stands(id) {
		if err := b.w.add(id, kind, data); err != nil {
			return "", fmt.Errorf("write to the object store: %w", err)
		}
	}
	return id.ID(), nil
}

// Blob adds content.
func (b *Batch) Blob(data []byte) (ID, error) { return b.put(KindBlob, data) }

// streamed is from which size on a blob is not read into memory first.
const streamed = 1 << 20

// BlobFrom adds content of size bytes from a stream, in little memory. A stream that
// is longer or shorter is ErrLength, and nothing is added.
func (b *Batch) BlobFrom(r io.Reader, size int64) (ID, error) {
	if err := b.open(); err != nil {
		return "", err
	}
	if size < 0 {
		return "", fmt.Errorf("write to the object store: %w: it cannot be %d", ErrLength, size)
	}
	r = &patient{b.ctx, r}
	if size > streamed {
		id, err := b.w.stream(KindBlob, r, size, nil, b.stands)
		if err != nil {
			return "", fmt.Errorf("write to the object store: %w", err)
		}
		return id.ID(), nil
	}
	var data bytes.Buffer
	data.Grow(int(size) + bytes.MinRead)
	n, err := io.Copy(&data, io.LimitReader(r, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("%w: not %d bytes", ErrLength, size)
	}
	if err != nil {
		return "", fmt.Errorf("write to the object store: %w", err)
	}
	return b.put(KindBlob, data.Bytes())
}

// Tree adds a tree. The order of the entries does not matter. What they name must be in
// the store or in this batch, and be held, as what Has, Blob and Tree say is.
func (b *Batch) Tree(entries []TreeEntry) (ID, error) {
	data, err := encodeTree(entries)
	if err != nil {
		return "", err
	}
	return b.put(KindTree, data)
}

// Commit adds a commit. What it names must be there as for a tree.
func (b *Batch) Commit(c Commit) (ID, error) {
	data, err := encodeCommit(c)
	if err != nil {
		return "", err
	}
	return b.put(KindCommit, data)
}

// Discard drops the batch; after Close it does nothing.
func (b *Batch) Discard() {
	if !b.done {
		b.done = true
		b.w.drop()
		b.s.hold.Lock()
		b.s.held.batches--
		b.s.hold.Unlock()
	}
}

// Close makes the batch durable, and holds it until Settle. When all was there already
// it writes nothing. After an error nothing of it counts, and the store is as good as before.
func (b *Batch) Close() error {
	defer b.Discard()
	if err := b.open(); err != nil {
		return err
	}
	if len(b.w.list) == 0 {
		if !b.found {
			return nil
		}
		// What another process named a moment ago may not have its names synced yet.
		return syncDir(b.s.packDir())
	}
	if _, err := b.s.publish(b.ctx, b.w, true); err != nil {
		return fmt.Errorf("write to the object store: %w", err)
	}
	b.Discard()
	b.s.tidy()
	return nil
}

// publish ends a pack, gives it its name and makes both durable. With claim the pack is
// held before it has its name.
func (s *Store) publish(ctx context.Context, w *packWriter, claim bool) (name string, err error) {
	defer w.drop()
	check, err := w.finish()
	if err != nil {
		return "", err
	}
	name = "pack-" + string(check.ID())
	data := encodeIndex(w.list, check)
	x, err := parseIndex(data)
	if err != nil {
		return "", err
	}
	table, err := w.create()
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(table.Name()) }() // it has another name when all went well
	_, err = table.Write(data)
	if err == nil {
		err = s.fault("sync")
	}
	if err = errors.Join(err, table.Sync(), table.Close()); err != nil {
		return "", err
	}
	size, packTemp := w.at(), w.f.Name()
	if err := w.f.Close(); err != nil {
		return "", err
	}
	failpoint.Hit("object.pack.written")
	if claim {
		if err := s.claim(ctx, name); err != nil {
			return "", err
		}
	}
	p := &pack{name: name, path: filepath.Join(s.packDir(), name+".pack"), size: size, idx: x}
	anew := false
	s.mu.RLock()
	for _, e := range w.list {
		anew = anew || s.known.spoiled[e.id]
	}
	s.mu.RUnlock()
	if err := s.name(p, packTemp, table.Name(), anew); err != nil {
		if claim {
			s.unclaim(name)
		}
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.packs[name] == nil && s.known.packs != nil {
		s.known.add(s, p)
	}
	for _, e := range w.list {
		delete(s.known.spoiled, e.id)
	}
	return name, nil
}

// name moves a pack and its index to their places: the index last, because it is
// what makes the pack visible. A pack of that name has the same bytes, unless it
// is damaged. After an error nothing is taken back: somebody may rely on it already.
func (s *Store) name(p *pack, packTemp, indexTemp string, anew bool) error {
	index := filepath.Join(s.packDir(), p.name+".idx")
	_, e1 := os.Stat(p.path)
	_, e2 := os.Stat(index)
	if e1 == nil && e2 == nil && !anew {
		return syncDir(s.packDir())
	}
	err := s.fault("rename")
	if err == nil {
		err = rename(packTemp, p.path)
	}
	if err != nil {
		return err
	}
	failpoint.Hit("object.pack.named")
	if err = s.fault("rename"); err == nil {
		err = rename(indexTemp, index)
	}
	if err != nil {
		return err
	}
	failpoint.Hit("object.index.named")
	if err = s.fault("syncdir"); err != nil {
		return err
	}
	return syncDir(s.packDir())
}
