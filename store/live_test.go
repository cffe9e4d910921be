package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// list is a history in memory.
type list []string

func (l list) Len() int { return len(l) }

func (l list) Raw(i int) ([]byte, error) { return []byte(l[i]), nil }

func say(ts int, kind string, rest ...string) string {
	return fmt.Sprintf(`{"ts":%d,"type":"say","say":%q%s}`, ts, kind, strings.Join(append([]string{""}, rest...), ","))
}

func ask(ts int, kind string, rest ...string) string {
	return fmt.Sprintf(`{"ts":%d,"type":"ask","ask":%q%s}`, ts, kind, strings.Join(append([]string{""}, rest...), ","))
}

func turnOf(ts int, role string, rest ...string) string {
	return fmt.Sprintf(`{"role":%q,"content":[],"ts":%d%s}`, role, ts, strings.Join(append([]string{""}, rest...), ","))
}

const (
	cancelledText = `"text":"{\"apiProtocol\":\"anthropic\",\"cancelReason\":\"user_cancelled\"}"`
	streaming     = `"partial":true`
	streamed      = `"partial":false`
)

// window is an editor's window: it has the two lists in memory, and saves each of
// them whole, in Roo's order, whatever stands in the files by now.
type window struct {
	dir     string
	chance  *rand.Rand
	ui, api list
	turns   *atomic.Int64
	mark    string // of the turn in hand

	mu   sync.Mutex
	half map[string]bool // turns whose saves failed, so that they may stand in one file only
}

// cut notes that the turn in hand did not get into both files.
func (w *window) cut(mark string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.half[mark] = true
}

func (w *window) isCut(mark string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.half[mark]
}

var errCrash = errors.New("the window crashed")

// open reads both files as Roo does: what it cannot parse is an empty list, and
// for the rows that is saved at once.
func (w *window) open() error {
	w.ui, w.api = parsed(w.dir, roofmt.UIName), parsed(w.dir, roofmt.APIName)
	w.ui = append(w.ui, ask(w.tick(), "resume_task"))
	return w.save(roofmt.UIName, w.ui)
}

func parsed(dir, name string) list {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || !esjson.Valid(data) {
		return nil
	}
	var out list
	for e := range esjson.Array(data) {
		out = append(out, string(e))
	}
	return out
}

// tick is the time of the next row. Tests' clocks stand still for a while, and
// Roo's own never give a time twice in a row.
func (w *window) tick() int { return ts0 + 1000*int(w.turns.Add(1)) }

// turn is one request and its reply.
func (w *window) turn() error {
	mark := fmt.Sprint("window-", w.turns.Load())
	w.mark = mark
	text := fmt.Sprintf(`"text":%q`, mark)
	w.ui = append(w.ui, say(w.tick(), "user_feedback"), say(w.tick(), "api_req_started"))
	if err := w.save(roofmt.UIName, w.ui); err != nil {
		return err
	}
	w.api = append(w.api, turnOf(w.tick(), "user"))
	if err := w.save(roofmt.APIName, w.api); err != nil {
		return err
	}
	w.ui = append(w.ui, say(w.tick(), "text", text, streamed))
	if err := w.save(roofmt.UIName, w.ui); err != nil {
		return err
	}
	time.Sleep(time.Duration(w.chance.IntN(600)) * time.Millisecond)
	w.api = append(w.api, turnOf(w.tick(), "assistant", text))
	return w.save(roofmt.APIName, w.api)
}

