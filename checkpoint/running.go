package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// Brief is the time that a command may run for changes at that time to count as its own. No system reports to an
// ordinary program which process changed a file, so time is the only evidence: changes during a longer command may be
// a user's, too.
const Brief = 3 * time.Second

// beat is how often the time of the file is set while the command runs, so that the file shows when the command was
// last seen running. Changes later than that, plus Brief for a busy machine, may not be the command's.
const beat = time.Second

// SurveyFor makes a Survey and stores it under the names of a task and its call; see Interrupted. It removes stored
// surveys of the task's other calls. Without a call it stores nothing.
func (k *Keeper) SurveyFor(ctx context.Context, task, call string) (*Survey, error) {
	s, err := k.Survey(ctx)
	if err != nil || call == "" {
		return s, err
	}
	s.base.made = time.Now()
	name := beforeFile(k.dir, task, call)
	for _, old := range befores(k.dir, beforeOf(OwnerOf(task))) {
		if old != name {
			_ = os.Remove(old) // a failure only costs space
		}
	}
	if err := k.writeBefore(name, call, s.base); err != nil {
		return s, nil //nolint:nilerr // only a kill needs the file; without it, known files are compared
	}
	s.file = name
	s.beat()
	return s, nil
}

func (k *Keeper) writeBefore(name, call string, sc *scan) error {
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(name, encodeBefore(call, sc))
}

// Interrupted returns the survey from before a call whose outcome is not known; nil when there is none. Changes or
// Close ends it, like any other survey.
func (k *Keeper) Interrupted(ctx context.Context, task, call string) (*Survey, error) {
	name := beforeFile(k.dir, task, call)
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCache {
		return nil, nil //nolint:nilerr // as if there were none
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	base, ok := decodeBefore(data, call)
	if !ok {
		return nil, nil
	}
	s := &Survey{
		k: k, base: base, file: name, until: info.ModTime().Add(Brief), took: info.ModTime().Sub(base.made),
		release: sync.OnceFunc(k.store.Keep()),
	}
	err = k.withTurn(ctx, func() error {
		if k.last == nil {
			k.last = &scan{list: slices.Clone(base.list)}
		}
		for i := range base.list {
			if e := &base.list[i]; e.held == ours && !k.store.Has(ctx, e.hash()) {
				e.held = nowhere
			}
		}
		return nil
	})
	if err != nil {
		s.release()
		return nil, fmt.Errorf("look at the files of %s after a command that was interrupted: %w", k.w.Root(), err)
	}
	return s, nil
}

// Whose divides changes by the evidence of their author. own are changes of a command that ran no longer than Brief.
// doubt are changes while a command ran longer: its own, or a person's. since are changes after an interrupted
// command was last seen running, or perhaps after. ran reports that such a command ran until now, unobserved.
func (s *Survey) Whose(changes []task.CheckpointFile, ran bool) (own, doubt, since []task.CheckpointFile) {
	during, took := changes, s.took
	switch {
	case s.until.IsZero():
	case ran:
		took = time.Since(s.base.made)
	default:
		during = nil
		for _, f := range changes {
			if s.changedBy(f.Path) {
				during = append(during, f)
			} else {
				since = append(since, f)
			}
		}
	}
	if took < -Brief || took > Brief { // a clock that was set back is no evidence
		return nil, during, since
	}
	return during, nil, since
}

// changedBy reports whether a path got its present state before the command was last seen. For a removed file the
// time of its folder shows that, until something else changes in the folder.
func (s *Survey) changedBy(p string) bool {
	g, err := s.k.w.OpenTree()
	if err != nil {
		return false
	}
	defer g.Close()
	for at := p; ; at = path.Dir(at) {
		info, err := g.Lstat(OnDisk(at))
		if workspace.CannotExist(err) && at != "." {
			continue
		}
		if err != nil {
			return false
		}
		st := statOf(info)
		return cmp.Or(st.ctime, st.mtime) <= s.until.UnixNano()
	}
}

// Done records that the command's outcome is on disk: the survey is not needed after a kill any more.
func (s *Survey) Done() {
	s.Close()
	if s.file != "" {
		_ = os.Remove(s.file) // otherwise the task's next survey removes it
	}
}

// beat sets the time of the file regularly, until the survey ends.
func (s *Survey) beat() {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case now := <-tick.C:
				_ = os.Chtimes(s.file, now, now) // without it, fewer changes count as the command's after a kill
			}
		}
	}()
	release := s.release
	s.release = sync.OnceFunc(func() {
		close(stop)
		<-ended
		release()
	})
}
