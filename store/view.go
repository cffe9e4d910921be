package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// View is a task opened for reading. Nothing on disk changes by it.
type View struct {
	Ref     Ref
	State   *task.State
	Summary Summary
	Log     journal.Reader // nil while the task has no journal
	Folder  *roofmt.Folder // nil when there is no folder with JSON files
	Pending []Intake       // what another program changed, folded into State and not taken in yet
	Health  *journal.Health

	unborn bool // its journal holds nothing yet
}

// Close lets go of the files.
func (v *View) Close() error {
	var errs []error
	if v.Log != nil {
		errs = append(errs, v.Log.Close())
	}
	if v.Folder != nil {
		errs = append(errs, v.Folder.Close())
	}
	return errors.Join(errs...)
}

// Read opens a task for reading.
func (s *Store) Read(ctx context.Context, ref Ref) (*View, error) {
	v := &View{Ref: ref}
	if err := s.readInto(ctx, v); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	v.Summary = summarise(v)
	return v, nil
}

func (s *Store) readInto(ctx context.Context, v *View) error {
	mark, err := v.readFolder(ctx)
	if err != nil {
		return fmt.Errorf("task %s: %w", v.Ref.ID, err)
	}
	log, err := filelog.OpenReader(v.Ref.Log)
	switch {
	case err == nil:
		v.Log = log
	case !errors.Is(err, journal.ErrNotFound):
		return fmt.Errorf("task %s: open its journal: %w", v.Ref.ID, err)
	}
	if v.Log == nil {
		if v.Folder == nil {
			return fmt.Errorf("%w: %s", ErrNotFound, v.Ref.Dir)
		}
		v.State, err = unadopted(v.Ref, v.Folder)
		return err
	}
	if v.State, err = fold(ctx, v.Log); err != nil {
		return fmt.Errorf("task %s: %w", v.Ref.ID, err)
	}
	if v.State.ID == "" {
		blank := empty(v.State)
		if blank && v.Folder != nil && !v.Folder.Empty() {
			v.State, err = unadopted(v.Ref, v.Folder)
			return err
		}
		v.unborn = blank
		v.State.ID = v.Ref.ID
	}
	if v.Folder == nil {
		return nil
	}
	v.Pending = foreignChanges(v.State, v.Folder, mark)
	for _, change := range v.Pending {
		if change.Event == nil {
			continue
		}
		// For the reader only: the same fold that taking it in will do.
		state := v.State.With(folderBlobs{folder: v.Folder})
		raw, err := task.Encode(*change.Event)
		if err != nil {
			return err
		}
		if err := state.Apply(journal.Commit{Seq: state.Seq + 1, Epoch: state.Epoch, Events: []journal.Event{raw}}); err != nil {
			return fmt.Errorf("task %s: %w", v.Ref.ID, err)
		}
		v.State = state.With(Payloads(v.Log))
	}
	return nil
}

// empty reports whether a journal was opened and nothing was committed yet. One
// whose first commit is damaged is not: its files are projections.
func empty(s *task.State) bool {
	return s.ID == "" && len(s.Problems) == 0 && s.NextMessage() == 1
}

// readFolder reads the folder and the watermark that belongs to it: an owner may
// be projecting just now, and its own new bytes must not look foreign.
func (v *View) readFolder(ctx context.Context) (watermark, error) {
	for try := 0; ; try++ {
		before := readWatermark(v.Ref.Log)
		folder, err := roofmt.Read(ctx, v.Ref.Dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return before, err
		}
		after := readWatermark(v.Ref.Log)
		if before.Seq == after.Seq || try == 5 {
			if err == nil {
				v.Folder = folder
			}
			return after, nil
		}
		if err == nil {
			if err := folder.Close(); err != nil {
				return before, err
			}
		}
	}
}

// unadopted is the state that adopting the folder would give.
func unadopted(ref Ref, folder *roofmt.Folder) (*task.State, error) {
	event := adoption(ref, folder)
	state := task.New(folderBlobs{folder: folder})
	raw, err := task.Encode(event)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", ref.ID, err)
	}
	// What cannot be read is in the state's problems.
	_ = state.Apply(journal.Commit{Seq: 1, At: event.CreatedAt, Events: []journal.Event{raw}})
	state.Seq = 0
	return state, nil
}

// folderBlobs stands in for blobs: a file's name instead of its hash.
type folderBlobs struct{ folder *roofmt.Folder }

func (b folderBlobs) Range(name string, off, length int64) ([]byte, error) {
	f, err := os.OpenInRoot(b.folder.Dir, filepath.Base(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if length < 0 {
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		length = info.Size() - off
	}
	data := make([]byte, length)
	if _, err := f.ReadAt(data, off); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}
