package filelog

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/journal"
)

// Options are for Own. The zero value is usable.
type Options struct {
	FS    FS                // default OS
	Owner journal.OwnerInfo // PID, Boot and Started are filled in if zero
	Clock func() int64      // Unix milliseconds for epoch.opened; default the system's
	By    string            // the program that opens: the By of epoch.opened

	// Existing refuses a folder that does not exist instead of making it: a task that was moved away meanwhile must
	// not come back as an empty one. The error wraps fs.ErrNotExist.
	Existing bool
	// WaitForLock limits how long Own waits for a held lock; 0 refuses at once.
	WaitForLock time.Duration
	// FlushAfter limits how long Append buffers a commit. Default 200 ms.
	FlushAfter time.Duration
	// MaxUnsaved bounds the bytes in memory that are not synced. Default 64 MB.
	MaxUnsaved int
	// Synced is called after each sync with the newest synced commit, never twice at the same time, and once more,
	// with last, before the lock is released. It must be quick, and not use the log.
	Synced func(epoch, head uint64, last bool)
	// Seal signs new commits, and verifies the existing ones: see Prover. nil = neither.
	Seal *journal.Seal
	// Known is a commit that a witness outside the journal shows to be synced. If the log ends before it, the commits
	// between are lost.
	Known uint64
	// Meets runs with the lock held, before anything is written to the log. If it returns an error, Own fails with it
	// and leaves the log as it is. head is the newest commit, 0 = there is none.
	Meets func(head uint64) error
}

func (o Options) filled() Options {
	o.FS = cmp.Or(o.FS, OS)
	if o.Clock == nil {
		o.Clock = func() int64 { return time.Now().UnixMilli() }
	}
	o.Owner = o.Owner.Filled(time.UnixMilli(o.Clock()).UTC())
	o.MaxUnsaved = cmp.Or(o.MaxUnsaved, 64<<20)
	return o
}

// owner is the journal.Owner of one folder.
type owner struct {
	*reader
	*journal.Writer
	opt   Options
	lock  File
	path  string // of the log
	bytes atomic.Int64

	// Only what the Writer calls uses these (and Own, before any other goroutine can).
	file      File  // for appending; replaced after a failure
	good      int64 // length after the last good sync
	dirty     bool  // bytes behind good may be in the file
	attempted int64 // how far a failed attempt may have written
	published bool  // others know good

	proof journal.Proof // of the log as it was taken over

	saveMu sync.Mutex // one index at a time
	saved  int        // spots in the index as last written
	once   sync.Once
	end    error
}

var _ journal.Owner = (*owner)(nil)

// own is Own for the log's own part, without its base.
func own(ctx context.Context, dir string, opt Options) (_ *owner, err error) {
	opt = opt.filled()
	fsys := opt.FS
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := trusted(fsys, dir); err != nil {
		return nil, err
	}
	if !opt.Existing {
		if err := ensureDir(fsys, dir); err != nil {
			return nil, err
		}
	}
	o := &owner{opt: opt, path: filepath.Join(dir, logName)}
	defer func() {
		if err != nil {
			o.release()
		}
	}()
	if o.lock, err = acquire(ctx, fsys, dir, opt.WaitForLock); err != nil {
		return nil, err
	}
	if err := o.sign(dir); err != nil {
		return nil, err
	}
	if o.file, err = fsys.OpenFile(o.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, notSaved(fsys, "open", o.path, err)
	}
	// Always: an owner before us may have died between making and syncing them.
	if err := whetherSaved(fsys, "sync folder", dir, fsys.SyncDir(dir)); err != nil {
		return nil, err
	}
	if o.reader, err = openReader(fsys, dir, opt.Known); err != nil {
		return nil, err
	}
	o.reader.verify(opt.Seal)
	if err := o.takeOver(ctx); err != nil {
		return nil, err
	}
	o.reader.synced = &o.bytes
	theHub.own(o.key, +1)
	return o, nil
}

// takeOver puts the log in order, and commits epoch.opened.
func (o *owner) takeOver(ctx context.Context) error {
	rec, _ := readRecord(o.lock)
	witness := rec
	if rec.Head == 0 {
		rec = indexed(o.fs, o.dir)
	}
	if rec.Ino != o.ino {
		rec.Synced = 0 // it belongs to another file: its synced length does not apply to this one
	}
	head := max(rec.Head, o.vis.known)
	fi, err := o.file.Stat()
	if err != nil {
		return notSaved(o.fs, "look at", o.path, err)
	}
	size := fi.Size()
	x := &o.idx
	if err := o.refresh(ctx, size); err != nil {
		return err
	}
	o.saved = len(x.spots)
	if x.order.zero {
		x.off = x.order.bad[x.order.zeAt].Offset
	}
	x.order.end(x.off, head)
	if o.opt.Meets != nil {
		if err := o.opt.Meets(max(x.order.last, x.order.reported)); err != nil {
			return fmt.Errorf("own %s: %w", o.dir, err)
		}
	}
	if x.off < size {
		if err := o.setAside(x.off, size); err != nil {
			return err
		}
	}
	if x.off != rec.Synced {
		if err := o.resync(rec.Synced, x.off); err != nil {
			return err
		}
	}
	if x.order.last == 0 && witness.Epoch == 0 {
		if err := o.firstRecord(); err != nil {
			return err
		}
	}
	chain := x.chain.Copy()
	o.proof = x.proof(witness, o.opt.Seal)
	chain.Hold(o.proof.Cut) // else the next owner would find nothing missing
	o.good = x.off
	o.bytes.Store(o.good)
	o.dropTemps()
	opened, err := o.opt.Owner.Opened()
	if err != nil {
		return fmt.Errorf("own %s: %w", o.dir, err)
	}
	newest := max(x.order.last, x.order.reported)
	if o.proof.Cut {
		o.proof.Unsigned = newest + 1
	}
	o.Writer = journal.NewWriter(journal.WriterOptions{
		Name:       o.dir,
		Epoch:      max(x.order.epoch, rec.Epoch) + 1,
		Head:       newest,
		FlushAfter: o.opt.FlushAfter,
		MaxUnsaved: o.opt.MaxUnsaved,
		Save:       o.save,
		Saved:      o.notify,
	})
	return o.Start(chain, journal.Draft{At: o.opt.Clock(), By: o.opt.By, Events: []journal.Event{opened}})
}

