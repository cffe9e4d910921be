package filelog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/journal"
)

// reader is a journal.Reader of one folder.
type reader struct {
	fs  FS
	dir string
	key string // see dirKey
	log File   // read only, its own descriptor
	ino uint64

	seal *journal.Seal // verifies commits; nil = they are not verified

	// synced is set in an owner's reader, which knows the synced length by it; other readers must find it out.
	synced *atomic.Int64

	closed  chan struct{}
	closing sync.Once

	vis struct { // what may be seen
		sync.Mutex
		lock     File  // journal.lock, nil until it exists
		limit    int64 // never falls
		settled  int64 // the length that was found while there was no owner ...
		settleAt record
		known    uint64 // a synced commit, by other witnesses than the record
		recalled bool   // the index was read for a witness
	}
	idx struct { // offsets of commits
		sync.Mutex
		index
		loaded bool
	}
}

var _ journal.Stored = (*reader)(nil)

// openReader opens a log. known is a commit that is known to be synced, 0 = none.
func openReader(fsys FS, dir string, known uint64) (*reader, error) {
	path := filepath.Join(dir, logName)
	r := &reader{fs: fsys, dir: dir, key: dirKey(dir), closed: make(chan struct{})}
	r.vis.known = known
	// A FIFO or device in its place would hang the open.
	fi, err := fsys.Lstat(path)
	var f File
	if err == nil && fi.Mode().IsRegular() {
		f, err = fsys.OpenFile(path, os.O_RDONLY, 0) // the folder may have moved away since
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if r.vis.known = max(known, deleted(fsys, dir).Head); r.vis.known == 0 {
			return nil, fmt.Errorf("open %s: %w", dir, journal.ErrNotFound)
		}
		r.log = absent{}
		return r, nil
	case err != nil:
		return nil, fmt.Errorf("open journal: %w", err)
	case f == nil:
		return nil, fmt.Errorf("open journal %s: it is no regular file", path)
	}
	if fi, err = f.Stat(); err != nil {
		f.Close()
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if fi.Size() == 0 { // the process that began it again after it was deleted may have been killed
		r.vis.known = max(known, deleted(fsys, dir).Head)
	}
	r.log, r.ino = f, fileID(fi)
	return r, nil
}

// Close implements journal.Reader.
func (r *reader) Close() error {
	var err error
	r.closing.Do(func() {
		close(r.closed)
		r.vis.Lock()
		defer r.vis.Unlock()
		if r.vis.lock != nil {
			err = r.vis.lock.Close()
		}
		err = cmp.Or(err, r.log.Close())
	})
	return err
}

// check returns why nothing can be read, or nothing any more; nil when reading is possible.
func (r *reader) check(ctx context.Context) error {
	select {
	case <-r.closed:
		return journal.ErrClosed
	default:
		return ctx.Err()
	}
}

// trouble explains a failed read.
func (r *reader) trouble(err error) error {
	if errors.Is(err, fs.ErrClosed) {
		return journal.ErrClosed
	}
	return fmt.Errorf("read journal %s: %w", r.dir, err)
}

// visible returns the length of the log that may be shown, and the last
// sequence recorded as synced (0 if unknown). See the package comment.
func (r *reader) visible(ctx context.Context) (int64, uint64, error) {
	if err := r.check(ctx); err != nil {
		return 0, 0, err
	}
	if r.synced != nil {
		return r.synced.Load(), 0, nil
	}
	r.vis.Lock()
	defer r.vis.Unlock()
	if r.replaced() {
		return 0, 0, fmt.Errorf("read journal %s: open it again: %w", r.dir, journal.ErrReplaced)
	}
	n, head, err := r.measure()
	if err != nil {
		return 0, 0, r.trouble(err)
	}
	r.vis.limit = max(r.vis.limit, n)
	return r.vis.limit, head, nil
}

// replaced reports whether the log's name belongs to another file now. The commits read so far are not in that file,
// so the reader stops with an error. Continuing in the new file at the old offset was rejected, because no check
// shows whether it continues the old one.
func (r *reader) replaced() bool {
	fi, err := r.fs.Lstat(filepath.Join(r.dir, logName))
	return err == nil && fileID(fi) != r.ino
}

// gone reports whether the log's name belongs to no file any more.
func (r *reader) gone() bool {
	_, err := r.fs.Lstat(filepath.Join(r.dir, logName))
	return errors.Is(err, fs.ErrNotExist)
}

func (r *reader) measure() (int64, uint64, error) {
	v := &r.vis
	if v.lock == nil {
		f, err := r.fs.OpenFile(filepath.Join(r.dir, lockName), os.O_RDONLY, 0)
		if err == nil {
			v.lock = f
		}
	}
	var rec record
	var ok bool
	if v.lock != nil {
		rec, ok = readRecord(v.lock)
	}
	if rec.Head == 0 && !v.recalled {
		v.known, v.recalled = max(v.known, indexed(r.fs, r.dir).Head), true
	}
	head := max(rec.Head, v.known)
	// Measured after the record was read: a log shorter than it is really cut.
	fi, err := r.log.Stat()
	if err != nil {
		return 0, 0, err
	}
	size := fi.Size()
	switch {
	case v.lock == nil:
		return size, head, nil // it never had an owner here, or we may not look
	case ok && size <= rec.Synced && head == rec.Head:
		return size, head, nil
	case size == v.settled && rec == v.settleAt:
		return size, head, nil
	}
	free, err := filelock.Try(v.lock, filelock.Shared)
	if err != nil { // no locks here, so no owners either
		return size, head, nil
	}
	if !free {
		return rec.Synced, rec.Head, nil
	}
	defer filelock.Unlock(v.lock) //nolint:errcheck // a shared lock that stays would show as a reader
	if fi, err = r.log.Stat(); err != nil {
		return 0, 0, err
	}
	_ = r.log.Datasync() // best effort: it cannot on a read-only file system, where nothing is unsynced
	v.settled, v.settleAt = fi.Size(), rec
	return fi.Size(), head, nil
}

// item is one step of a walk through the log.
type item struct {
	verdict
	raw rawLine
}

// walk judges the whole lines in [x.off, limit) and moves x.off behind them.
func (r *reader) walk(ctx context.Context, off *int64, o *order, limit int64, f func(item) bool) error {
	s := newLines(r.log, *off, limit, chunk)
	for n := 0; ; n++ {
		if n%64 == 0 {
			if err := r.check(ctx); err != nil {
				return err
			}
		}
		l, err := s.next()
		if errors.Is(err, io.EOF) || err == nil && !l.whole {
			return nil
		}
		if err != nil {
			return r.trouble(err)
		}
		v := o.line(l)
		*off = l.off + l.length
		if !f(item{v, l}) {
			return nil
		}
	}
}

// cursor is a place in a walk.
type cursor struct {
	off   int64
	order order
	from  uint64
}

func cursorAt(sp spot, i int, from uint64) cursor {
	c := cursor{from: max(from, 1)}
	if i >= 0 {
		c.off = sp.Off
		c.order = order{last: sp.Seq - 1, reported: sp.Seq - 1, epoch: sp.Epoch}
	}
	return c
}

// emit walks to limit and yields the lines of commits, and damage. It reports whether the
// caller wants more.
func (r *reader) emit(ctx context.Context, c *cursor, limit int64, head uint64, yield func(item, error) bool) bool {
	goOn := true
	err := r.walk(ctx, &c.off, &c.order, limit, func(it item) bool {
		if goOn = report(c, it.lost, yield); !goOn || !it.commit || it.seq < c.from {
			return goOn
		}
		goOn = yield(it, nil)
		return goOn
	})
	if !goOn {
		return false
	}
	if err != nil {
		yield(item{}, err)
		return false
	}
	return report(c, c.order.end(limit, head), yield)
}

// report yields the lost commits that the caller wants. It reports whether the caller wants more.
func report(c *cursor, lost []journal.Damage, yield func(item, error) bool) bool {
	for _, d := range lost {
		if d.Seq >= c.from && !yield(item{}, &journal.DamageError{Damage: d}) {
			return false
		}
	}
	return true
}

// decoding returns a function that decodes lines and yields their commits.
func decoding(yield func(journal.Commit, error) bool) func(item, error) bool {
	return func(it item, err error) bool {
		if err != nil {
			return yield(journal.Commit{}, err)
		}
		return yield(decode(it.raw))
	}
}

// decode reads a checked line.
func decode(l rawLine) (journal.Commit, error) {
	c, err := journal.DecodeChecked(l.text)
	if d, ok := errors.AsType[*journal.DamageError](err); ok {
		d.Offset, d.Length = l.off, l.length
	}
	return c, err
}

// load reads the stored index, once.
func (r *reader) load(limit int64) {
	if !r.idx.loaded {
		r.idx.index, r.idx.loaded = r.loadIndex(limit), true
	}
}

// refresh brings the index up to limit.
func (r *reader) refresh(ctx context.Context, limit int64) error {
	x := &r.idx
	r.load(limit)
	if x.off >= limit {
		return nil
	}
	return r.walk(ctx, &x.off, &x.order, limit, func(it item) bool {
		if it.commit {
			x.take(it)
		}
		return true
	})
}

// verify makes the reader verify commits. It comes before anything is read.
func (r *reader) verify(s *journal.Seal) {
	r.seal, r.idx.chain = s, journal.NewChain(s)
}

// Proof implements journal.Prover.
func (r *reader) Proof(ctx context.Context) (journal.Proof, error) {
	if _, _, err := r.visible(ctx); err != nil { // opens the lock file
		return journal.Proof{}, err
	}
	rec := record{}
	r.vis.Lock()
	if r.vis.lock != nil {
		rec, _ = readRecord(r.vis.lock)
	}
	r.vis.Unlock()
	limit, _, err := r.visible(ctx) // behind the record: an owner may be at work
	if err != nil {
		return journal.Proof{}, err
	}
	r.idx.Lock()
	defer r.idx.Unlock()
	if err := r.refresh(ctx, limit); err != nil {
		return journal.Proof{}, err
	}
	return r.idx.proof(rec, r.seal), nil
}

// Head implements journal.Reader.
func (r *reader) Head(ctx context.Context) (uint64, error) {
	limit, _, err := r.visible(ctx)
	if err != nil {
		return 0, err
	}
	r.idx.Lock()
	defer r.idx.Unlock()
	if err := r.refresh(ctx, limit); err != nil {
		return 0, err
	}
	return r.idx.order.last, nil
}

// start returns a cursor for reading from a sequence: the nearest known place before it.
func (r *reader) start(from uint64, limit int64) cursor {
	if from <= spotCommits {
		return cursorAt(spot{}, -1, from)
	}
	r.idx.Lock()
	defer r.idx.Unlock()
	r.load(limit)
	for sp, i := r.idx.before(from); i >= 0; i-- {
		sp = r.idx.spots[i]
		if err := lineAt(r.log, sp.Off, limit, sp.Seq); err == nil {
			return cursorAt(sp, i, from)
		}
	}
	return cursorAt(spot{}, -1, from)
}

// Read implements journal.Reader.
func (r *reader) Read(ctx context.Context, from uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) { r.items(ctx, from, decoding(yield)) }
}

