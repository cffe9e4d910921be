package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
)

// RestoreStep is one entry that is to be restored; see Restore.
type RestoreStep struct {
	Path     string // relative to the root, as the disk has it
	From, To Entry
	Data     func() ([]byte, error)
}

// How many orders are under way at once: so many files are open, and so many are made
// durable by a few writes of the file system's own log. One after the other each of them
// would wait for the disk alone. To have the system sync all it has was turned down, as
// that waits for what other programs write, too.
const (
	maxOpenRestores  = 128
	maxParallelSyncs = 16
)

// pendingRestore is one order between its beginning and its end.
type pendingRestore struct {
	at   int // of the orders
	abs  string
	dir  *folder
	name string
	now  Entry
	to   Entry
	tmp  *temp
	link string // where a link is to lead
}

// fill writes the new content beside the place, without syncing it.
func (c *pendingRestore) fill(ctx context.Context, content []byte) error {
	old, err := c.dir.Lstat(c.name)
	if err != nil {
		old = nil // there is no file, or the check at the end reports why not
	}
	if c.tmp, err = createTemp(c.dir.Root, c.name, true); err != nil {
		var at *fs.PathError
		if errors.As(err, &at) && errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("its folder may not be written to: %w", at.Err) // without the name, which is our temporary one
		}
		return err
	}
	return c.tmp.fill(ctx, content, likeMode(old, c.to.Mode))
}

// discard cancels the restore of one file and leaves nothing behind.
func (c *pendingRestore) discard() {
	if c.tmp != nil {
		c.tmp.discard()
	}
	c.dir.release(false)
}

// RestoreAll is Restore for many steps, in their order, except for the contents of files: it
// writes those of several files, then syncs them together, and only then renames them. It
// calls done once for each step that finished, not always in their order. It leaves alone a
// path that entries may not be restored at.
//
// After an error, failed is the step it belongs to, which may be half done, for example when
// a folder was made for it. Steps without a call of done have changed nothing.
func (b *Restorer) RestoreAll(ctx context.Context, orders []RestoreStep, done func(i int, put RestoreResult)) (failed int, err error) {
	var open []*pendingRestore
	defer func() {
		for i := len(open) - 1; i >= 0; i-- {
			open[i].discard() // the other way round: folders that were made for them may go
		}
	}()
	named := func(i int, err error) (int, error) {
		return i, fmt.Errorf("put back %s: %w", filepath.ToSlash(orders[i].Path), err)
	}
	flush := func() (int, error) {
		var first error
		at := 0
		var mu sync.Mutex
		for _, c := range open {
			writeback(c.tmp.f)
		}
		_ = forEachParallel(len(open), func(i int) error {
			err := syncFile(open[i].tmp.f)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && first == nil {
				first, at = err, open[i].at
			}
			return err
		})
		if first != nil {
			return named(at, first)
		}
		for len(open) > 0 {
			c := open[0]
			if err := ctx.Err(); err != nil {
				return named(c.at, err)
			}
			open = open[1:]
			put, err := b.finish(ctx, c)
			if err != nil {
				return named(c.at, err)
			}
			done(c.at, put)
		}
		return 0, nil
	}
	for i, o := range orders {
		if err := ctx.Err(); err != nil {
			return named(i, err)
		}
		if !restorable(o.Path) {
			done(i, LeftAlone)
			continue
		}
		c, put, err := b.prepare(ctx, o)
		if err != nil {
			return named(i, err)
		}
		switch {
		case c == nil:
			done(i, put)
		case c.tmp == nil:
			put, err := b.finish(ctx, c)
			if err != nil {
				return named(i, err)
			}
			done(i, put)
		default:
			c.at = i
			open = append(open, c)
		}
		if len(open) >= maxOpenRestores {
			if i, err := flush(); err != nil {
				return i, err
			}
		}
	}
	return flush()
}

// forEachParallel does n things, a few at a time, and gives their first error by number.
func forEachParallel(n int, do func(i int) error) error {
	errs := make([]error, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(n, maxParallelSyncs) {
		wg.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
