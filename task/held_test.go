package task_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/foreign"
)

// A reader of a long task must not hold the task.
func TestALeanStateHoldsNoMoreThanItsRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := memory{blobMap: blobMap{"b": "{}{}"}, log: anyLog(t)}
		room := rapid.SampledFrom([]int{0, 1, 200, 1000}).Draw(t, "room")
		s := task.New(nil).Lean(src, room)
		for _, c := range src.log {
			_ = s.Apply(c)
			if got := s.Holding(); got > room {
				t.Fatalf("after commit %d it holds %d bytes in a room of %d", c.Seq, got, room)
			}
		}
		dump(s)
		if got := s.Holding(); got > room {
			t.Fatalf("reading left %d bytes in a room of %d", got, room)
		}
	})
}

func TestTheNewestMessagesStayInMemory(t *testing.T) {
	reads := 0
	w := played(t, 40)
	w.src.reads = &reads
	s := w.again(8 << 10)
	if got := s.Holding(); got < 4<<10 || got > 8<<10 {
		t.Errorf("%d bytes are held in a room of 8 KB", got)
	}
	last := s.UI()[len(s.UI())-2:]
	if _, err := s.Raws(last); err != nil || reads > 0 {
		t.Errorf("the newest rows took %d commits (%v)", reads, err)
	}
	if _, err := s.Raws(s.UI()[:1]); err != nil || reads == 0 {
		t.Errorf("the oldest row took %d commits (%v)", reads, err)
	}
}

