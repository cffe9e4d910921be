package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/codec"
	"github.com/roost-dev/roost/workspace"
)

// The survey before a command is also a file with the objects, one for each running command: when the program is killed
// with the command, a comparison with that file finds what the command changed. It is removed when the command's
// outcome is recorded. The newest survey does not serve for that, because any task of the workspace replaces it.
//
// It is synced: the commit that begins the call comes after it, and if a power cut took the survey, the command's
// changes would be unknown. That costs a few milliseconds on top of the survey itself. Where it is lost all the same,
// only files that the task knew are compared, and their changes count as another author's.
const (
	beforeName  = "before-"
	beforeMagic = "roost survey before a command 2\n"
)

// Brief is how long a command may run so that changes at that time count as its own. No system reports to an ordinary
// program which process changed a file, so time is the only evidence: what changes during a longer command may be a
// user's work as well.
const Brief = 3 * time.Second

// beat is how often the file's time is set while the command runs, so that it records until when the command was seen
// running. Later changes, with Brief as the allowance for a busy machine, were not for certain the command's.
const beat = time.Second

// SurveyFor is Survey, written down under the names of a task and its call; see
// Interrupted. Those of the task's calls before go.
func (k *Keeper) SurveyFor(ctx context.Context, task, call string) (*Survey, error) {
	s, err := k.Survey(ctx)
	if err != nil {
		return nil, err
	}
	s.base.made = time.Now()
	name := beforeFile(k.dir, task, call)
	for _, old := range befores(k.dir, beforeOf(OwnerOf(task))) {
		if old != name {
			_ = os.Remove(old) // it costs its room
		}
	}
	if err := k.writeBefore(name, call, s.base); err != nil {
		return s, nil //nolint:nilerr // it is for a kill, which may not come; then known files are looked at
	}
	s.file = name
	s.beat()
	return s, nil
}

