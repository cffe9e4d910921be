package object

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/roost-dev/roost/internal/failpoint"
)

// CollectOptions say what Collect does.
type CollectOptions struct {
	// Keep names more objects that stay, with all that they reach. It is asked more than
	// once. One that is not there is no error.
	Keep func() ([]ID, error)
	// DryRun only counts, and writes nothing.
	DryRun bool
	// Without are refs that a dry run takes for removed.
	Without []string
}

// Collected is what Collect did, or would do.
type Collected struct {
	Kept, Removed int   // objects
	Before, After int64 // bytes on disk; of a dry run After is a guess
}

// large is from which size on a pack all of whose objects are needed is left as it is.
const large = 16 << 20

// collection is one Collect at work.
type collection struct {
	s     *Store
	o     CollectOptions
	w     walker
	packs map[string]*pack // what there was when it began; others came later and stay
	loose []sum
	stay  map[string]bool // packs, and looseName, that stay whole
}

// Collect removes what neither a ref nor Keep reaches and nobody holds, and puts the rest
// of the packs that are small or have garbage into one. Writers and readers go on
// meanwhile; writers wait only while files are removed. A kill at any moment loses
// nothing. When something that a ref reaches is missing or cannot be read, the error is
// ErrDamaged and nothing is removed.
func (s *Store) Collect(ctx context.Context, o CollectOptions) (done Collected, err error) {
	if _, err := os.Stat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return Collected{}, nil
	}
	defer func() {
		if err != nil {
			done, err = Collected{}, fmt.Errorf("collect garbage in the object store: %w", err)
		}
	}()
	if !o.DryRun {
		if err := s.make(); err != nil {
			return done, err
		}
		free, err := s.lock(ctx, lockCollect, true)
		if err != nil {
			return done, err
		}
		defer free()
	}
	c := &collection{s: s, o: o, w: walker{s: s, seen: map[sum]bool{}}, stay: map[string]bool{}}
	if done.Before, err = s.Size(); err != nil {
		return done, err
	}
	total, err := c.begin(ctx)
	if err != nil {
		return done, err
	}
	moved, files := c.worth()
	if o.DryRun {
		done.Kept, done.After = len(c.w.seen), done.Before
		done.Removed = total - len(c.w.seen)
		for _, p := range moved {
			for i := range p.idx.n {
				if !c.w.seen[p.idx.id(i)] {
					done.After -= p.length(p.idx.offset(i))
				}
			}
		}
		for _, id := range files {
			if !c.w.seen[id] {
				done.After -= fileSize(s.loose(id).path)
			}
		}
		return done, nil
	}
	name, err := c.gather(ctx, moved, files)
	if err != nil {
		return done, err
	}
	failpoint.Hit("object.collect.written")
	if err := c.finish(ctx, name, moved, files); err != nil {
		return done, err
	}
	if done.After, err = s.Size(); err != nil {
		return done, err
	}
	done.Kept, done.Removed = len(c.w.seen), max(total-len(c.w.seen), 0)
	return done, nil
}

// begin looks at what there is and marks what is needed; it gives how many objects
// there are.
func (c *collection) begin(ctx context.Context) (total int, err error) {
	s := c.s
	if _, err := s.refresh(true); err != nil {
		return 0, err
	}
	held, err := s.leases(false)
	if err != nil {
		return 0, err
	}
	if c.loose, err = s.looseIDs(); err != nil {
		return 0, err
	}
	all := map[sum]bool{}
	s.mu.RLock()
	bad := s.known.damaged()
	c.packs = make(map[string]*pack, len(s.known.packs))
	for name, p := range s.known.packs {
		c.packs[name] = p
		for i := range p.idx.n {
			all[p.idx.id(i)] = true
		}
	}
	s.mu.RUnlock()
	if bad != "" {
		return 0, fmt.Errorf("%s %w", bad, ErrDamaged)
	}
	for _, id := range c.loose {
		all[id] = true
	}
	if err := c.mark(ctx); err != nil {
		return 0, err
	}
	return len(all), c.spare(ctx, held)
}

// mark marks what refs and Keep reach.
func (c *collection) mark(ctx context.Context) error {
	refs, err := c.s.Refs()
	if err != nil {
		return err
	}
	var roots []sum
	add := func(id ID) {
		if k, err := id.sum(); err == nil {
			roots = append(roots, k)
		}
	}
	for ref, id := range refs {
		if !c.o.DryRun || !slices.Contains(c.o.Without, ref) {
			add(id)
		}
	}
	if err := c.w.from(ctx, roots, true); err != nil {
		return err
	}
	roots = nil
	if id, err := c.s.resolve("HEAD"); err == nil { // a person may have checked a commit out
		add(id)
	}
	if c.o.Keep != nil {
		more, err := c.o.Keep()
		if err != nil {
			return err
		}
		for _, id := range more {
			add(id)
		}
	}
	return c.w.from(ctx, roots, false)
}

// spare has packs stay that somebody relies on, that a person guards, or that came after
// the beginning, and all that their objects reach: who finds a tree to be there may rely on
// what it names. It ends when nothing more has to stay.
func (c *collection) spare(ctx context.Context, held []lease) error {
	s := c.s
	for {
		var roots []sum
		more := false
		s.mu.RLock()
		all := lost(held, s.known.packs) // what is relied on may lie anywhere
		for name, p := range s.known.packs {
			if c.stay[name] || c.packs[name] != nil && !all && !relied(held, name) && !p.guarded() {
				continue
			}
			c.stay[name], more = true, true
			for i := range p.idx.n {
				roots = append(roots, p.idx.id(i))
			}
		}
		s.mu.RUnlock()
		if (all || relied(held, looseName)) && !c.stay[looseName] {
			c.stay[looseName], more = true, true
			roots = append(roots, c.loose...)
		}
		if !more {
			return nil
		}
		if err := c.w.from(ctx, roots, false); err != nil {
			return err
		}
	}
}