// save is Roo's way of writing, with all the time in the world between its steps.
func (w *window) save(name string, rows list) error {
	target := filepath.Join(w.dir, name)
	fresh := filepath.Join(w.dir, fmt.Sprintf(".%s.new_%d_w.tmp", name, w.turns.Load()))
	backup := filepath.Join(w.dir, fmt.Sprintf(".%s.bak_%d_w.tmp", name, w.turns.Load()))
	for try := 0; os.Mkdir(target+".lock", 0o700) != nil; try++ {
		if try == 6 || !exists(w.dir, "") {
			w.cut(w.mark)
			return nil // Roo logs it, and goes on without having saved
		}
		time.Sleep(400 * time.Millisecond)
	}
	for _, step := range []func() error{
		func() error { return os.WriteFile(fresh, []byte(array(rows...)), 0o600) },
		func() error { return os.Rename(target, backup) },
		func() error { return os.Rename(fresh, target) },
		func() error { return os.Remove(backup) },
		func() error { return os.Remove(target + ".lock") },
	} {
		time.Sleep(time.Duration(w.chance.IntN(40)) * time.Millisecond)
		if w.chance.IntN(250) == 0 {
			// Nobody refreshes the lock: it goes stale.
			w.cut(w.mark)
			old := time.Now().Add(-time.Minute)
			return errors.Join(errCrash, os.Chtimes(target+".lock", old, old))
		}
		if err := step(); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// live runs a window: turns, being closed and opened again, power cuts, and a
// delete at the end perhaps.
func (w *window) live(stop <-chan struct{}) error {
	open := false
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(time.Duration(w.chance.IntN(4000)) * time.Millisecond):
		}
		var err error
		switch did := w.chance.IntN(10); {
		case !exists(w.dir, ""):
			return nil
		case !open:
			open, err = true, w.open()
		case did == 0:
			open = false
		case did == 1:
			open = false
			err = w.powerCut()
		default:
			err = w.turn()
		}
		if errors.Is(err, errCrash) {
			open, err = false, nil
		}
		if err != nil {
			return err
		}
	}
}

// powerCut leaves one of the files as the disk happened to have it.
func (w *window) powerCut() error {
	name := []string{roofmt.UIName, roofmt.APIName}[w.chance.IntN(2)]
	info, err := os.Stat(filepath.Join(w.dir, name))
	if err != nil || info.Size() == 0 {
		return nil
	}
	return os.Truncate(filepath.Join(w.dir, name), w.chance.Int64N(info.Size()))
}

// marks are the turns of windows that a history holds.
func marks(t *testing.T, read func() ([][]byte, error)) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, raw := range fixture.Must[[][]byte](t)(read()) {
		if text, _ := esjson.GetString(raw, "text"); strings.HasPrefix(text, "window-") {
			out[text] = true
		}
	}
	return out
}

// life is one task with a window and Roost on it.
type life struct {
	t     *testing.T
	seed  uint64
	s     *Store
	w     *window
	acked []uint64

	taken, refused int // changes of the window that Own met
}

// whole checks what must hold whoever did what: nothing that Roost acknowledged is
// gone, and no turn of a window stands in one history only.
func (l *life) whole(s *task.State, when string) {
	for _, id := range l.acked {
		if m := s.Message(id); m == nil || m.Missing || m.Hidden != "" {
			l.t.Fatalf("seed %d: %s: message %d is gone: %+v", l.seed, when, id, m)
		}
	}
	ui, api := marks(l.t, s.RawUI), marks(l.t, s.RawAPI)
	for mark := range ui {
		if !api[mark] && !l.w.isCut(mark) {
			l.t.Fatalf("seed %d: %s: %s is in the rows only", l.seed, when, mark)
		}
	}
	for mark := range api {
		if !ui[mark] && !l.w.isCut(mark) {
			l.t.Fatalf("seed %d: %s: %s is in the turns only", l.seed, when, mark)
		}
	}
}

// run owns the task once, commits turns, and lets it go.
func (l *life) run(chance *rand.Rand) {
	ref, err := l.s.Find(context.Background(), "live-one")
	fixture.NoError(l.t, err)
	o, err := l.s.Own(context.Background(), ref)
	if errors.Is(err, ErrForeignBusy) {
		return
	}
	if err != nil {
		l.t.Fatalf("seed %d: own: %v", l.seed, err)
	}
	l.whole(o.Task.State(), "owned")
	for _, in := range o.Task.Intakes() {
		if in.Refused == "" {
			l.taken++
		} else {
			l.refused++
		}
	}
	for range chance.IntN(3) {
		for _, h := range []task.History{task.UI, task.API} {
			id := o.Task.State().NextMessage()
			at := 1000*int(l.w.turns.Load()) + int(id)
			raw := say(ts0+at, "text")
			if h == task.API {
				raw = turnOf(ts0+at, "user")
			}
			commit(l.t, o.Task, h, raw)
			l.acked = append(l.acked, id)
		}
		time.Sleep(time.Duration(chance.IntN(2500)) * time.Millisecond)
	}
	err = o.Task.Close(context.Background())
	if err != nil && !errors.Is(err, roofmt.ErrLocked) && !errors.Is(err, ErrForeignBusy) && !errors.Is(err, roofmt.ErrChanged) {
		l.t.Fatalf("seed %d: close: %v", l.seed, err)
	}
	l.whole(o.Task.State(), "closed")
}