// Text comes in many pieces. Each counts once, or a long reply would push
// everything else out.
func TestStreamedTextTakesTheRoomOfItsBytes(t *testing.T) {
	reads := 0
	w := tell(t)
	w.src.reads = &reads
	s := task.New(nil).Lean(&w.src, 64<<10)
	fold := func(events ...task.Event) {
		c := encode(t, s.Seq+1, events...)
		w.src.log = append(w.src.log, c)
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	fold(ui(1, say(1, strings.Repeat("x", 20<<10))))
	fold(ui(2, say(2, "")))
	for range 200 {
		fold(task.MessageTextSaved{Message: 2, Text: strings.Repeat("y", 50)})
	}
	if got := len(s.UI()[0].Text()) + len(s.UI()[1].Text()); got != 20<<10+200*50 || reads > 0 {
		t.Errorf("%d bytes of text took %d commits", got, reads)
	}
}

// Folding a task of many small messages costs the same with little memory: what is let go
// of is the front of what is noted, and the rest stays where it is.
func TestFoldingLeanIsNotSlower(t *testing.T) {
	const commits = 8_000
	s := task.New(nil).Lean(memory{}, 64<<10)
	stayed, let := 0, 0
	for i := range uint64(commits) {
		before, size := s.FirstNote()
		if err := s.Apply(encode(t, i+1, ui(i+1, `{"ts":1,"type":"say","say":"text","text":"x"}`))); err != nil {
			t.Fatal(err)
		}
		after, _ := s.FirstNote()
		if before != after {
			let++
		}
		if after == before+size {
			stayed++
		}
	}
	if n := s.Notes(); n < 500 || n > 4000 {
		t.Errorf("%d notes of what is held", n)
	}
	if let < commits*8/10 || stayed < let*99/100 {
		t.Errorf("with %d commits of %d the oldest went, and with %d of them the others stayed in their place", let, commits, stayed)
	}
}

// holed is a log that lost a commit, and whose disk may fail at another.
type holed struct {
	memory
	lost    uint64
	trouble uint64
}

var errDisk = errors.New("input/output error")

func (h *holed) Commits(from uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		for c, err := range h.memory.Commits(from) {
			switch c.Seq {
			case h.lost:
				c, err = journal.Commit{}, &journal.DamageError{Damage: journal.Damage{Seq: c.Seq, Reason: "checksum does not match"}}
			case h.trouble:
				yield(journal.Commit{}, errDisk)
				return
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// What the log held when it was folded may be gone when it is read.
func TestDamageThatCameLaterIsSaid(t *testing.T) {
	w := tell(t)
	for i := range 5 {
		w.then(ui(uint64(i+1), say(i+1, fmt.Sprint("text ", i+1))))
	}
	src := &holed{memory: w.src}
	s := task.New(nil).Lean(src, 0)
	for _, c := range w.src.log {
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	before := dump(s)
	src.lost = 3
	var damage *journal.DamageError
	if _, err := s.RawUI(); !errors.As(err, &damage) || damage.Seq != 3 {
		t.Errorf("reading over a lost commit: %v", err)
	}
	if err := s.Load(); !errors.As(err, &damage) {
		t.Errorf("loading over a lost commit: %v", err)
	}
	if got := string(s.Message(3).Raw()); got != "{}" {
		t.Errorf("a message that cannot be read is %s", got)
	}
	// Only what lay in it is gone.
	two := s.UI()[3:]
	if raws, err := s.Raws(append(two[:1:1], s.UI()[1])); err != nil || !strings.Contains(string(raws[1]), "text 2") {
		t.Errorf("the messages beside it: %s %v", raws, err)
	}
	src.lost, src.trouble = 0, 2
	if _, err := s.RawUI(); !errors.Is(err, errDisk) {
		t.Errorf("trouble of the disk: %v", err)
	}
	src.trouble = 0
	if dump(s) != before {
		t.Error("failing to read changed the state")
	}
	src.log = src.log[:3]
	if _, err := s.RawUI(); err == nil || !strings.Contains(err.Error(), "commit 4") {
		t.Errorf("reading behind the end of the log: %v", err)
	}
}

func TestALogThatHoldsSomethingElseIsNotBelieved(t *testing.T) {
	w := tell(t, ui(1, say(1, "")), task.MessageTextSaved{Message: 1, Text: "t"}).
		then(task.MessageChanged{Message: 1, Body: task.Body{Compose: []task.Piece{{TextOf: 1}}}}).
		then(apiMessage(2, assistant("c1")), finished("c1", "r")).then(answers(3, "c1"))
	for seq := range w.src.log {
		for name, put := range map[string][]journal.Event{
			"no event at all": nil,
			"other events":    {journal.Event(`{"type":"x"}`), journal.Event(`{"type":"input.taken"}`)},
			"no events":       {journal.Event(`[]`), journal.Event(`7`)},
		} {
			src := w.src
			src.log = append([]journal.Commit{}, w.src.log...)
			s := w.again(0).With(src)
			s.Lean(src, 0)
			src.log[seq].Events = put
			_, first := s.RawUI()
			_, second := s.RawAPI()
			if first == nil && second == nil {
				t.Errorf("commit %d with %s was read", seq+1, name)
			}
		}
	}
}

func TestAStateWithoutALogSaysSo(t *testing.T) {
	data, err := tell(t, ui(1, say(1, "a"))).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s, err := task.Restore(data, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RawUI(); !errors.Is(err, task.ErrNoSource) {
		t.Errorf("got %v, want errors.Is(err, task.ErrNoSource)", err)
	}
	if _, err := task.New(nil).RawUI(); err != nil {
		t.Errorf("a state that has everything needs no log: %v", err)
	}
}

// Loading is for comparing histories; what comes after it is folded as ever.
func TestFoldingGoesOnAfterLoading(t *testing.T) {
	w := played(t, 4)
	cut := len(w.src.log) - 6
	lean := task.New(nil).Lean(w.src, 0)
	for _, c := range w.src.log[:cut] {
		if err := lean.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := lean.Load(); err != nil {
		t.Fatal(err)
	}
	for _, c := range w.src.log[cut:] {
		if err := lean.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	if dump(lean) != dump(w.State) {
		t.Error("a state that was loaded says something else")
	}
	if lean.Lean(w.src, 0); lean.Holding() != 0 || dump(lean) != dump(w.State) {
		t.Errorf("lean again, it holds %d bytes", lean.Holding())
	}
}

// Many readers of one state do not disturb each other, whatever it holds.
func TestReadersDoNotDisturbEachOther(t *testing.T) {
	w := played(t, 3)
	w.then(ui(w.NextMessage(), say(9, "")), task.MessageTextSaved{Message: w.NextMessage(), Text: "being streamed"})
	want := dump(w.State)
	for name, s := range map[string]*task.State{"full": w.State, "lean": w.again(300), "restored": w.restored(0)} {
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				if got := dump(s); got != want {
					t.Errorf("%s: a reader saw another state", name)
				}
				foreign.Compare(s.UI(), task.UI, nil)
			})
		}
		readers.Wait()
	}
}
