package content

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/filelock"
)

// batch is a Batch of a Folder: one bundle.
type batch struct {
	s      *Folder
	ctx    context.Context
	w      *bundleWriter
	found  bool   // some contents were in the store already
	unhold func() // ends the hold of this batch
	done   bool
}

// Begin starts a batch and creates the store if it does not exist. Close or Discard must follow.
func (s *Folder) Begin(ctx context.Context) (Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.create(); err != nil {
		return nil, err
	}
	if err := s.refresh(false); err != nil {
		return nil, err
	}
	unhold := s.Keep() // first, so that no Settle ends the new lease
	if err := s.claim(ctx, ""); err != nil {
		unhold()
		return nil, err
	}
	return &batch{s: s, ctx: ctx, w: newBundleWriter(s.tempFile, s.fault), unhold: unhold}, nil
}

// stored reports whether a content is in this batch or in the store, so that it need not be written.
func (b *batch) stored(k Key, manifest bool) bool {
	if kind, ok := b.w.have[k]; ok && (kind || !manifest) {
		return true
	}
	there, _ := b.s.relyOn(b.ctx, k, manifest, false) // what cannot be held is written again
	b.found = b.found || there
	return there
}

func (b *batch) open() error {
	if b.done {
		return errors.New("write to the content store: the batch is closed")
	}
	return b.ctx.Err()
}

// Add implements Batch.
func (b *batch) Add(data []byte) (Hash, error) { return b.add(data, false) }

func (b *batch) add(data []byte, manifest bool) (Hash, error) {
	if err := b.open(); err != nil {
		return "", err
	}
	k := Key(sha256.Sum256(data))
	if b.stored(k, manifest) {
		return k.Hash(), nil
	}
	if _, twice := b.w.have[k]; twice { // a file of this batch has the bytes of this manifest
		b.w.setManifest(k)
		return k.Hash(), nil
	}
	return k.Hash(), api.Failed(b.w.add(k, data, manifest), "write to the content store")
}

// AddManifest implements Batch.
func (b *batch) AddManifest(m Manifest) (Hash, error) {
	names, err := m.Names()
	if err != nil {
		return "", fmt.Errorf("write a manifest: %w", err)
	}
	for _, k := range names {
		if _, ok := b.w.have[k]; ok {
			continue
		}
		there, err := b.s.relyOn(b.ctx, k, false, true)
		if err == nil && !there {
			err = ErrMissing
		}
		if err != nil {
			return "", fmt.Errorf("write a manifest: content %s %w", k.Hash(), err)
		}
		b.found = true
	}
	data, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("write a manifest: %w", err)
	}
	return b.add(data, true)
}

// Discard implements Batch.
func (b *batch) Discard() {
	if !b.done {
		b.done = true
		b.w.drop()
		b.unhold()
	}
}

// Close implements Batch.
func (b *batch) Close() error {
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
	if len(b.s.small()) >= mergeCount {
		_ = b.s.merge(context.Background())
	}
	return nil
}

// Each batch leaves a bundle. To keep their number low, small bundles are merged into one when mergeCount of them
// exist. A merged bundle that is still small is merged again.
const mergeCount = 50

// small lists the bundles that are not large.
func (s *Folder) small() (list []*bundle) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, b := range s.known.bundles {
		if b.size < largeBundle {
			list = append(list, b)
		}
	}
	return list
}

// largeBundle is the size in bytes from which a bundle without unused contents is not merged or rewritten.
const largeBundle = 16 << 20

