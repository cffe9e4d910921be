package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/filelock"
)

// collection is one run of Collect.
type collection struct {
	s       *Folder
	o       CollectOptions
	w       walker
	bundles map[string]*bundle // those that existed at the beginning; later ones are kept
	stay    map[string]bool    // bundles that are kept whole
}

// Collect removes contents that neither a name nor Keep reaches and no Store holds. From bundles with unused
// contents, it copies the needed ones into a new bundle, and then removes the old bundles. Writers and readers
// continue; writers wait only while files are removed. A kill at any moment loses nothing. If something that a name
// reaches is missing or unreadable, the error is ErrDamaged and nothing is removed.
//
// A bundle with any unused content is rewritten, however little that is: purged contents must not stay on disk. A full
// disk has no room for that. Then Collect removes the bundles without needed contents, and fails if others have unused
// ones.
func (s *Folder) Collect(ctx context.Context, o CollectOptions) (done Collected, err error) {
	if _, err := os.Stat(s.path(bundlesDir)); errors.Is(err, fs.ErrNotExist) {
		return Collected{}, nil
	}
	defer func() {
		if err != nil {
			done, err = Collected{}, fmt.Errorf("remove unused contents: %w", err)
		}
	}()
	if o.DryRun {
		free, err := s.keepBundles(ctx)
		if err != nil {
			return done, err
		}
		defer free()
	} else {
		if err := s.create(); err != nil {
			return done, err
		}
		free, err := s.lock(ctx, lockCollect, filelock.Exclusive)
		if err != nil {
			return done, err
		}
		defer free()
	}
	c := &collection{s: s, o: o, w: walker{s: s, seen: map[Key]bool{}}, stay: map[string]bool{}}
	if done.Before, err = s.Size(ctx); err != nil {
		return done, err
	}
	total, err := c.begin(ctx)
	if err != nil {
		return done, err
	}
	moved := c.choose()
	if o.DryRun {
		done.Kept, done.Removed, done.After = len(c.w.seen), total-len(c.w.seen), done.Before
		for _, b := range moved {
			for i := range b.count() {
				if !c.w.seen[b.key(i)] {
					done.After -= b.row(i).stored
				}
			}
		}
		return done, nil
	}
	var full error
	if err := c.gather(ctx, moved); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		if slices.ContainsFunc(moved, func(b *bundle) bool { return c.needed(b) > 0 && c.needed(b) < b.count() }) {
			full = err
		}
		moved = slices.DeleteFunc(moved, func(b *bundle) bool { return c.needed(b) > 0 })
	} else if err != nil {
		return done, err
	}
	failpoint.Hit("content.collect.written")
	if err := c.finish(ctx, moved); err != nil {
		return done, err
	}
	if done.After, err = s.Size(ctx); err != nil {
		return done, err
	}
	done.Kept, done.Removed = len(c.w.seen), max(total-len(c.w.seen), 0)
	return done, full
}

// begin reads the existing bundles and marks the needed contents. It returns how many contents exist.
func (c *collection) begin(ctx context.Context) (total int, err error) {
	s := c.s
	if err := s.refresh(true); err != nil {
		return 0, err
	}
	leases, err := s.leases(false)
	if err != nil {
		return 0, err
	}
	all := map[Key]bool{}
	c.bundles = map[string]*bundle{}
	s.mu.RLock()
	bad := s.known.anyBad()
	for name, b := range s.known.bundles {
		c.bundles[name] = b
		for i := range b.count() {
			all[b.key(i)] = true
		}
	}
	s.mu.RUnlock()
	if bad != "" {
		return 0, fmt.Errorf("bundle %s %w", bad, ErrDamaged)
	}
	if err := c.mark(ctx); err != nil {
		return 0, err
	}
	return len(all), c.spare(ctx, leases)
}

// mark marks the contents that names and Keep reach.
func (c *collection) mark(ctx context.Context) error {
	names, err := c.s.Names(ctx)
	if err != nil {
		return err
	}
	var roots []Key
	for owner, n := range names {
		if k, err := n.Manifest.Key(); err == nil && !(c.o.DryRun && slices.Contains(c.o.Without, owner)) {
			roots = append(roots, k)
		}
	}
	if err := c.w.walk(ctx, roots, true); err != nil {
		return err
	}
	if c.o.Keep == nil {
		return nil
	}
	roots = nil
	more, err := c.o.Keep()
	if err != nil {
		return err
	}
	for _, h := range more {
		if k, err := h.Key(); err == nil {
			roots = append(roots, k)
		}
	}
	return c.w.walk(ctx, roots, false)
}