// items yields the lines of commits from one on, and damage.
func (r *reader) items(ctx context.Context, from uint64, yield func(item, error) bool) {
	c, limit, head, err := r.open(ctx, from)
	if err != nil {
		yield(item{}, err)
		return
	}
	r.emit(ctx, &c, limit, head, yield)
}

// Bases implements journal.Stored: a folder's own part begins with nothing. See joined.
func (r *reader) Bases() []journal.Base { return nil }

// Lines implements journal.Stored.
func (r *reader) Lines(ctx context.Context, from uint64) iter.Seq2[journal.Line, error] {
	return func(yield func(journal.Line, error) bool) {
		r.items(ctx, from, func(it item, err error) bool {
			return yield(journal.Line{Seq: it.seq, Text: it.raw.text}, err)
		})
	}
}

func (r *reader) open(ctx context.Context, from uint64) (c cursor, limit int64, head uint64, err error) {
	if limit, head, err = r.visible(ctx); err != nil {
		return c, 0, 0, err
	}
	return r.start(from, limit), limit, head, nil
}

// ReadBackward implements journal.Reader. It reads the log in parts between known spots, from the end on. Whether a
// line counts depends on the lines before it, so each part is walked forward and yielded backward; a search for
// newlines from the end was rejected for that reason.
func (r *reader) ReadBackward(ctx context.Context, before uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		if err := r.backward(ctx, before, yield); err != nil {
			yield(journal.Commit{}, err)
		}
	}
}