// merge puts the small bundles into one; no content is dropped. Bundles that a living Store relies on stay.
// (Rewriting the leases of others was rejected: such a lease would name contents that its owner never wrote or
// found.)
func (s *Folder) merge(ctx context.Context) error {
	free, ok, err := s.tryLock(lockCollect, filelock.Exclusive)
	if !ok {
		return err
	}
	defer free()
	s.hold.Lock()
	defer s.hold.Unlock()
	// With this lock no process begins to rely on a bundle that is about to go.
	free, ok, err = s.tryLock(lockRemove, filelock.Exclusive)
	if !ok {
		return err
	}
	defer free()
	if err := s.refresh(true); err != nil {
		return err
	}
	leases, err := s.leases(false)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(s.small(), func(b *bundle) bool { return leased(leases, b.name) })
	if len(list) < mergeCount/2 {
		return nil
	}
	w := newBundleWriter(s.scratchFile, s.fault)
	defer w.drop()
	list = slices.DeleteFunc(list, func(b *bundle) bool { return w.take(ctx, b, func(Key) bool { return true }) != nil })
	if len(list) < 2 {
		return fmt.Errorf("merge bundles: %w", ErrDamaged)
	}
	if _, err := s.publish(ctx, w, false); err != nil {
		return err
	}
	failpoint.Hit("content.merge.written")
	return s.remove(list)
}

// remove removes bundles; the caller holds the exclusive lock. A bundle that Windows does not remove, because another
// process reads it, stays until the next time.
func (s *Folder) remove(list []*bundle) error {
	if len(list) == 0 {
		return nil
	}
	for _, b := range list {
		_ = os.Remove(b.path)
	}
	if err := s.refresh(true); err != nil {
		return err
	}
	return atomicfile.SyncDir(s.path(bundlesDir))
}

// scratchFile makes the file of a bundle that no lease covers: one process at a time collects or merges.
func (s *Folder) scratchFile() (*os.File, error) {
	if err := s.fault("create"); err != nil {
		return nil, err
	}
	return os.CreateTemp(s.path(tempDir), "collect-*")
}

// publish finishes a bundle, renames it to its final name and makes both durable. With claim, this Store holds the
// bundle before it has that name.
func (s *Folder) publish(ctx context.Context, w *bundleWriter, claim bool) (name string, err error) {
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
	if _, err := s.place(w.f, b.path, "content.bundle.named"); err != nil {
		return "", err // a bundle with its name stays: another process may rely on it already
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.bundles[name] == nil && s.known.bundles != nil {
		s.known.add(b)
	}
	return name, nil
}

// Name implements Store.
func (s *Folder) Name(_ context.Context, owner string) (Hash, error) {
	if err := CheckOwner(owner); err != nil {
		return "", err
	}
	data, err := os.ReadFile(s.path(namesDir, owner))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the name %s %w", owner, ErrMissing)
	}
	if err != nil {
		return "", err
	}
	h := Hash(strings.TrimSuffix(string(data), "\n"))
	if !h.Valid() {
		return "", fmt.Errorf("the name %s %w: its file holds no hash", owner, ErrDamaged)
	}
	return h, nil
}

// Names implements Store.
func (s *Folder) Names(ctx context.Context) (map[string]Named, error) {
	list, err := readDir(s.path(namesDir))
	names := map[string]Named{}
	for _, d := range list {
		if CheckOwner(d.Name()) != nil {
			continue // a temporary file
		}
		h, bad := s.Name(ctx, d.Name())
		if errors.Is(bad, ErrMissing) {
			continue // removed since
		}
		info, e := d.Info()
		if bad != nil || e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, bad, e)
			continue
		}
		n := Named{Manifest: h}
		if e == nil {
			n.At = info.ModTime()
		}
		names[d.Name()] = n
	}
	return names, api.Failed(err, "read the names of the content store")
}