// spare keeps bundles that a living Store relies on or that came after the beginning, and everything their contents
// reach: a Store that found a manifest may rely on the contents that the manifest names. It ends when no further
// bundle has to stay.
func (c *collection) spare(ctx context.Context, leases []lease) error {
	s := c.s
	for {
		var roots []Key
		more := false
		s.mu.RLock()
		for name, b := range s.known.bundles {
			if c.stay[name] || c.bundles[name] != nil && !leased(leases, name) {
				continue
			}
			c.stay[name], more = true, true
			for i := range b.count() {
				roots = append(roots, b.key(i))
			}
		}
		s.mu.RUnlock()
		if !more {
			return nil
		}
		if err := c.w.walk(ctx, roots, false); err != nil {
			return err
		}
	}
}

// choose returns the bundles to remove: those with unused contents, and with them the small ones. A single small
// bundle without unused contents stays. The smallest comes first.
func (c *collection) choose() (list []*bundle) {
	var whole []*bundle
	for name, b := range c.bundles {
		if c.stay[name] {
			continue
		}
		switch {
		case c.needed(b) < b.count():
			list = append(list, b)
		case b.size < largeBundle:
			whole = append(whole, b)
		default:
			c.stay[name] = true
		}
	}
	if len(whole) > 1 || len(list) > 0 {
		list = append(list, whole...)
	} else {
		for _, b := range whole {
			c.stay[b.name] = true
		}
	}
	slices.SortFunc(list, func(a, b *bundle) int { return cmp.Compare(a.size, b.size) })
	return list
}

// needed counts the contents of a bundle that are marked.
func (c *collection) needed(b *bundle) (n int) {
	for i := range b.count() {
		if c.w.seen[b.key(i)] {
			n++
		}
	}
	return n
}

// gather writes the needed contents of the bundles in list into a new bundle, also those that a bundle which stays
// has: only a reading would show that its copy is undamaged.
func (c *collection) gather(ctx context.Context, list []*bundle) error {
	w := newBundleWriter(c.s.scratchFile, c.s.fault)
	defer w.drop()
	for _, b := range list {
		err := w.take(ctx, b, func(k Key) bool { return c.w.seen[k] })
		if errors.Is(err, ErrDamaged) {
			// What cannot be read now is not given up: its bundle stays, like one that came later.
			delete(c.bundles, b.name)
			continue
		}
		if err != nil {
			return err
		}
	}
	if len(w.rows) == 0 {
		return nil
	}
	name, err := c.s.publish(ctx, w, false)
	c.stay[name] = true
	return err
}

// staying returns the contents of the bundles that stay.
func (c *collection) staying() map[Key]bool {
	out := map[Key]bool{}
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	for name, b := range c.s.known.bundles {
		for i := 0; c.stay[name] && i < b.count(); i++ {
			out[b.key(i)] = true
		}
	}
	return out
}

// finish removes the bundles in list, after reading again, under the exclusive lock, first which process relies on
// what and then the names. The order matters: a Store sets its name before it ends its hold, so one of the two
// readings finds it.
func (c *collection) finish(ctx context.Context, list []*bundle) error {
	s := c.s
	s.hold.Lock()
	defer s.hold.Unlock()
	free, err := s.lock(ctx, lockRemove, filelock.Exclusive)
	if err != nil {
		return err
	}
	defer free()
	leases, err := s.leases(true)
	if err != nil {
		return err
	}
	if err := s.refresh(true); err != nil {
		return err
	}
	if err := c.spare(ctx, leases); err != nil {
		return err
	}
	if err := c.mark(ctx); err != nil {
		return err
	}
	// What was marked only now must be in a bundle that stays; otherwise its own bundle stays.
	for again := true; again; {
		again = false
		safe := c.staying()
		for _, b := range list {
			for i := 0; !c.stay[b.name] && i < b.count(); i++ {
				if k := b.key(i); c.w.seen[k] && !safe[k] {
					delete(c.bundles, b.name)
					again = true
					break
				}
			}
		}
		if err := c.spare(ctx, leases); err != nil {
			return err
		}
	}
	failpoint.Hit("content.collect.removing")
	return s.remove(slices.DeleteFunc(list, func(b *bundle) bool { return c.stay[b.name] }))
}
