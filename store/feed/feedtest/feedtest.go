// Package feedtest is the behaviour that every feed must show: what is new in a line, places that are valid on every
// server, readers that move between servers, writers that are killed, lines that are dropped. It knows nothing of files or
// tables; faults of a log's own medium are tested next to it.
package feedtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/store/feed"
)

// Backend is one feed that does not exist yet.
type Backend struct {
	// Server opens the feed for one more server.
	Server func(t testing.TB) feed.Log
	// Delete deletes it.
	Delete func(t testing.TB)
	// Child is a process that calls Write.
	Child func(t testing.TB, task, lines string) *exec.Cmd
}

// A small feed keeps at least smallLeast of the newest lines, and never more than smallMost.
const (
	smallLeast = 8
	smallMost  = 100
)

// patience limits how long a required event may take on a busy machine.
const patience = time.Minute

// Run runs the suite. open gives a fresh Backend; see smallLeast for small ones.
func Run(t *testing.T, open func(t *testing.T, small bool) Backend) {
	for _, c := range []struct {
		name  string
		small bool
		test  func(*testing.T, Backend)
	}{
		{"unknown places", false, unknownPlaces},
		{"deleted and born", false, deletedAndBorn},
		{"names", false, names},
		{"changes", false, changes},
		{"moving readers", false, movingReaders},
		{"dropped lines", true, droppedLines},
		{"many writers", false, manyWriters},
		{"killed writers", false, killedWriters},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t, c.small)) })
	}
	t.Run("what is new", func(t *testing.T) { whatIsNew(t, open(t, false)) })
}

// Write is what a child process does: it adds the given number of lines for a task, each announcing one commit, and
// sets End in the last one. With 0 lines it never ends.
func Write(ctx context.Context, log feed.Log, task, lines string) error {
	last, err := strconv.ParseUint(lines, 10, 64)
	if err != nil {
		return err
	}
	for i := uint64(1); last == 0 || i <= last; i++ {
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // as the next sync tries again
			l := line(task, 1, i, i)
			l.End = i == last
			err := log.Append(ctx, l)
			if err == nil {
				break
			}
			if time.Now().After(end) {
				return err
			}
		}
	}
	return nil
}

func line(task string, epoch, from, to uint64) feed.Line {
	return feed.Line{
		Source: "roost",
		Task:   task,
		Epoch:  epoch,
		From:   from,
		To:     to,
	}
}