func (l *life) look() {
	ref, err := l.s.Find(context.Background(), "live-one")
	fixture.NoError(l.t, err)
	v, err := l.s.Read(context.Background(), ref)
	if err != nil {
		l.t.Fatalf("seed %d: read: %v", l.seed, err)
	}
	for _, id := range l.acked {
		if m := v.State.Message(id); m == nil || m.Missing || m.Hidden != "" {
			l.t.Fatalf("seed %d: a reader lacks message %d", l.seed, id)
		}
	}
	fixture.NoError(l.t, v.Close())
}

// A window and Roost work on the same task for a while, in every order that
// chance finds. In the end both are still: Roost's journal has all that it ever
// acknowledged, and the files say what it says.
func TestBesideALiveWindow(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 10
	}
	taken, refused := 0, 0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			s, dir, _ := continued(t)
			patient(t, s)
			chance := rand.New(rand.NewPCG(seed, 1))
			var turns atomic.Int64
			l := &life{t: t, seed: seed, s: s, w: &window{dir: dir, chance: rand.New(rand.NewPCG(seed, 2)), half: map[string]bool{}, turns: &turns}}
			for _, m := range view(t, s, "live-one").State.UI() {
				l.acked = append(l.acked, m.ID)
			}
			stop, done := make(chan struct{}), make(chan error, 1)
			go func() { done <- l.w.live(stop) }()
			for range 3 + chance.IntN(4) {
				time.Sleep(time.Duration(chance.IntN(3000)) * time.Millisecond)
				l.look()
				l.run(chance)
			}
			close(stop)
			if err := <-done; err != nil {
				t.Fatalf("seed %d: window: %v", seed, err)
			}
			l.end(chance.IntN(5) == 0)
			taken, refused = taken+l.taken, refused+l.refused
		})
	}
	if taken == 0 || refused == 0 {
		t.Errorf("%d changes taken in and %d refused: this shows nothing", taken, refused)
	}
	t.Logf("%d lives: %d changes taken in, %d refused", seeds, taken, refused)
}

// end looks at the task when all are still. A lock that a crash left is stale by
// then, for a clock that is right.
func (l *life) end(deleted bool) {
	t := l.t
	for _, name := range []string{roofmt.UIName, roofmt.APIName} {
		if err := os.Remove(filepath.Join(l.w.dir, name+".lock")); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if deleted {
		fixture.NoError(t, os.RemoveAll(l.w.dir))
	}
	k := own(t, l.s, "live-one").Task
	l.whole(k.State(), "in the end")
	want := rows(k.State())
	closeTask(t, k)
	if exists(l.w.dir, "") == deleted {
		t.Fatalf("seed %d: deleted %v, and there %v", l.seed, deleted, !deleted)
	}
	v := view(t, l.s, "live-one")
	if rows(v.State) != want || len(v.Pending) != 0 {
		t.Fatalf("seed %d: read %s\nwant %s\npending %+v", l.seed, rows(v.State), want, v.Pending)
	}
	if !deleted && len(v.State.UI()) != len(parsed(l.w.dir, roofmt.UIName)) {
		t.Fatalf("seed %d: the rows' file holds %d of %d", l.seed, len(parsed(l.w.dir, roofmt.UIName)), len(v.State.UI()))
	}
	if r := checkWith(t, l.s, "live-one"); r.OK != 1 {
		t.Fatalf("seed %d: %+v", l.seed, r)
	}
}