// SetName implements Store.
func (s *Folder) SetName(ctx context.Context, owner string, h Hash) error {
	fail := func(err error) error { return fmt.Errorf("give content %s to %s: %w", h, owner, err) }
	k, err := h.Key()
	if err = errors.Join(err, CheckOwner(owner)); err != nil {
		return fail(err)
	}
	defer s.Keep()() // what relyOn finds is held
	if err := s.refresh(false); err != nil {
		return fail(err)
	}
	there, err := s.relyOn(ctx, k, true, true)
	if err == nil && !there {
		err = ErrMissing
	}
	if err == nil {
		err = s.writeName(owner, h)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

func (s *Folder) writeName(owner string, h Hash) error {
	f, err := s.tempFile()
	if err != nil {
		return err
	}
	if err = s.fault("write"); err == nil {
		_, err = f.WriteString(string(h) + "\n")
	}
	if err == nil {
		err = s.fault("sync")
	}
	named := false
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		failpoint.Hit("content.name.written")
		named, err = s.place(f, s.path(namesDir, owner), "content.name.named")
	}
	if !named {
		_ = os.Remove(f.Name())
	}
	return err
}

// place renames a finished file to its place, and makes its name durable.
func (s *Folder) place(f *os.File, to, point string) (named bool, err error) {
	if err = s.fault("rename"); err == nil {
		err = atomicfile.Rename(f.Name(), to)
	}
	if err != nil {
		return false, err
	}
	failpoint.Hit(point)
	if err = s.fault("syncdir"); err == nil {
		err = atomicfile.SyncDir(filepath.Dir(to))
	}
	return true, err
}

// RemoveName implements Store.
func (s *Folder) RemoveName(_ context.Context, owner string) error {
	err := CheckOwner(owner)
	if err == nil {
		err = os.Remove(s.path(namesDir, owner))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err == nil {
		err = atomicfile.SyncDir(s.path(namesDir))
	}
	return api.Failed(err, "remove the name %s from the content store", owner)
}

// Manifest implements Store.
func (s *Folder) Manifest(ctx context.Context, h Hash) (Manifest, error) {
	return s.manifest(ctx, h, false)
}

func (s *Folder) manifest(ctx context.Context, h Hash, alone bool) (Manifest, error) {
	var m Manifest
	var data bytes.Buffer
	if err := s.copy(ctx, h, MaxManifest, &data, alone); err != nil {
		return m, err
	}
	return m, api.Failed(json.Unmarshal(data.Bytes(), &m), "content %s %w: it is not a manifest", h, ErrDamaged)
}

// walker visits everything that manifests reach. Its caller keeps other processes from removing bundles, by
// keepBundles or because it is the one that collects.
type walker struct {
	s     *Folder
	seen  map[Key]bool
	bytes int64 // stored size of the visited contents
}

// walk marks everything that roots reach. With strict, a missing content is ErrDamaged; otherwise walk skips it. An
// unreadable manifest is always an error.
func (w *walker) walk(ctx context.Context, roots []Key, strict bool) error {
	fresh := false
	todo := slices.Clone(roots)
	for len(todo) > 0 {
		k := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if w.seen[k] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		row, ok := w.s.row(k)
		if !ok && !fresh { // it may have been added after the last reading of the folder
			fresh = true
			if err := w.s.refresh(true); err != nil {
				return err
			}
			row, ok = w.s.row(k)
		}
		if !ok {
			if !strict {
				continue
			}
			return fmt.Errorf("a content that is still needed is missing, so nothing may be removed: %w: content %s", ErrDamaged, k.Hash())
		}
		if row.manifest {
			m, err := w.s.manifest(ctx, k.Hash(), true)
			if err != nil {
				return err
			}
			more, err := m.Names()
			if err != nil {
				return fmt.Errorf("manifest %s %w: %w", k.Hash(), ErrDamaged, err)
			}
			todo = append(todo, more...)
		}
		w.seen[k] = true
		w.bytes += row.stored
	}
	return nil
}

// Reaches implements Store.
func (s *Folder) Reaches(ctx context.Context, owner string) (contents int, bytes int64, err error) {
	h, err := s.Name(ctx, owner)
	if err != nil {
		return 0, 0, err
	}
	k, err := h.Key()
	if err != nil {
		return 0, 0, err
	}
	free, err := s.keepBundles(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer free()
	w := walker{s: s, seen: map[Key]bool{}}
	err = w.walk(ctx, []Key{k}, true)
	return len(w.seen), w.bytes, api.Failed(err, "what %s reaches", owner)
}