func tell(t testing.TB, log feed.Log, lines ...feed.Line) {
	t.Helper()
	for _, l := range lines {
		if err := log.Append(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
}

// text describes a line and the commits that it announces.
func text(e feed.Entry) string {
	if e.New.To < e.New.From {
		return e.Task + " nothing"
	}
	return fmt.Sprintf("%s %d-%d", e.Task, e.New.From, e.New.To)
}

func next(t testing.TB, r feed.Reader) (feed.Entry, bool) {
	t.Helper()
	e, ok, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e, ok
}

// rest returns all lines that a reader gives now, and their places.
func rest(t testing.TB, r feed.Reader) (out []string, at []feed.Place) {
	t.Helper()
	for {
		e, ok := next(t, r)
		if !ok {
			return out, at
		}
		out, at = append(out, text(e)), append(at, e.At)
	}
}

func reader(t testing.TB, log feed.Log, from feed.Place) feed.Reader {
	t.Helper()
	r, err := log.Open(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // was only read
	return r
}

func atEnd(t testing.TB, log feed.Log) (feed.Reader, feed.Place) {
	t.Helper()
	r, end, err := log.OpenEnd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // was only read
	return r, end
}

// What is new is counted from the line before, whatever the writer claims, and on whichever server it writes.
func whatIsNew(t *testing.T, b Backend) {
	for _, c := range []struct {
		name  string
		lines []feed.Line
		want  []string
	}{
		{"in order", []feed.Line{line("a", 1, 1, 1), line("a", 1, 2, 5), line("b", 1, 1, 2)}, []string{"a 1-1", "a 2-5", "b 1-2"}},
		{"said twice", []feed.Line{line("a", 1, 1, 3), line("a", 1, 2, 3), line("a", 1, 2, 4)}, []string{"a 1-3", "a nothing", "a 4-4"}},
		{"a line was lost", []feed.Line{line("a", 1, 1, 2), line("a", 1, 5, 6)}, []string{"a 1-2", "a 3-6"}},
		{"the owner before was killed", []feed.Line{line("a", 1, 1, 2), line("a", 2, 9, 9)}, []string{"a 1-2", "a 3-9"}},
		{"somebody tells for a dead owner, late", []feed.Line{line("a", 1, 1, 2), line("a", 2, 9, 9), line("a", 1, 8, 8), line("a", 2, 10, 10)},
			[]string{"a 1-2", "a 3-9", "a nothing", "a 10-10"}},
		{"somebody tells less than is known", []feed.Line{line("a", 1, 1, 9), line("a", 1, 5, 5), line("a", 2, 10, 9), line("a", 2, 10, 10)},
			[]string{"a 1-9", "a nothing", "a nothing", "a 10-10"}},
		{"older than the feed", []feed.Line{line("a", 3, 40, 40), line("a", 3, 41, 41)}, []string{"a 0-40", "a 41-41"}},
		{"an older copy was put back", []feed.Line{line("a", 1, 1, 9), line("a", 2, 5, 5), line("a", 2, 6, 6)}, []string{"a 1-9", "a 5-5", "a 6-6"}},
		{"an older copy was put back, and ends before it", []feed.Line{line("a", 1, 1, 9), line("a", 2, 5, 3), line("a", 2, 6, 6)},
			[]string{"a 1-9", "a nothing", "a 5-6"}},
		{"tasks of two sources", []feed.Line{line("a", 1, 1, 9), {Source: "roo", Task: "a", Epoch: 1, From: 1, To: 2}}, []string{"a 1-9", "a 1-2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer b.Delete(t)
			servers := []feed.Log{b.Server(t), b.Server(t)}
			for i, l := range c.lines {
				tell(t, servers[i%2], l)
			}
			got, _ := rest(t, reader(t, servers[0], feed.Place{}))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Places that are not in the feed, or of another feed, are unknown.
func unknownPlaces(t *testing.T, b Backend) {
	log, other := b.Server(t), b.Server(t)
	tell(t, log, line("a", 1, 1, 1), line("a", 1, 2, 2))
	_, at := rest(t, reader(t, log, feed.Place{}))
	good := at[1]
	for name, change := range map[string]func(*feed.Place){
		"feed":    func(p *feed.Place) { p.Feed = "0" },
		"segment": func(p *feed.Place) { p.Segment = 9 },
		"offset":  func(p *feed.Place) { p.Offset++ },
		"end":     func(p *feed.Place) { p.Offset += 200 },
		"sum":     func(p *feed.Place) { p.Sum++ },
		"head":    func(p *feed.Place) { p.Offset = 0 },
		"before":  func(p *feed.Place) { p.Offset = -1 },
		"far":     func(p *feed.Place) { p.Offset = 1 << 60 },
	} {
		p := good
		change(&p)
		if r, err := other.Open(t.Context(), p); !errors.Is(err, feed.ErrUnknown) {
			t.Errorf("%s: got %v %v, want ErrUnknown", name, r, err)
		}
	}
	reader(t, other, good)
	b.Delete(t)
	if _, err := other.Open(t.Context(), good); !errors.Is(err, feed.ErrUnknown) {
		t.Errorf("after the feed was deleted: got %v, want ErrUnknown", err)
	}
	tell(t, log, line("a", 1, 1, 1), line("a", 1, 2, 2)) // the same again, elsewhere
	if _, err := other.Open(t.Context(), good); !errors.Is(err, feed.ErrUnknown) {
		t.Errorf("a place of a feed that was deleted: got %v, want ErrUnknown", err)
	}
}

// A reader of a feed that is deleted gets an error; a reader that waits for a feed gets it from its beginning.
func deletedAndBorn(t *testing.T, b Backend) {
	log, other := b.Server(t), b.Server(t)
	first := reader(t, other, feed.Place{})
	r, end := atEnd(t, other)
	if end != (feed.Place{}) {
		t.Errorf("the end of a feed that is not there: got %v, want the zero place", end)
	}
	if _, ok := next(t, r); ok {
		t.Error("a feed that is not there has a line")
	}
	tell(t, log, line("a", 1, 1, 4))
	for _, r := range []feed.Reader{first, r} {
		if got, _ := rest(t, r); !slices.Equal(got, []string{"a 1-4"}) {
			t.Errorf("got %q, want a 1-4", got)
		}
	}
	b.Delete(t)
	if _, _, err := r.Next(t.Context()); !errors.Is(err, feed.ErrGone) {
		t.Errorf("after the feed was deleted: got %v, want ErrGone", err)
	}
	tell(t, log, line("a", 1, 5, 5))
	if _, _, err := first.Next(t.Context()); !errors.Is(err, feed.ErrGone) {
		t.Errorf("after another feed was begun: got %v, want ErrGone", err)
	}
	e, ok := next(t, reader(t, other, feed.Place{}))
	if want := "a 0-5"; !ok || text(e) != want || e.Birth <= 0 {
		t.Errorf("the new feed: got %s, born at %d, want %s", text(e), e.Birth, want)
	}
}

func names(t *testing.T, b Backend) {
	log := b.Server(t)
	for _, name := range []string{"", ".", "..", "a/b", `a\b`, "a\"b", "a\nb", strings.Repeat("x", 256)} {
		other := line("a", 1, 1, 1)
		other.Source = name
		if log.Append(t.Context(), line(name, 1, 1, 1)) == nil || log.Append(t.Context(), other) == nil {
			t.Errorf("%q was told", name)
		}
	}
}

// A reader of one server knows when another one added a line.
func changes(t *testing.T, b Backend) {
	log, other := b.Server(t), b.Server(t)
	r, _ := atEnd(t, other)
	wake, every := r.Changes()
	poll := time.NewTicker(every)
	defer poll.Stop()
	for i := uint64(1); i <= 5; i++ {
		tell(t, log, line("a", 1, i, i))
		for end := time.After(patience); ; {
			if e, ok := next(t, r); ok {
				if e.To != i {
					t.Fatalf("got line %d, want %d", e.To, i)
				}
				break
			}
			select {
			case <-wake:
			case <-poll.C:
			case <-end:
				t.Fatalf("line %d never came", i)
			}
		}
	}
}

// From every place a reader finds the same lines as a reader of the whole feed. A reader that continues on the other
// server after any line misses no line and gets none twice.
func movingReaders(t *testing.T, b Backend) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it chooses cases
	servers := []feed.Log{b.Server(t), b.Server(t)}
	head := map[string]uint64{}
	told := map[string]uint64{}
	var want []string
	var places []feed.Place
	r := reader(t, servers[0], feed.Place{})
	take := func() {
		for {
			e, ok := next(t, r)
			if !ok {
				return
			}
			first := e.New.From == 0 && told[e.Task] == 0 // its first line is lost: it counts from the birth of the feed
			if e.New.From <= e.New.To && e.New.From != told[e.Task]+1 && !first {
				t.Fatalf("%s is told from %d behind %d", e.Task, e.New.From, told[e.Task])
			}
			told[e.Task] = max(told[e.Task], e.New.To)
			want, places = append(want, text(e)), append(places, e.At)
			if random.IntN(4) > 0 {
				continue
			}
			r = reader(t, servers[random.IntN(2)], e.At)
			if again, ok := next(t, r); !ok || again != e {
				t.Fatalf("on the other server: got %+v, want the line of the place first, %+v", again, e)
			}
		}
	}
	for range 80 {
		task := []string{"a", "b", "c"}[random.IntN(3)]
		to := max(head[task]+uint64(random.IntN(4)), 1) //nolint:gosec // small
		if random.IntN(5) > 0 || to == 1 {
			tell(t, servers[random.IntN(2)], line(task, 1, min(head[task]+1, to), to))
		} // else its writer was killed before: the task's next line says it
		head[task] = to
		if random.IntN(3) == 0 {
			take()
		}
	}
	for task, to := range head {
		tell(t, servers[random.IntN(2)], line(task, 1, to, to))
	}
	take()
	if diff := cmp.Diff(head, told); diff != "" {
		t.Error(diff)
	}
	for i, p := range places {
		log := servers[i%2]
		if got, _ := rest(t, reader(t, log, p)); !slices.Equal(want[i:], got) {
			t.Fatalf("from place %d of %d: got %q, want %q", i, len(places), got, want[i:])
		}
	}
	for _, log := range servers {
		end, last := atEnd(t, log)
		if last != places[len(places)-1] {
			t.Errorf("the end: got %v, want %v", last, places[len(places)-1])
		}
		if got, _ := rest(t, end); len(got) > 0 {
			t.Errorf("behind the end: got %q", got)
		}
	}
}

// A place is known until its line is dropped, and never again. A reader at a dropped place gets ErrGone.
func droppedLines(t *testing.T, b Backend) {
	log, other := b.Server(t), b.Server(t)
	tell(t, log, line("a", 1, 1, 1))
	slow := reader(t, other, feed.Place{})
	_, first := rest(t, slow)
	last := uint64(3 * smallMost)
	for n := uint64(2); n <= last; n++ {
		tell(t, []feed.Log{log, other}[n%2], line("a", 1, n, n))
	}
	for { // it may have lines that it read before they were dropped
		_, ok, err := slow.Next(t.Context())
		if errors.Is(err, feed.ErrGone) {
			break
		}
		if err != nil || !ok {
			t.Fatalf("it read on over lines that are gone: %v, %v", ok, err)
		}
	}
	if _, err := other.Open(t.Context(), first[0]); !errors.Is(err, feed.ErrUnknown) {
		t.Errorf("the place of a line that is gone: got %v, want ErrUnknown", err)
	}
	got, places := rest(t, reader(t, other, feed.Place{}))
	if n := len(got); n < smallLeast || n > smallMost || got[n-1] != fmt.Sprintf("a %d-%d", last, last) {
		t.Fatalf("of the past there is %q", got)
	}
	if want := fmt.Sprintf("a %d-%d", last-uint64(len(got))+1, last-uint64(len(got))+1); got[0] != want {
		t.Errorf("the oldest line: got %s, want %s", got[0], want)
	}
	for i, p := range places {
		if again, _ := rest(t, reader(t, log, p)); !slices.Equal(again, got[i:]) {
			t.Errorf("from place %d: got %q", i, again)
		}
	}
}

// Many write at once on two servers: readers on both get the same lines in the same order, none is lost, and the lines of a
// task keep their order.
func manyWriters(t *testing.T, b Backend) {
	servers := []feed.Log{b.Server(t), b.Server(t)}
	const tasks, lines = 8, 20
	var write sync.WaitGroup
	for i := range tasks {
		write.Go(func() {
			// As an owner counts: what a line could not announce because another writer was busy, the next one announces.
			for from, to := uint64(1), uint64(1); from <= lines; to = min(to+1, lines) {
				if servers[i%2].Append(t.Context(), line(fmt.Sprint("t", i), 1, from, to)) == nil {
					from = to + 1
				} else if to == lines {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	var got [2][]feed.Entry
	var read sync.WaitGroup
	for i, log := range servers {
		r := reader(t, log, feed.Place{})
		read.Go(func() {
			told := map[string]uint64{}
			for end := time.Now().Add(patience); len(told) < tasks || slices.ContainsFunc(values(told), func(n uint64) bool { return n < lines }); {
				e, ok, err := r.Next(t.Context())
				if err != nil || time.Now().After(end) {
					t.Errorf("got %v, %v", told, err)
					return
				}
				if !ok {
					time.Sleep(time.Millisecond)
					continue
				}
				if e.New.From != told[e.Task]+1 {
					t.Errorf("%s is told from %d behind %d", e.Task, e.New.From, told[e.Task])
				}
				told[e.Task] = e.New.To
				got[i] = append(got[i], e)
			}
		})
	}
	write.Wait()
	read.Wait()
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Errorf("the servers differ: %s", diff)
	}
}

func values(m map[string]uint64) (list []uint64) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

// Several processes write at once, and one of them is killed. No commit is lost or announced twice, each task's lines
// keep their order, and any process can announce what the killed one could not.
func killedWriters(t *testing.T, b Backend) {
	log := b.Server(t)
	r := reader(t, log, feed.Place{})
	const (
		killed  = "killed"
		head    = 1_000_000_000 // of its journal
		written = 100
	)
	children := map[string]*exec.Cmd{}
	for name, lines := range map[string]string{killed: "0", "t1": fmt.Sprint(written), "t2": fmt.Sprint(written)} {
		cmd := b.Child(t, name, lines)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it may have ended
		children[name] = cmd
	}
	far := map[string]uint64{}
	for end := time.Now().Add(patience); far[killed] < head || far["t1"] < written || far["t2"] < written; {
		e, ok, err := r.Next(t.Context())
		if err != nil || time.Now().After(end) {
			t.Fatal(err, far)
		}
		if !ok {
			time.Sleep(time.Millisecond)
			continue
		}
		if e.New.To < e.New.From && e.Task == killed && far[killed] == head {
			continue // the log had it from the killed one, and added it later
		}
		if e.New.From != far[e.Task]+1 || e.New.To != e.To {
			t.Fatalf("%+v behind %d", e, far[e.Task])
		}
		far[e.Task] = e.To
		if e.Task == killed && e.To == 20 {
			_ = children[killed].Process.Kill() // its lines end, or the test does not
			_ = children[killed].Wait()         // it was killed
			l := feed.Line{Source: "roost", Task: killed, Epoch: 1, From: head, To: head, End: true}
			for err := log.Append(t.Context(), l); err != nil; err = log.Append(t.Context(), l) {
				if time.Now().After(end) { // the other children write, too
					t.Fatal(err)
				}
			}
		}
	}
	for _, name := range []string{"t1", "t2"} {
		if err := children[name].Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for e, ok := next(t, r); ok; e, ok = next(t, r) {
		if e.New.From <= e.New.To {
			t.Errorf("%+v is more than was written", e)
		}
	}
}
