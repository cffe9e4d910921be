package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/roost-dev/roost/internal/failpoint"
)

// Each batch leaves a pack. So that there are never many, the packs of one size are
// merged into one of the next when there are many of them: an object is copied
// as often as there are sizes.
const crowd = 50

// sizes are below which a pack is of a size; larger ones are left to Collect.
var sizes = [...]int64{256 << 10, 16 << 20}

// tidy merges small packs when there are many. It waits for nobody, and when it
// fails all is as before: the next batch tries again.
func (s *Store) tidy() {
	for size := range sizes {
		if len(s.ofSize(size)) >= crowd {
			// What is lost by a failure here is only speed; there is nobody to tell.
			if err := s.merge(context.Background(), size); err != nil {
				return
			}
		}
	}
}

// ofSize lists the packs of a size.
func (s *Store) ofSize(size int) (list []*pack) {
	var least int64
	if size > 0 {
		least = sizes[size-1]
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.known.packs {
		if p.size >= least && p.size < sizes[size] {
			list = append(list, p)
		}
	}
	return list
}

// merge puts the packs of a size into one. Nothing is dropped: what somebody
// relies on he relies on in the new pack, because that is written into his lease.
func (s *Store) merge(ctx context.Context, size int) error {
	free, ok, err := s.tryLock(lockCollect, true)
	if !ok {
		return err
	}
	defer free()
	s.hold.Lock()
	defer s.hold.Unlock()
	// With this lock nobody begins to rely on a pack that is about to go.
	free, ok, err = s.tryLock(lockRemove, true)
	if !ok {
		return err
	}
	defer free()
	if _, err := s.refresh(true); err != nil {
		return err
	}
	list := slices.DeleteFunc(s.ofSize(size), (*pack).guarded)
	if len(list) < crowd {
		return nil // somebody else did it
	}
	w := newPackWriter(s.scratch, s.fault)
	defer w.drop()
	list = slices.DeleteFunc(list, func(p *pack) bool { return s.copyAll(w, p) != nil })
	if len(list) < 2 {
		return fmt.Errorf("merge packs: %w", ErrDamaged)
	}
	name, err := s.publish(ctx, w, false)
	if err != nil {
		return err
	}
	failpoint.Hit("object.merge.written")
	held, err := s.leases(false)
	if err != nil {
		return err
	}
	for _, l := range held {
		lines := name
		for _, p := range list {
			if slices.Contains(l.packs, p.name) && p.name != name {
				lines += "\n" + gonePrefix + p.name
			}
		}
		if lines == name {
			continue
		}
		if err := s.inherit(l.name, lines); err != nil {
			return err
		}
	}
	failpoint.Hit("object.merge.removing")
	return s.remove(slices.DeleteFunc(list, func(p *pack) bool { return p.name == name }), nil)
}

// copyAll copies every object of a pack, or nothing.
func (s *Store) copyAll(w *packWriter, p *pack) error {
	f, err := p.open()
	if err != nil {
		return err
	}
	defer f.Close()
	start, count := w.at(), len(w.list)
	for i := range p.idx.n {
		id := p.idx.id(i)
		if w.have[id] {
			continue
		}
		entry, crc, whole, err := packed{s, p, i}.raw(f)
		if err == nil && !whole {
			err = fmt.Errorf("%s holds differences", p.name)
		}
		if err == nil {
			err = p.verify(context.Background(), f, i)
		}
		if err == nil {
			err = w.raw(id, entry, crc)
		}
		if err != nil {
			for _, e := range w.list[count:] {
				delete(w.have, e.id)
			}
			w.list = w.list[:count]
			if e := w.back(start); e != nil {
				return e
			}
			return err
		}
	}
	return nil
}

// inherit adds lines to somebody's lease. The caller holds the lock.
func (s *Store) inherit(lease, lines string) error {
	f, err := os.OpenFile(s.path("roost", "leases", lease), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return errors.Join(addLine(f, lines), f.Close())
}

// scratch is where a pack is written that is nobody's: one at a time collects or merges.
func (s *Store) scratch() (*os.File, error) {
	if err := s.fault("create"); err != nil {
		return nil, err
	}
	return os.CreateTemp(s.path("roost", "tmp"), "collect-*")
}

// stream reads an object of any size. stop ends it and waits.
func (s *Store) stream(ctx context.Context, id ID) (r io.Reader, stop func()) {
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pw.CloseWithError(s.Copy(ctx, id, pw))
	}()
	return pr, func() {
		_ = pr.Close()
		<-done
	}
}
