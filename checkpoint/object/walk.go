package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// walker goes through what objects reach.
type walker struct {
	s    *Store
	seen map[sum]bool
	// visit is told of each object once, when it is known to be there.
	visit func(id sum, kind Kind)
}

// step is an object to look at; its kind is "" when nobody said it.
type step struct {
	id   sum
	kind Kind
}

// from looks at all that the roots reach. When strict is set, an object that is
// missing is ErrDamaged; otherwise it is passed over. One that cannot be read always is.
func (w *walker) from(ctx context.Context, roots []sum, strict bool) error {
	var todo []step
	for _, id := range roots {
		todo = append(todo, step{id: id})
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if w.seen[at.id] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		more, kind, err := w.look(ctx, at)
		if errors.Is(err, ErrMissing) {
			if !strict {
				continue
			}
			return fmt.Errorf("what is still needed is not complete (nothing may be removed): %w: %w", ErrDamaged, err)
		}
		if err != nil {
			return err
		}
		w.seen[at.id] = true
		if w.visit != nil {
			w.visit(at.id, kind)
		}
		todo = append(todo, more...)
	}
	return nil
}

// look gives what one object names.
func (w *walker) look(ctx context.Context, at step) (more []step, kind Kind, err error) {
	id := at.id.ID()
	if at.kind == "" {
		if at.kind, _, err = w.s.Stat(ctx, id); err != nil {
			return nil, "", err
		}
	}
	if at.kind == KindBlob {
		if !w.s.stored(at.id) {
			_, _, err = w.s.Stat(ctx, id)
		}
		return nil, KindBlob, err
	}
	kind, data, err := w.s.get(ctx, id, largest)
	if err != nil {
		return nil, "", err
	}
	switch kind {
	case KindTree:
		err = eachEntry(data, func(mode uint32, _ []byte, id sum) {
			switch mode & 0o170000 {
			case ModeCommit: // lies elsewhere
			case ModeTree:
				more = append(more, step{id, KindTree})
			default:
				more = append(more, step{id, KindBlob})
			}
		})
	case KindCommit:
		var c Commit
		if c, err = ParseCommit(data); err == nil {
			for _, p := range append([]ID{c.Tree}, c.Parents...) {
				k, _ := p.sum() // ParseCommit takes no others
				more = append(more, step{id: k})
			}
		}
	case KindTag:
		line, _, _ := bytes.Cut(data, []byte{'\n'})
		name, ok := bytes.CutPrefix(line, []byte("object "))
		k, e := ID(name).sum()
		if !ok || e != nil {
			err = fmt.Errorf("a tag %w: it names nothing", ErrDamaged)
		}
		more = append(more, step{id: k})
	}
	if err != nil {
		return nil, "", fmt.Errorf("object %s: %w", id, err)
	}
	return more, kind, nil
}

// stored reports whether a pack that is known has the object.
func (s *Store) stored(id sum) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.known.find(s, id)
	return ok
}

// Reaches counts the objects that a ref reaches, and the bytes that they take on the
// disk. What other refs reach as well is counted too.
func (s *Store) Reaches(ctx context.Context, ref string) (objects int, bytes int64, err error) {
	id, err := s.Ref(ref)
	if err != nil {
		return 0, 0, err
	}
	root, err := id.sum()
	if err != nil {
		return 0, 0, err
	}
	if _, err := s.refresh(false); err != nil {
		return 0, 0, err
	}
	w := walker{s: s, seen: map[sum]bool{}, visit: func(id sum, _ Kind) {
		objects++
		bytes += s.takes(id)
	}}
	if err := w.from(ctx, []sum{root}, true); err != nil {
		return 0, 0, fmt.Errorf("what %s reaches: %w", ref, err)
	}
	return objects, bytes, nil
}

// takes is how many bytes the first copy of an object takes on the disk.
func (s *Store) takes(id sum) int64 {
	s.mu.RLock()
	c, ok := s.known.find(s, id)
	s.mu.RUnlock()
	if ok {
		return c.p.length(c.p.idx.offset(c.i))
	}
	return fileSize(s.loose(id).path)
}

// Size is how many bytes the objects take on the disk.
func (s *Store) Size() (int64, error) {
	var n int64
	err := filepath.WalkDir(s.path("objects"), func(_ string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile, or nothing was ever written
		case err == nil && d.Type().IsRegular():
			if fi, err := d.Info(); err == nil {
				n += fi.Size()
			}
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("the size of the object store: %w", err)
	}
	return n, nil
}
