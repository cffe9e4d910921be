package roofmt

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// deadSelf is a process of this machine that certainly runs no more.
func deadSelf() self { return self{me().Domain, 1 << 30, "1"} }

// lockFile makes a lock directory with a time, and an owner record if there is one.
func lockFile(t *testing.T, file string, mtime time.Time, by *owner) *fileLock {
	t.Helper()
	l := &fileLock{dir: file + ".lock", record: ownerPath(file)}
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(l.dir, mtime, mtime); err != nil {
		t.Fatal(err)
	}
	if by != nil {
		b, err := json.Marshal(by)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(l.record, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func there(path string) bool { _, err := os.Lstat(path); return err == nil }

// Who holds a lock decides when it may be taken away.
func TestLocksThatNobodyHolds(t *testing.T) {
	now := time.Now()
	ours := time.Unix(0, now.Add(-time.Second).UnixNano()/int64(time.Millisecond)*int64(time.Millisecond)+123)
	nodes := time.UnixMilli(now.Add(-time.Second).UnixMilli())
	dead, live := deadSelf(), me()
	record := func(s self, mtime time.Time) *owner { return &owner{s, mtime.UnixNano()} }
	for _, c := range []struct {
		name  string
		mtime time.Time
		by    *owner
		taken bool
	}{
		{"an editor's, fresh", nodes, nil, false},
		{"an editor's, almost stale", now.Add(-staleAfter + time.Second), nil, false},
		{"an editor's, stale", now.Add(-staleAfter - time.Second), nil, true},
		{"from the future", now.Add(time.Hour), nil, false},
		{"ours, and we live", ours, record(live, ours), false},
		{"ours, and we are dead", ours, record(dead, ours), true},
		{"ours, stale although we live", now.Add(-time.Minute), record(live, now.Add(-time.Minute)), true},
		{"an editor's, taken after our dead one", nodes, record(dead, ours), false},
		{"ours, dead before it got its time", ours, record(dead, ours.Add(-200*time.Microsecond)), true},
		{"an editor's, right after our dead record", nodes, record(dead, nodes.Add(-time.Millisecond+7)), false},
		{"of another machine", ours, record(self{"feedfeedfeed", dead.PID, "1"}, ours), false},
		{"a record that is none", ours, &owner{}, false},
		{"the pid came back as another process", ours, record(self{me().Domain, me().PID, me().Start + "0"}, ours), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), UIName)
			l := lockFile(t, file, c.mtime, c.by)
			err := l.clear(now)
			if (err == nil) != c.taken || err != nil && !errors.Is(err, errBusy) {
				t.Errorf("got %v, want (err == nil) = c.taken and (no error or errors.Is(err, errBusy))", err)
			}
			if there(l.dir) == c.taken {
				t.Errorf("the lock is there: %v", there(l.dir))
			}
		})
	}
}

func TestLockIsBoundToItsRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), UIName)
	for _, now := range []time.Time{time.Now(), time.UnixMilli(time.Now().UnixMilli())} {
		l, err := tryLock(file, now)
		if err != nil {
			t.Fatal(err)
		}
		if l.mtime%int64(time.Millisecond) == 0 {
			t.Error("an editor could have set this time")
		}
		if !l.held() || l.ownDead(l.mtime) || leftByDead(l.dir) {
			t.Error("a lock of a living process does not count as held")
		}
		if _, err := tryLock(file, time.Now()); !errors.Is(err, errBusy) {
			t.Errorf("taken twice: %v", err)
		}
		if err := l.refresh(now.Add(refreshEvery)); err != nil || !l.held() {
			t.Errorf("refresh: %v", err)
		}
		if err := l.release(); err != nil || there(l.dir) || there(l.record) {
			t.Errorf("release: %v", err)
		}
		if err := l.release(); err != nil {
			t.Errorf("released twice: %v", err)
		}
	}
}