// Interrupted is the survey of before a call whose outcome is not known; nil when there
// is none. It is ended as others are. See Survey.Since.
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
	// What it relies on may be in the store of an earlier version.
	if err := k.carryFirst(ctx); err != nil {
		return nil, fmt.Errorf("look at the files of %s after a command that was interrupted: %w", k.w.Root(), err)
	}
	s := &Survey{
		k: k, base: base, file: name, until: info.ModTime().Add(Brief), took: info.ModTime().Sub(base.made),
		release: sync.OnceFunc(k.store.Keep()),
	}
	err = k.withTurn(ctx, func() error {
		k.load()
		if k.last == nil {
			k.last = &scan{list: slices.Clone(base.list)}
		}
		for i := range base.list {
			if e := &base.list[i]; e.held == ours && !k.store.Has(e.hash()) {
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

// Whose divides changes by the evidence of their author. own are those of a command that ran for no longer than Brief.
// doubt are those that came while a command ran for longer: its own, or a person's. since are those that came after an
// interrupted command was last seen running, or of which that is unknown. ran reports that such a command ran on until
// now, unobserved.
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

// changedBy reports whether a path got its current state before the command was last seen. For a removed file the time
// of its folder shows that, until something else changes there.
func (s *Survey) changedBy(p string) bool {
	g, err := s.k.open()
	if err != nil {
		return false
	}
	defer g.Close()
	for at := p; ; at = path.Dir(at) {
		info, err := g.Lstat(OnDisk(at))
		if absent(err) && at != "." {
			continue
		}
		if err != nil {
			return false
		}
		st := statOf(info)
		return cmp.Or(st.ctime, st.mtime) <= s.until.UnixNano()
	}
}

// Done notes that the command's outcome is recorded: a kill from now on leaves nothing to find out.
func (s *Survey) Done() {
	s.Close()
	if s.file != "" {
		_ = os.Remove(s.file) // the next one of the task takes it away
	}
}

// beat keeps the file's time until the survey is ended.
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
				_ = os.Chtimes(s.file, now, now) // a kill then finds fewer changes to be the command's
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

func (k *Keeper) writeBefore(name, call string, sc *scan) error {
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(name, encodeBefore(call, sc))
}

// beforeFile is the file of one call. Ids are not names of files.
func beforeFile(dir, task, call string) string {
	return filepath.Join(dir, beforeOf(OwnerOf(task))+short(call))
}

// beforeOf begins the names of an owner's files. The prefix is that of earlier versions.
func beforeOf(owner string) string { return beforeName + short("refs/roost/"+owner) + "-" }

func short(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:10])
}

// befores are the files whose names begin with something.
func befores(dir, want string) []string {
	names, _ := fs.Glob(os.DirFS(dir), want+"*") // a folder that cannot be read has none
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names
}

// SweepCalls removes the interrupted commands of tasks that are not among the living owners from a store's folder.
// Files younger than young stay: their task may be about to be created.
func SweepCalls(dir string, living map[string]bool, young time.Duration) {
	keep := map[string]bool{}
	for owner := range living {
		keep[strings.TrimSuffix(beforeOf(owner), "-")] = true
	}
	for _, name := range befores(dir, beforeName) {
		base := filepath.Base(name)
		if keep[base[:strings.LastIndexByte(base, '-')]] {
			continue
		}
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > young {
			_ = os.Remove(name) // or the next sweep does
		}
	}
}

// ForgetCalls removes an owner's interrupted commands from a store's folder.
func ForgetCalls(dir, owner string) {
	for _, name := range befores(dir, beforeOf(owner)) {
		_ = os.Remove(name) // or a collection does
	}
}

// relied are the contents in the store of a folder that surveys of running or interrupted commands rely on.
func relied(dir string) (hashes []content.Hash) {
	for _, name := range befores(dir, beforeName) {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if base, ok := decodeBefore(data, ""); ok {
			hashes = append(hashes, storedHere(base.list)...)
		}
	}
	return hashes
}

func encodeBefore(call string, sc *scan) []byte {
	w := codec.NewWriter([]byte(beforeMagic))
	texts := func(list []string) {
		w.Uint(uint64(len(list)))
		for _, s := range list {
			w.Bytes([]byte(s))
		}
	}
	w.Bytes([]byte(call))
	w.Out = binary.LittleEndian.AppendUint64(w.Out, uint64(sc.made.UnixNano()))
	w.Bytes([]byte(sc.end))
	texts(sc.closed)
	texts(sc.known)
	texts(sc.dirs)
	keys := slices.Sorted(maps.Keys(sc.rules))
	texts(keys)
	for _, key := range keys {
		w.Bytes([]byte(sc.rules[key].text))
	}
	return summed(append(w.Out, encodeCache(sc.list)...))
}

// decodeBefore reads it back; ok is false for another call's, unless call is "".
func decodeBefore(data []byte, call string) (*scan, bool) {
	u, ok := unsummed(data, beforeMagic)
	if !ok {
		return nil, false
	}
	text := func() string { return string(u.Bytes()) }
	texts := func() (list []string) {
		for range u.Count() {
			list = append(list, text())
		}
		return list
	}
	if whose := text(); call != "" && whose != call {
		return nil, false
	}
	made := make([]byte, 8)
	copy(made, take(&u, len(made)))
	sc := &scan{
		made:   time.Unix(0, int64(binary.LittleEndian.Uint64(made))),
		end:    text(),
		closed: texts(),
		known:  texts(),
		dirs:   texts(),
		rules:  map[string]*compiled{},
	}
	for _, key := range texts() {
		rules := text()
		sc.rules[key] = &compiled{text: rules, rules: workspace.ParseIgnore(rules, false)}
	}
	if u.Bad || !slices.IsSorted(sc.known) || !slices.IsSorted(sc.dirs) {
		return nil, false
	}
	sc.list, ok = decodeCache(u.In)
	return sc, ok
}
