package content

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/api"
)

// Copy gives an owner in the other store the manifest that it has in this one, with everything that the manifest
// reaches, and returns how many contents were written. It does not write contents that the other store has. An owner
// keeps its manifest there if that one has the manifest of this store among its parents. Hashes stay the same, so a
// copy that was killed can be repeated. The caller settles the other store.
func Copy(ctx context.Context, from, to Store, owner string) (written int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy the contents of %s: %w", owner, err)
		}
	}()
	root, err := from.Name(ctx, owner)
	if err != nil {
		return 0, err
	}
	defer to.Keep()()
	if later, err := continues(ctx, to, owner, root); later || err != nil {
		return 0, err
	}
	b, err := to.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer b.Discard()
	c := copier{ctx: ctx, from: from, to: to, batch: b, there: map[Hash]bool{}}
	if err := c.manifests(root); err != nil {
		return 0, err
	}
	if err := b.Close(); err != nil {
		return 0, err
	}
	return c.written, to.SetName(ctx, owner, root)
}

// continues reports whether the owner's manifest in a store is root, or one that has it among its parents.
func continues(ctx context.Context, s Store, owner string, root Hash) (bool, error) {
	h, err := s.Name(ctx, owner)
	if errors.Is(err, ErrMissing) {
		return false, nil
	}
	for todo, seen := []Hash{h}, map[Hash]bool{}; err == nil && len(todo) > 0; {
		h, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if h == root {
			return true, nil
		}
		if seen[h] {
			continue
		}
		seen[h] = true
		var m Manifest
		m, err = s.Manifest(ctx, h)
		todo = append(todo, m.Parents...)
	}
	return false, err
}

// copier copies contents that manifests reach, into one batch.
type copier struct {
	ctx      context.Context //nolint:containedctx // it lives as long as one call of Copy
	from, to Store
	batch    Batch
	there    map[Hash]bool // in the batch or in the store
	written  int
}

// has reports whether a content is in the other store already, and then holds it there.
func (c *copier) has(h Hash) (bool, error) {
	if c.there[h] {
		return true, nil
	}
	found, err := c.to.Find(c.ctx, h)
	c.there[h] = found
	return found, err
}

// manifests copies a manifest, after the ones before it. A chain of manifests may be as long as its task.
func (c *copier) manifests(root Hash) error {
	for todo := []Hash{root}; len(todo) > 0; {
		h := todo[len(todo)-1]
		if there, err := c.has(h); there || err != nil {
			if err != nil {
				return err
			}
			todo = todo[:len(todo)-1]
			continue
		}
		m, err := c.from.Manifest(c.ctx, h)
		if err != nil {
			return err
		}
		waits := len(todo)
		todo = append(todo, api.Some(m.Parents, func(p Hash) (Hash, bool) { return p, !c.there[p] })...)
		if len(todo) > waits {
			continue
		}
		if err := c.manifest(h, m); err != nil {
			return err
		}
		todo = todo[:len(todo)-1]
	}
	return nil
}

func (c *copier) manifest(h Hash, m Manifest) error {
	for _, f := range m.Files {
		if f.Hash == "" {
			continue
		}
		if there, err := c.has(f.Hash); there || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		data, err := c.from.Read(c.ctx, f.Hash, 0)
		if err != nil {
			return err
		}
		if _, err := c.batch.Add(data); err != nil {
			return err
		}
		c.there[f.Hash] = true
		c.written++
	}
	got, err := c.batch.AddManifest(m)
	if err == nil && got != h {
		err = fmt.Errorf("manifest %s has fields that this program does not know", h)
	}
	if err == nil {
		c.there[h] = true
		c.written++
	}
	return err
}