func (r *reader) backward(ctx context.Context, before uint64, yield func(journal.Commit, error) bool) error {
	limit, head, err := r.visible(ctx)
	if err != nil {
		return err
	}
	r.idx.Lock()
	err = r.refresh(ctx, limit)
	spots := r.idx.spots // only ever appended to
	i := len(spots) - 1
	if before > 0 {
		_, i = r.idx.before(before - 1)
	}
	r.idx.Unlock()
	if err != nil {
		return err
	}
	for ; i >= -1; i-- {
		sp, end, next := spot{Seq: 1}, limit, uint64(0)
		if i >= 0 {
			sp = spots[i]
		}
		if i+1 < len(spots) {
			end, next = spots[i+1].Off, spots[i+1].Seq
		}
		if sp.Off >= end && i < 0 && next <= 1 { // else the first commits are lost
			return nil
		}
		steps, err := r.stretch(ctx, cursorAt(sp, i, 1), end, next, head)
		if err != nil {
			return err
		}
		for k := len(steps) - 1; k >= 0; k-- {
			st := steps[k]
			if before > 0 && st.seq >= before {
				continue
			}
			if st.damage != nil {
				if !yield(journal.Commit{}, &journal.DamageError{Damage: *st.damage}) {
					return nil
				}
			} else if !yield(decode(st.line)) {
				return nil
			}
		}
	}
	return nil
}