// release returns an error when it cannot remove the record.
func TestARecordThatCannotBeRemoved(t *testing.T) {
	l, err := tryLock(filepath.Join(t.TempDir(), UIName), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(l.record), os.MkdirAll(filepath.Join(l.record, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	var failed *fs.PathError
	if err := l.release(); !errors.As(err, &failed) || failed.Path != l.record {
		t.Errorf("got %v, want an error of %s", err, l.record)
	}
}

// A lock that another program took over is neither refreshed nor given back.
func TestALockThatWasTakenAway(t *testing.T) {
	dir := t.TempDir()
	set, err := lockAll(context.Background(), dir, []string{APIName, UIName}, backOff[:])
	if err != nil {
		t.Fatal(err)
	}
	stolen := filepath.Join(dir, UIName+".lock")
	if err := os.Remove(stolen); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(stolen, 0o700); err != nil {
		t.Fatal(err)
	}
	set.taken = time.Now().Add(-refreshEvery)
	if err := set.keep(); err == nil || !strings.Contains(err.Error(), UIName) {
		t.Errorf("keep: %v", err)
	}
	if err := set.release(); err != nil {
		t.Errorf("release: %v", err)
	}
	if !there(stolen) {
		t.Error("the other program's lock is gone")
	}
	if there(filepath.Join(dir, APIName+".lock")) {
		t.Error("our own lock is still there")
	}
}

// A process that was killed between its locks leaves some; the next one of ours
// takes them at once.
func TestLocksOfTheDeadAreTaken(t *testing.T) {
	dir := t.TempDir()
	at := time.Unix(0, time.Now().UnixMilli()*int64(time.Millisecond)+77)
	dead := deadSelf()
	for _, name := range []string{APIName, ItemName, UIName} {
		lockFile(t, filepath.Join(dir, name), at, &owner{dead, at.UnixNano()})
	}
	begun := time.Now()
	set, err := lockAll(context.Background(), dir, []string{APIName, ItemName, UIName}, backOff[:])
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > staleAfter/2 {
		t.Errorf("waited %v for the dead", took)
	}
	if err := set.release(); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}
}

// While one of several locks is busy the others are given back: an editor must
// not wait for a lock that we only hold on the way to another one.
func TestWaitingHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		busy := filepath.Join(dir, UIName+".lock")
		if err := os.Mkdir(busy, 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			set, err := lockAll(ctx, dir, []string{APIName, UIName}, backOff[:])
			if err == nil {
				err = set.release()
			}
			done <- err
		}()
		for range backOff {
			synctest.Wait() // it waits for its next try
			if there(filepath.Join(dir, APIName+".lock")) {
				t.Error("the first lock is held while the second is waited for")
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err := os.Mkdir(filepath.Join(dir, APIName+".lock"), 0o700); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want errors.Is(err, context.Canceled)", err)
		}
		if !there(busy) || !there(filepath.Join(dir, APIName+".lock")) {
			t.Error("the editor's locks are gone")
		}
		if there(ownerPath(filepath.Join(dir, APIName))) || there(ownerPath(filepath.Join(dir, UIName))) {
			t.Error("a record was left")
		}
	})
}

