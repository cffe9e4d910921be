package task_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// memory is a log and its blobs, as a reader would give them.
type memory struct {
	blobMap
	log   []journal.Commit
	reads *int // commits that were read back
}

func (m memory) Commits(from uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		for _, c := range m.log {
			if c.Seq < from {
				continue
			}
			if m.reads != nil {
				*m.reads++
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

func anyLog(t *rapid.T) []journal.Commit { return someLog(t, false) }

// movingLog is anyLog with moves of the head.
func movingLog(t *rapid.T) []journal.Commit { return someLog(t, true) }

func someLog(t *rapid.T, moves bool) []journal.Commit {
	var next uint64
	var log []journal.Commit
	for i := range rapid.IntRange(1, 40).Draw(t, "commits") {
		var events []task.Event
		if moves {
			if move := anyMove(t, next, uint64(i+1)); move != nil {
				events = append(events, move)
			}
		}
		for range rapid.IntRange(1, 3).Draw(t, "events") {
			events = append(events, anyEvent(t, &next))
		}
		log = append(log, encode(t, uint64(i+1), events...))
	}
	return log
}

// anyMove draws a move of the head for commit seq of a log with messages up to last, nil now and then.
func anyMove(t *rapid.T, last, seq uint64) task.Event {
	some := rapid.SliceOfN(rapid.SampledFrom(calls), 0, 2)
	from, earlier := rapid.Uint64Range(1, last+1).Draw(t, "from"), rapid.Uint64Range(0, seq).Draw(t, "earlier")
	switch rapid.IntRange(0, 9).Draw(t, "move") {
	case 0, 1:
		return task.Rewound{Why: "rewind", Hide: []task.Run64{{from, rapid.Uint64Range(from, last+2).Draw(t, "to")}}, Calls: some.Draw(t, "calls"),
			Questions: some.Draw(t, "questions"), Inputs: some.Draw(t, "inputs"), Files: earlier}
	case 2:
		return task.Rewound{Why: "rewind", Branch: earlier}
	case 3:
		return task.Undone{Undoes: earlier}
	case 4:
		return task.Undone{Redoes: earlier}
	}
	return nil
}

// What a state says must not depend on what it holds in memory.
func TestALeanStateSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := memory{blobMap: blobMap{"b": "{}{}"}, log: movingLog(t)}
		full, lean := task.New(src), task.New(nil).Lean(src, rapid.SampledFrom([]int{0, 40, 300}).Draw(t, "room"))
		for _, c := range src.log {
			a, b := full.Apply(c), lean.Apply(c)
			if fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("commit %d: %v and %v", c.Seq, a, b)
			}
		}
		if d := cmp.Diff(dump(full), dump(lean)); d != "" {
			t.Fatal(d)
		}
		if err := lean.Load(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(dump(full), dump(lean)); d != "" {
			t.Fatalf("after loading: %s", d)
		}
	})
}

// A snapshot at any commit, and the rest of the log on top, is the whole log.
func TestASnapshotAndTheRestIsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := memory{blobMap: blobMap{"b": "{}{}"}, log: movingLog(t)}
		cut := rapid.IntRange(0, len(src.log)).Draw(t, "cut")
		room := rapid.SampledFrom([]int{0, 100, 1 << 20}).Draw(t, "room")
		all, part := task.New(src), task.New(src)
		if rapid.Bool().Draw(t, "from a lean state") {
			part.Lean(src, room)
		}
		for i, c := range src.log {
			_ = all.Apply(c)
			if i < cut {
				_ = part.Apply(c)
			}
		}
		data, err := part.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		restored, err := task.Restore(data, src, room)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(dump(part), dump(restored)); d != "" {
			t.Fatal(d)
		}
		for _, c := range src.log[cut:] {
			_ = restored.Apply(c)
		}
		checkValid(t, restored)
		if d := cmp.Diff(dump(all), dump(restored)); d != "" {
			t.Fatal(d)
		}
		again, err := restored.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if whole, err := all.Snapshot(); err != nil || string(whole) != string(again) {
			t.Fatalf("two ways to one state give two snapshots (%v)", err)
		}
	})
}

func TestAnAdoptedTaskIsReadFromItsOriginals(t *testing.T) {
	file := `[{"ts":1,"type":"say","say":"text","text":"a"}, {"ts":2,"type":"say","say":"text","text":"b"}]`
	src := memory{blobMap: blobMap{"f": file}}
	s := task.New(nil).Lean(src, 0)
	first := strings.Index(file, ", ")
	spans := []int64{1, int64(first) - 1, int64(first) + 2, int64(len(file)-1) - int64(first) - 2}
	e := task.Adopted{Task: "x", Item: []byte("{ \"number\" : 3 }"), Files: []task.Original{{Name: "ui_messages.json", Blob: "f", History: task.UI, Spans: spans}}}
	if err := s.Apply(encode(t, 1, e)); err != nil {
		t.Fatal(err)
	}
	data, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), `"text":"b"`) {
		t.Error("the snapshot holds a message's bytes")
	}
	r, err := task.Restore(data, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r.UI()[1].Text() != "b" || r.UI()[0].Kind() != "say:text" || string(r.Adopted.Item) != `{"number":3}` || r.Number != 3 {
		t.Error(dump(r))
	}
	src.blobMap["f"] = "" // the original is gone
	if _, err := r.RawUI(); err == nil || !strings.Contains(err.Error(), "message 1") {
		t.Errorf("messages without bytes were read: %v", err)
	}
}