// worth gives the packs that go, because they are small or have garbage, and the loose
// objects. One small pack alone stays.
func (c *collection) worth() (packs []*pack, files []sum) {
	var whole []*pack // small, and all of it is needed
	for name, p := range c.packs {
		if c.stay[name] {
			continue
		}
		garbage := false
		for i := range p.idx.n {
			garbage = garbage || !c.w.seen[p.idx.id(i)]
		}
		switch {
		case garbage:
			packs = append(packs, p)
		case p.size < large:
			whole = append(whole, p)
		default:
			c.stay[name] = true
		}
	}
	if !c.stay[looseName] {
		files = c.loose
	}
	if len(whole) > 1 || len(packs) > 0 || len(files) > 0 {
		packs = append(packs, whole...)
	} else {
		for _, p := range whole {
			c.stay[p.name] = true
		}
	}
	slices.SortFunc(packs, func(a, b *pack) int { return int(min(max(a.size-b.size, -1), 1)) })
	return packs, files
}

// gather writes what is needed of packs that go into one new pack.
func (c *collection) gather(ctx context.Context, packs []*pack, files []sum) (name string, err error) {
	s := c.s
	elsewhere := map[sum]bool{}
	for name := range c.stay {
		if p := c.packs[name]; p != nil {
			for i := range p.idx.n {
				elsewhere[p.idx.id(i)] = true
			}
		}
	}
	need := func(id sum) bool { return c.w.seen[id] && !elsewhere[id] }
	w := newPackWriter(s.scratch, s.fault)
	defer w.drop()
	for _, p := range packs {
		err := s.take(ctx, w, p, need)
		if errors.Is(err, ErrDamaged) {
			// What cannot be read is not lost for good: its pack stays, as one that came later.
			delete(c.packs, p.name)
			continue
		}
		if err != nil {
			return "", err
		}
	}
	for _, id := range files {
		if need(id) && !w.have[id] {
			if err := s.rewrite(ctx, w, id); err != nil {
				return "", err
			}
		}
	}
	if len(w.list) == 0 {
		return "", nil
	}
	return s.publish(ctx, w, false)
}

// take copies the objects of a pack that are needed and not in w yet.
func (s *Store) take(ctx context.Context, w *packWriter, p *pack, need func(sum) bool) error {
	f, err := p.open()
	if err != nil {
		return err
	}
	defer f.Close()
	for i := range p.idx.n {
		id := p.idx.id(i)
		if w.have[id] || !need(id) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		entry, crc, whole, err := packed{s, p, i}.raw(f)
		if err == nil && whole {
			err = p.verify(ctx, f, i)
		}
		if err == nil && whole {
			err = w.raw(id, entry, crc)
		}
		if !whole || errors.Is(err, ErrDamaged) {
			err = s.rewrite(ctx, w, id) // from another copy, perhaps
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rewrite compresses an object anew.
func (s *Store) rewrite(ctx context.Context, w *packWriter, id sum) error {
	kind, size, err := s.Stat(ctx, id.ID())
	if err != nil {
		return err
	}
	if size <= spill {
		kind, data, err := s.get(ctx, id.ID(), 0)
		if err != nil {
			return err
		}
		return w.add(id, kind, data)
	}
	r, stop := s.stream(ctx, id.ID())
	defer stop()
	got, err := w.stream(kind, r, size, nil, func(sum) bool { return false })
	if err == nil && got != id {
		err = fmt.Errorf("object %s %w", id.ID(), ErrDamaged)
	}
	return err
}

// finish removes what went to the new pack, or is needed by nobody, after a second
// look with the lock held: at who relies on what, and only then at the refs. Who lets go
// sets his ref before, so that one of the two looks finds it.
func (c *collection) finish(ctx context.Context, name string, packs []*pack, files []sum) error {
	s := c.s
	s.hold.Lock()
	free, err := s.lock(ctx, lockRemove, true)
	if err != nil {
		s.hold.Unlock()
		return err
	}
	defer s.hold.Unlock()
	defer free()
	held, err := s.leases(true)
	if err != nil {
		return err
	}
	if err := s.orphans(held); err != nil {
		return err
	}
	if _, err := s.refresh(true); err != nil {
		return err
	}
	if name != "" {
		c.stay[name] = true
	}
	if err := c.spare(ctx, held); err != nil {
		return err
	}
	if err := c.mark(ctx); err != nil {
		return err
	}
	// What is marked only now must lie in something that stays; else its pack does.
	for again := true; again; {
		again = false
		safe := map[sum]bool{}
		s.mu.RLock()
		for n, p := range s.known.packs {
			for i := 0; c.stay[n] && i < p.idx.n; i++ {
				safe[p.idx.id(i)] = true
			}
		}
		s.mu.RUnlock()
		for _, p := range packs {
			for i := 0; !c.stay[p.name] && i < p.idx.n; i++ {
				if id := p.idx.id(i); c.w.seen[id] && !safe[id] {
					delete(c.packs, p.name) // it counts as one that came later
					again = true
					break
				}
			}
		}
		for _, id := range files {
			if c.w.seen[id] && !safe[id] && !c.stay[looseName] {
				held = append(held, lease{packs: []string{looseName}})
				again = true
			}
		}
		if err := c.spare(ctx, held); err != nil {
			return err
		}
	}
	packs = slices.DeleteFunc(packs, func(p *pack) bool { return c.stay[p.name] })
	if c.stay[looseName] {
		files = nil
	}
	failpoint.Hit("object.collect.removing")
	return s.remove(packs, files)
}