// firstRecord writes the record of a new log, and makes it durable. From the first commit on,
// a signed log without a record has lost its end: see index.proof.
func (o *owner) firstRecord() error {
	path := filepath.Join(o.dir, lockName)
	if _, err := o.lock.WriteAt(record{Ino: o.ino}.encode(o.opt.Seal), 0); err != nil {
		return notSaved(o.fs, "write", path, err)
	}
	return whetherSaved(o.fs, "sync", path, o.lock.Datasync())
}

// Proof implements journal.Prover.
func (o *owner) Proof(context.Context) (journal.Proof, error) { return o.proof, nil }

// sign writes the owner's name into the lock file. Own does that first: a sync, and putting a long log in order, take
// time, and a process that is refused meanwhile must not see the name of the previous owner, or none.
func (o *owner) sign(dir string) error {
	path, info := filepath.Join(dir, lockName), encodeOwner(o.opt.Owner)
	if rec, length, ok := readLine(o.lock); ok && length != recordLen {
		// A program that did not sign wrote it. Whoever reads the file looks for our name
		// behind a line of our length.
		if _, err := o.lock.WriteAt(rec.line(recordLen), 0); err != nil {
			return notSaved(o.opt.FS, "write", path, err)
		}
	}
	if err := o.lock.Truncate(int64(recordLen + len(info))); err != nil {
		return notSaved(o.opt.FS, "write", path, err)
	}
	_, err := o.lock.WriteAt(info, int64(recordLen))
	return whetherSaved(o.opt.FS, "write", path, err)
}

// setAside moves [at, size) of the log into a file of its own: a torn tail is no commit, but written bytes are never
// destroyed.
func (o *owner) setAside(at, size int64) error {
	ms := o.opt.Clock()
	var f File
	var path string
	var err error
	for range 100 {
		path = filepath.Join(o.dir, fmt.Sprintf("%s%d", tornName, ms))
		if f, err = o.fs.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); !os.IsExist(err) {
			break
		}
		ms++
	}
	if err != nil {
		return notSaved(o.fs, "set aside the torn end in", path, err)
	}
	err = copyRange(f, 0, o.file, at, size)
	if err == nil {
		err = f.Datasync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = o.fs.SyncDir(o.dir)
	}
	if err != nil {
		_ = o.fs.Remove(path) // a partial copy; the original is still in the log
		return notSaved(o.fs, "set aside the torn end in", path, err)
	}
	w, err := o.fs.OpenFile(o.path, os.O_RDWR, 0)
	if err == nil {
		err = cmp.Or(w.Truncate(at), w.Close())
	}
	return whetherSaved(o.fs, "cut the torn end of", o.path, err)
}

// resync makes durable what a previous owner wrote and did not sync. It writes the bytes again, because after a
// failed sync the kernel counts unsaved pages as clean.
func (o *owner) resync(from, to int64) error {
	if n := to - from; n > 0 && n <= int64(o.opt.MaxUnsaved) {
		w, err := o.fs.OpenFile(o.path, os.O_RDWR, 0)
		if err == nil {
			err = cmp.Or(copyRange(w, from, w, from, to), w.Close())
		}
		if err != nil {
			return notSaved(o.fs, "write", o.path, err)
		}
	}
	return whetherSaved(o.fs, "sync", o.path, o.file.Datasync())
}

// copyRange copies src[from, to) to dst at an offset.
func copyRange(dst io.WriterAt, at int64, src io.ReaderAt, from, to int64) error {
	buf := make([]byte, min(chunk, to-from))
	for from < to {
		b := buf[:min(int64(len(buf)), to-from)]
		if n, err := src.ReadAt(b, from); n < len(b) {
			return err
		}
		if n, err := dst.WriteAt(b, at); n < len(b) {
			return orShort(err)
		}
		from, at = from+int64(len(b)), at+int64(len(b))
	}
	return nil
}

func orShort(err error) error { return cmp.Or(err, io.ErrShortWrite) }

// dropTemps removes partial files that a killed owner left. We hold the lock, so no process is writing them. Best
// effort.
func (o *owner) dropTemps() {
	for _, dir := range []string{o.dir, filepath.Join(o.dir, blobsDir)} {
		list, err := o.fs.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range list {
			if strings.HasPrefix(e.Name(), idxName+".tmp") || strings.HasPrefix(e.Name(), blobTemp) {
				_ = o.fs.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
}

// release releases everything, in any state.
func (o *owner) release() {
	if o.reader != nil {
		_ = o.reader.Close() // read only: nothing to lose
	}
	if o.file != nil {
		_ = o.file.Close() // nothing unsynced that was acknowledged
	}
	if o.lock != nil {
		_ = filelock.Release(o.lock) // nothing was written through it since the last sync
	}
}
