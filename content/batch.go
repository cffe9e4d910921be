package content

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
)

// Batch is a set of contents that become durable together. It belongs to one goroutine.
type Batch struct {
	s     *Store
	ctx   context.Context
	w     *bundleWriter
	found bool // some contents were present already
	done  bool
}

// Begin starts a batch and creates the store if it does not exist. Close or Discard must follow.
func (s *Store) Begin(ctx context.Context) (*Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.create(); err != nil {
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
	return &Batch{s: s, ctx: ctx, w: newBundleWriter(s.tempFile, s.fault)}, nil
}

// stored reports whether a content need not be written.
func (b *Batch) stored(k key, manifest bool) bool {
	if kind, ok := b.w.have[k]; ok && (kind || !manifest) {
		return true
	}
	there, _ := b.s.relyOn(k, manifest, false) // what cannot be held is written again
	b.found = b.found || there
	return there
}

func (b *Batch) open() error {
	if b.done {
		return errors.New("write to the content store: the batch is closed")
	}
	return b.ctx.Err()
}

// Add adds a content.
func (b *Batch) Add(data []byte) (Hash, error) { return b.add(data, false) }

func (b *Batch) add(data []byte, manifest bool) (Hash, error) {
	if err := b.open(); err != nil {
		return "", err
	}
	k := key(sha256.Sum256(data))
	if b.stored(k, manifest) {
		return k.hash(), nil
	}
	if _, twice := b.w.have[k]; twice { // a file of this batch has the bytes of this manifest
		b.w.setManifest(k)
		return k.hash(), nil
	}
	if err := b.w.add(k, data, manifest); err != nil {
		return "", fmt.Errorf("write to the content store: %w", err)
	}
	return k.hash(), nil
}

// AddFrom adds a content of size bytes from a stream, in little memory. A longer or shorter stream is ErrLength, and
// nothing is added.
func (b *Batch) AddFrom(r io.Reader, size int64) (Hash, error) {
	if err := b.open(); err != nil {
		return "", err
	}
	if size < 0 {
		return "", fmt.Errorf("write to the content store: %w: it cannot be %d", ErrLength, size)
	}
	r = &contextReader{b.ctx, r}
	if size > inMemory {
		k, err := b.w.stream(r, size, func(k key) bool { return b.stored(k, false) })
		if err != nil {
			return "", fmt.Errorf("write to the content store: %w", err)
		}
		return k.hash(), nil
	}
	var data bytes.Buffer
	data.Grow(int(size) + bytes.MinRead)
	n, err := io.Copy(&data, io.LimitReader(r, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("%w: not %d bytes", ErrLength, size)
	}
	if err != nil {
		return "", fmt.Errorf("write to the content store: %w", err)
	}
	return b.Add(data.Bytes())
}

// AddManifest adds a manifest. Everything it names must be in this batch or in the store; a name that is missing is
// ErrMissing, so that no collection ever finds a manifest without its contents.
func (b *Batch) AddManifest(m Manifest) (Hash, error) {
	names, err := m.names()
	if err != nil {
		return "", fmt.Errorf("write a manifest: %w", err)
	}
	for _, k := range names {
		if _, ok := b.w.have[k]; ok {
			continue
		}
		there, err := b.s.relyOn(k, false, true)
		if err == nil && !there {
			err = ErrMissing
		}
		if err != nil {
			return "", fmt.Errorf("write a manifest: content %s %w", k.hash(), err)
		}
		b.found = true
	}
	data, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("write a manifest: %w", err)
	}
	return b.add(data, true)
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

// Close makes the batch durable and holds it until Settle. When everything was present already it writes nothing. After
// an error nothing of the batch counts, and the store is as before.
func (b *Batch) Close() error {
	defer b.Discard()
	if err := b.open(); err != nil {
		return err
	}
	if len(b.w.rows) == 0 {
		if !b.found {
			return nil
		}
		// Another process may have renamed what was found without having synced the folder yet.
		return atomicfile.SyncDir(b.s.path(bundlesDir))
	}
	if _, err := b.s.publish(b.ctx, b.w, true); err != nil {
		return fmt.Errorf("write to the content store: %w", err)
	}
	b.Discard()
	b.s.mergeSmall()
	return nil
}

// publish finishes a bundle, renames it to its final name and makes both durable. With claim the bundle is held before
// it has that name.
func (s *Store) publish(ctx context.Context, w *bundleWriter, claim bool) (name string, err error) {
	defer w.drop()
	b, err := w.finish()
	if err != nil {
		return "", err
	}
	// The name is random: the same contents written twice are two bundles, and a damaged one is never in the way.
	name = fmt.Sprintf("%016x", rand.Uint64())
	b.name, b.path = name, s.path(bundlesDir, name+bundleSuffix)
	failpoint.Hit("content.bundle.written")
	if claim {
		if err := s.claim(ctx, name); err != nil {
			return "", err
		}
	}
	if err = s.fault("rename"); err == nil {
		err = atomicfile.Rename(w.f.Name(), b.path)
	}
	if err != nil {
		return "", err
	}
	failpoint.Hit("content.bundle.named")
	if err = s.fault("syncdir"); err == nil {
		err = atomicfile.SyncDir(s.path(bundlesDir))
	}
	if err != nil {
		return "", err // the bundle stays: another process may rely on it already
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.bundles[name] == nil && s.known.bundles != nil {
		s.known.add(b)
	}
	return name, nil
}
