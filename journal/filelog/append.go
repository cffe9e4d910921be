package filelog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
)

// Head implements journal.Reader without looking at the disk.
func (o *owner) Head(ctx context.Context) (uint64, error) {
	if err := o.check(ctx); err != nil {
		return 0, err
	}
	return o.Newest(), nil
}

// Close implements journal.Owner. It tries once more to save unsaved commits.
func (o *owner) Close() error {
	o.once.Do(func() {
		o.end = o.Stop()
		o.saveOnClose()
		if o.opt.Synced != nil {
			o.opt.Synced(o.Epoch(), o.Newest(), true)
		}
		_ = o.lock.Truncate(int64(recordLen)) // our name: the next owner is another
		theHub.own(o.key, -1)                 // before another owner in this process can come
		o.release()
	})
	return o.end
}

// save writes and syncs lines, and publishes the length.
func (o *owner) save(lines []journal.Line) (head uint64, err error) {
	if err := o.write(lines); err != nil {
		return lines[0].Seq - 1, err
	}
	head = lines[len(lines)-1].Seq
	now := record{Synced: o.good, Head: head, Epoch: o.Epoch(), Ino: o.ino}
	_, err = o.lock.WriteAt(now.encode(o.opt.Seal), 0)
	o.published = err == nil // otherwise the next one shows these commits, too
	failpoint.Hit("journal.synced")
	return head, nil
}

// notify wakes the followers of what was saved.
func (o *owner) notify(head uint64) {
	theHub.Wake(o.key)
	if o.published && o.opt.Synced != nil { // without a published length, a notified reader would find nothing
		o.opt.Synced(o.Epoch(), head, false)
	}
}

// write puts lines behind the last good length and syncs them. After an error none of them counts as written.
// ErrFenced: this owner does not own the log any more.
func (o *owner) write(lines []journal.Line) error {
	if o.dirty {
		if err := o.reopen(); err != nil {
			return err
		}
	}
	if err := o.unchanged(o.good); err != nil {
		return err
	}
	o.attempted = o.good
	for _, l := range lines {
		o.attempted += int64(len(l.Text))
		// Appended, not written at a place: should another owner have come in just now
		// because a lock was lost, ours comes behind its commits, not over them.
		if n, err := o.file.Append(l.Text); err != nil || n < len(l.Text) {
			return o.failed("write", orShort(err))
		}
	}
	failpoint.Hit("journal.written")
	if err := o.file.Datasync(); err != nil {
		return o.failed("sync", err)
	}
	if err := o.unchanged(o.attempted); err != nil {
		o.dirty = true
		return err
	}
	o.good = o.attempted
	o.bytes.Store(o.good)
	return nil
}

// failed removes a half-written attempt, at once if possible.
func (o *owner) failed(op string, cause error) error {
	err := notSaved(o.fs, op, o.path, cause)
	o.dirty = true
	if again := o.reopen(); errors.Is(again, journal.ErrFenced) {
		return again
	}
	return err
}

// reopen cuts the log back to the last good length through a new descriptor: after a failed sync, the kernel may count
// lost pages of the old descriptor as clean and report no error for them again.
func (o *owner) reopen() error {
	f, err := o.fs.OpenFile(o.path, os.O_RDWR, 0)
	if err != nil {
		return notSaved(o.fs, "open", o.path, err)
	}
	defer f.Close() // what it wrote is synced with what follows, or cut again
	fi, err := f.Stat()
	if err == nil && (fileID(fi) != o.ino || fi.Size() < o.good || fi.Size() > o.attempted) {
		return o.fenced("differs from what its owner wrote")
	}
	if err == nil {
		err = f.Truncate(o.good)
	}
	if err != nil {
		return notSaved(o.fs, "cut back", o.path, err)
	}
	g, err := o.fs.OpenFile(o.path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return notSaved(o.fs, "open", o.path, err)
	}
	_ = o.file.Close() // its errors are those we are leaving behind
	o.file, o.dirty = g, false
	return nil
}

// unchanged checks that no other process wrote to, cut or removed the log. A check that fails proves no other owner:
// it counts as trouble, and the flusher tries again.
func (o *owner) unchanged(size int64) error {
	fi, err := o.file.Stat()
	switch {
	case err != nil:
		return notSaved(o.fs, "look at", o.path, err)
	case names(fi) == 0:
		return o.fenced("was deleted")
	case fi.Size() > size:
		return o.fenced("grew by another program")
	case fi.Size() < size:
		return o.fenced("was cut by another program")
	}
	return nil
}

func (o *owner) fenced(what string) error {
	return fmt.Errorf("%s %s while epoch %d owned it: %w", filepath.Base(o.path), what, o.Epoch(), journal.ErrFenced)
}