// step is a commit or the loss of one.
type step struct {
	seq    uint64
	line   rawLine
	damage *journal.Damage
}

// stretch reads [c.off, end). next is the sequence of the commit at end, 0 if end
// is the end of the log.
func (r *reader) stretch(ctx context.Context, c cursor, end int64, next, head uint64) ([]step, error) {
	var out []step
	lost := func(ds []journal.Damage) {
		out = append(out, api.Each(ds, func(d journal.Damage) step { return step{seq: d.Seq, damage: &d} })...)
	}
	err := r.walk(ctx, &c.off, &c.order, end, func(it item) bool {
		lost(it.lost)
		if it.commit {
			it.raw.text = bytes.Clone(it.raw.text)
			out = append(out, step{seq: it.seq, line: it.raw})
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if next > 0 {
		ds, _ := c.order.settle(next, end)
		lost(ds)
	} else {
		lost(c.order.end(end, head))
	}
	return out, nil
}

// Health implements journal.Reader: it reads every line and every blob.
func (r *reader) Health(ctx context.Context) (journal.Health, error) {
	var h journal.Health
	limit, head, err := r.visible(ctx)
	if err != nil {
		return h, err
	}
	var c cursor
	blobs := map[journal.Hash]bool{}
	err = r.walk(ctx, &c.off, &c.order, limit, func(it item) bool {
		h.Damaged = append(h.Damaged, it.lost...)
		h.SetAside = append(h.SetAside, it.rejected...)
		if !it.commit {
			return true
		}
		cm, err := decode(it.raw)
		if d, ok := errors.AsType[*journal.DamageError](err); ok {
			h.Damaged = append(h.Damaged, d.Damage)
			return true
		}
		h.Commits++
		for _, b := range cm.Blobs {
			blobs[b] = true
		}
		return true
	})
	if err != nil {
		return h, err
	}
	h.Head, h.Epoch = c.order.last, c.order.epoch
	tail := journal.Damage{Seq: 0, Offset: c.off, Length: limit - c.off, Reason: "the last line is not finished"}
	if c.order.zero {
		at := c.order.bad[c.order.zeAt]
		tail = journal.Damage{Offset: at.Offset, Length: limit - at.Offset, Reason: at.Reason}
	}
	if tail.Length > 0 {
		h.TornTail = &tail
	}
	h.Damaged = append(h.Damaged, c.order.end(limit, head)...)
	err = h.CheckBlobs(ctx, r, blobs)
	return h, err
}