// A file that is not whole is looked for again. A lock on another one may have gone by
// then, and what was read under it is not settled for that.
func TestALockIsToldOfThatWasThereAtFirst(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{UIName, ItemName} {
		if err := os.Mkdir(filepath.Join(dir, name+".lock"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	r := reader{ctx: context.Background(), root: root, folder: &Folder{Dir: dir}}
	if err := r.list(); err != nil {
		t.Fatal(err)
	}
	ui, api := r.histories()
	if err := os.Remove(filepath.Join(dir, UIName+".lock")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, APIName+".lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.settled(api, API)
	if want := []string{APIName, ItemName, UIName}; !slices.Equal(r.folder.Locks, want) {
		t.Errorf("locks %v, want %v", r.folder.Locks, want)
	}
	for _, name := range []string{APIName, ItemName} {
		if err := os.Remove(filepath.Join(dir, name+".lock")); err != nil {
			t.Fatal(err)
		}
	}
	// This one was read again behind its lock.
	r.settled(ui, UI)
	if want := []string{APIName, ItemName}; !slices.Equal(r.folder.Locks, want) {
		t.Errorf("locks %v, want %v", r.folder.Locks, want)
	}
}

func TestReadNamesTheLocksOfTheLiving(t *testing.T) {
	dir := t.TempDir()
	at := time.Unix(0, time.Now().UnixMilli()*int64(time.Millisecond)+77)
	dead := deadSelf()
	lockFile(t, filepath.Join(dir, UIName), at, &owner{dead, at.UnixNano()})
	lockFile(t, filepath.Join(dir, APIName), at, nil)
	f, err := Read(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Locks) != 1 || f.Locks[0] != APIName {
		t.Errorf("locks %v", f.Locks)
	}
	if !there(filepath.Join(dir, UIName+".lock")) {
		t.Error("reading removed a lock")
	}
}

func TestDead(t *testing.T) {
	for name, c := range map[string]struct {
		s    self
		want bool
	}{
		"we":                           {me(), false},
		"nobody":                       {deadSelf(), true},
		"our pid with another start":   {self{me().Domain, me().PID, "1"}, me().Start != "0"},
		"of another boot or machine":   {self{"000000000000", 1 << 30, "1"}, false},
		"a record without a process":   {self{me().Domain, 0, "0"}, false},
		"a record with a negative one": {self{me().Domain, -1, "0"}, false},
		"a process of somebody else":   {self{me().Domain, 1, startTime(1)}, false},
		"one that could not say when":  {self{me().Domain, 1, "0"}, false},
		"an empty record of nowhere":   {self{}, false},
	} {
		if got := c.s.dead(); got != c.want {
			t.Errorf("%s: got %v, want got = %v", name, got, c.want)
		}
	}
}

// An id that runs is another process when it began at another time. When either time is not told (the processes of other
// accounts may be hidden), it may be the same.
func TestAProcessIsKnownByItsStart(t *testing.T) {
	for _, c := range []struct {
		recorded, now string
		before        bool
	}{
		{"77", "77", false}, {"77", "78", true}, {"77", "0", false}, {"0", "77", false}, {"0", "0", false},
	} {
		if got := (self{me().Domain, 1, c.recorded}).before(c.now); got != c.before {
			t.Errorf("recorded %s, now %s: %v", c.recorded, c.now, got)
		}
	}
}

// Sweeping takes what dead processes of ours left, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	temp := func(s self, name string) string {
		return ourPrefix + "tmp_" + s.Domain + "_" + strconv.Itoa(s.PID) + "_" + s.Start + "_abcdef_" + name
	}
	elsewhere := self{"feedfeedfeed", 77, "1"}
	fresh, old := temp(elsewhere, UIName), temp(elsewhere, APIName)
	stay := []string{
		UIName, ".ui_messages.json.new_1_a.tmp", ".ui_messages.json.bak_1_a.tmp", "notes.txt",
		temp(me(), UIName), fresh, ourPrefix + "tmp_x", ourPrefix + "something",
	}
	for _, name := range append(stay, temp(deadSelf(), UIName), temp(deadSelf(), "x"), old) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hours := time.Now().Add(-2 * foreignTempAge)
	if err := os.Chtimes(filepath.Join(dir, old), hours, hours); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(0, time.Now().UnixMilli()*int64(time.Millisecond)+77)
	dead := deadSelf()
	gone := lockFile(t, filepath.Join(dir, UIName), at, &owner{dead, at.UnixNano()})
	editors := lockFile(t, filepath.Join(dir, APIName), time.UnixMilli(at.UnixMilli()), &owner{dead, at.UnixNano()})
	ours, err := tryLock(filepath.Join(dir, ItemName), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := Sweep(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range stay {
		if !there(filepath.Join(dir, name)) {
			t.Errorf("gone: %s", name)
		}
	}
	if !there(editors.dir) || !ours.held() || there(gone.dir) || there(gone.record) {
		t.Errorf("the editor's lock %v, ours %v, the dead one's %v", there(editors.dir), ours.held(), there(gone.dir))
	}
	if err := ours.release(); err != nil {
		t.Error(err)
	}
	entries, _ := os.ReadDir(dir)
	if want := len(stay) + 2; len(entries) != want { // the editor's lock, and the record beside it
		t.Errorf("%d entries, want %d: %v", len(entries), want, entries)
	}
	if err := Sweep(context.Background(), filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestTempNamesAreTold(t *testing.T) {
	m := ourTemp().FindStringSubmatch(tempName(UIName))
	if m == nil || m[1] != me().Domain || m[2] != strconv.Itoa(me().PID) || m[3] != me().Start {
		t.Errorf("got %v, want m != nil and m[1] = me().Domain and m[2] = strconv.Itoa(me().PID) and m[3] = me().Start",
			m)
	}
	if l, ok := parseLeftover(tempName(UIName)); ok {
		t.Errorf("our own temporary file counts as Roo's: %+v", l)
	}
	if first, second := tempName(UIName), tempName(UIName); first == second {
		t.Error("two writers would meet")
	}
}

func TestParseLeftover(t *testing.T) {
	for name, want := range map[string]leftover{
		".ui_messages.json.bak_17_abc.tmp":                   {"", UIName, true, 17},
		".api_conversation_history.json.new_9007199_z0.tmp":  {"", APIName, false, 9007199},
		"task_metadata.json.tmp.5.abc.json":                  {"", MetadataName, false, 5},
		"._index.json.new_1_a.tmp":                           {"", IndexName, false, 1},
		".ui_messages.json.old_17_abc.tmp":                   {},
		".ui_messages.json.bak_17_abc.tmp2":                  {},
		"ui_messages.json.bak_17_abc.tmp":                    {},
		".ui_messages.json.bak_x_abc.tmp":                    {},
		".../ui_messages.json.bak_1_a.tmp":                   {},
		".ui_messages.json.bak_99999999999999999999_abc.tmp": {"", UIName, true, 1<<63 - 1},
	} {
		got, ok := parseLeftover(name)
		if ok != (want != leftover{}) {
			t.Errorf("%s: got %v, want ok = (want != leftover{})", name, ok)
			continue
		}
		if got.Name = ""; got != want {
			t.Errorf("%s: got %+v, want got = %v", name, got, want)
		}
	}
}