// A long task's page costs the page: what is read back lies near it.
func TestAPageReadsOnlyItsCommits(t *testing.T) {
	reads := 0
	src := memory{reads: &reads}
	s := task.New(nil).Lean(&src, 1<<10)
	for i := range uint64(5000) {
		c := encode(t, i+1, ui(i+1, fmt.Sprintf(`{"ts":%d,"type":"say","say":"text","text":"%d"}`, i+1, i+1)))
		src.log = append(src.log, c)
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if reads != 0 {
		t.Fatalf("folding read %d commits back", reads)
	}
	page, err := s.Raws(s.UI()[4000:4020])
	if err != nil || !strings.Contains(string(page[19]), `"4020"`) {
		t.Fatalf("got %s %v, want no error and strings.Contains(string(page[19]), `\"4020\"`)", page, err)
	}
	if reads > 20 {
		t.Errorf("20 messages took %d commits", reads)
	}
}

func TestWhatIsNotASnapshotIsRefused(t *testing.T) {
	s := folded(t, nil, []task.Event{task.Created{Task: "x"}, ui(1, `{"ts":1,"type":"say","say":"text"}`), apiMessage(2, assistant("c1"))})
	whole, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if _, err := task.Restore(whole[:cut], memory{}, 0); !errors.Is(err, task.ErrSnapshot) {
			t.Fatalf("%d of %d bytes: %v", cut, len(whole), err)
		}
	}
	if _, err := task.Restore(append(whole, 0), memory{}, 0); !errors.Is(err, task.ErrSnapshot) {
		t.Error("bytes behind the snapshot were not noticed")
	}
}

func FuzzRestore(f *testing.F) {
	s := task.New(nil)
	for i, events := range [][]task.Event{
		{task.Created{Task: "x", Number: 1}, ui(1, `{"ts":1,"type":"say","say":"api_req_started","text":"{}"}`)},
		{apiMessage(2, assistant("c1")), task.ToolStarted{Call: "c1", Name: "n"}, task.FileChanged{Path: "p", Source: "read_tool"}},
		{task.MessageTextSaved{Message: 1, Text: "t"}, task.ToolFinished{Call: "c1", Result: []byte(`{}`)}},
	} {
		if err := s.Apply(encode(f, uint64(i+1), events...)); err != nil {
			f.Fatal(err)
		}
	}
	whole, err := s.Snapshot()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := task.Restore(data, memory{}, 0)
		if err != nil {
			return
		}
		dump(s) // whatever it says, asking it must not break
	})
}

func snapped(t *rapid.T, s *task.State, src task.Source) *task.State {
	data, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	r, err := task.Restore(data, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A snapshot may have been written by anybody: a place that is none is not believed.
func TestAMessageThatDoesNotStandWhereItShouldIsLookedFor(t *testing.T) {
	w := tell(t, apiMessage(1, assistant("c1")), ui(2, say(3, "hello")))
	data, err := w.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	asked, changed := 0, 0
	for at := range data {
		for _, by := range []byte{1, 2, 0x10, 0x40} {
			other := bytes.Clone(data)
			other[at] ^= by
			s, err := task.Restore(other, w.src, 0)
			if err != nil {
				continue
			}
			for _, list := range [][]*task.Message{s.UI(), s.API()} {
				raws, err := s.Raws(list)
				for _, raw := range raws {
					asked++
					if err == nil && !strings.HasPrefix(string(raw), "{") {
						changed++
					}
				}
			}
		}
	}
	if asked == 0 || changed > 0 {
		t.Errorf("%d of %d messages are no objects", changed, asked)
	}
}

// What one message keeps in memory is bounded, and none lies in another.
func TestMessagesDoNotShareTheirEnds(t *testing.T) {
	w := tell(t)
	var events []task.Event
	for i := range uint64(60) {
		events = append(events, ui(i+1, say(int(i), strings.Repeat("x", int(i*35)))))
	}
	w.then(events...)
	s := task.New(nil).Lean(w.src, 0)
	for _, c := range w.src.log {
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	raws, err := s.Raws(s.UI())
	if err != nil {
		t.Fatal(err)
	}
	for i, raw := range raws {
		if cap(raw) > len(raw) && cap(raw) > 2*len(raw)+64 {
			t.Fatalf("message %d of %d bytes has room for %d", i+1, len(raw), cap(raw))
		}
		_ = append(raw, "over the next"...)
	}
	for i, m := range w.UI() {
		if string(raws[i]) != string(m.Raw()) {
			t.Fatalf("message %d: %s", m.ID, raws[i])
		}
	}
}
