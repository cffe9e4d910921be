package events

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// owned is a task that this process owns, with its pipe.
func owned(t *testing.T) (*Pipe, *store.Task) {
	t.Helper()
	s := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: t.TempDir(), Program: "test"}))
	one := fixture.Must[*store.Task](t)(s.Create(t.Context(), task.Created{Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/w"}}))
	t.Cleanup(func() {
		if err := one.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := one.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := New(s)
	t.Cleanup(p.Close)
	return p, one
}

// untilSeq reads a topic until it has given a commit, and returns the types of all events; live ones have a star.
func untilSeq(t *testing.T, sub *Subscriber, seq uint64) (out []string) {
	t.Helper()
	for end := time.After(time.Minute); ; {
		if err := sub.Read(t.Context(), func(i Item) error {
			name := i.Type
			if i.Live {
				name += "*"
			}
			out = append(out, name)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if sub.Cursor().Seq >= seq {
			return out
		}
		select {
		case <-sub.Changed():
		case <-end:
			t.Fatalf("the topic gave %q, want all up to commit %d", out, seq)
		}
	}
}

// commit makes a commit as the recorder of a run does.
func commit(t *testing.T, o *Owner, one *store.Task, committed ...task.Event) {
	t.Helper()
	o.Commit(func() (uint64, Context, bool) {
		if err := one.Commit(t.Context(), committed...); err != nil {
			t.Error(err)
		}
		known, err := ContextOf(one.State(), committed)
		return one.State().Seq, known, err == nil
	})
}

// A live event comes behind the commit it followed and before the next one, although it is published at once and the
// journal is read later.
func TestLiveEventsFollowTheirCommit(t *testing.T) {
	p, one := owned(t)
	o := fixture.Must[*Owner](t)(p.Own(t.Context(), one.Ref, one.Epoch()))
	defer o.Release()
	sub := o.Topic().Subscribe(AfterCommit(one.State().Seq))
	for i := range 3 {
		commit(t, o, one, task.RunStarted{Run: fmt.Sprint("r", i)})
		o.Publish(Event{Type: "message.delta", Task: one.Ref.ID, Behind: one.State().Seq, Data: []byte(`{}`)})
	}
	commit(t, o, one, task.RunEnded{Run: "r2", Outcome: "completed"})
	if err := one.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"run.started", "message.delta*", "run.started", "message.delta*", "run.started", "message.delta*", "run.ended"}
	if d := cmp.Diff(want, untilSeq(t, sub, one.State().Seq)); d != "" {
		t.Error(d)
	}
}

// givesTheJournal reads a topic from a cursor to the head of the journal, and compares it with the journal.
func givesTheJournal(t *testing.T, p *Pipe, one *store.Task, sub *Subscriber, start Cursor) {
	t.Helper()
	head := one.State().Seq
	var got, want []string
	for sub.Cursor().Seq < head {
		change := sub.Changed()
		if err := sub.Read(t.Context(), func(i Item) error {
			got = append(got, string(i.Frame))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if sub.Cursor().Seq < head {
			<-change
		}
	}
	if err := ReadJournal(t.Context(), p.store, one.Ref, start, func(i Item) error {
		want = append(want, string(i.Frame))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the topic differs (-journal +topic):\n%s", d)
	}
}

// The topic renders the commits of an owner as a reader that folds the journal does, also those that the owner does not
// note: the store makes some by itself.
func TestTheTopicOfAnOwnerGivesWhatAReaderGives(t *testing.T) {
	p, one := owned(t)
	o := fixture.Must[*Owner](t)(p.Own(t.Context(), one.Ref, one.Epoch()))
	start := fixture.Must[Cursor](t)(o.Topic().Newest(t.Context())) // from here on the ring has all events
	sub := o.Topic().Subscribe(start)
	commit(t, o, one, task.RunStarted{Run: "r1"})
	for i := range 20 {
		commit(t, o, one, task.MessageAdded{History: task.UI, Message: uint64(i + 1), Body: task.Body{Raw: fmt.Appendf(nil, `{"ts":%d,"type":"say","say":"text","text":"%s"}`, i+1, strings.Repeat("x", i*100))}})
		if i%5 == 0 { // by the store
			if err := one.Commit(t.Context(), task.Changed{}); err != nil {
				t.Fatal(err)
			}
		}
		if i == 10 {
			if err := one.Commit(t.Context(), task.MessageChanged{Message: 3, Body: task.Body{Raw: []byte(`{"ts":3,"type":"say","say":"text","text":"changed"}`)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := one.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	givesTheJournal(t, p, one, sub, start)
	o.Release()
	if n := len(o.seqs); n != 0 {
		t.Errorf("%d notes of the owner were not used, want 0", n)
	}
}

// A commit can be readable before its owner has noted it: the topic waits for the note.
func TestTheTopicWaitsForTheNoteOfACommit(t *testing.T) {
	o := &Owner{seqs: map[uint64]Context{}}
	committed, note := make(chan struct{}), make(chan struct{})
	got := make(chan string, 1)
	go o.Commit(func() (uint64, Context, bool) {
		close(committed)
		<-note
		return 7, Context{Run: "r"}, true
	})
	<-committed
	go func() {
		c, _ := o.context(7)
		got <- c.Run
	}()
	select {
	case run := <-got:
		t.Fatalf("got the run %q before it was noted", run)
	case <-time.After(10 * time.Millisecond):
	}
	close(note)
	if run := <-got; run != "r" {
		t.Errorf("got the run %q, want r", run)
	}
	if c, ok := o.context(7); ok {
		t.Errorf("got %+v a second time", c)
	}
	if _, ok := o.context(8); ok {
		t.Error("got a context of a commit that was not noted")
	}
}

// What an owner noted of a commit that another owner's took the place of is not shown with that one: the owner was a
// server of a group that was away, and its own commit was never saved.
func TestTheTopicShowsNothingOfAFencedOwner(t *testing.T) {
	p, one := owned(t) // the successor
	o := fixture.Must[*Owner](t)(p.Own(t.Context(), one.Ref, one.Epoch()-1))
	defer o.Release()
	start := fixture.Must[Cursor](t)(o.Topic().Newest(t.Context()))
	sub := o.Topic().Subscribe(start)
	for i := range uint64(2) {
		o.Commit(func() (uint64, Context, bool) {
			return start.Seq + 1 + i, Context{Run: "lost", messages: []shownMessage{{history: task.UI, ts: 1, content: []byte(`{"text":"lost"}`)}}}, true
		})
	}
	for range 2 {
		if err := one.Commit(t.Context(), task.Changed{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	givesTheJournal(t, p, one, sub, start)
}

// Every subscriber gets all durable events once and in order: those that come early and late, and those that fall
// behind the ring.
func TestEverySubscriberGetsAllThatIsDurable(t *testing.T) {
	p, one := owned(t)
	o := fixture.Must[*Owner](t)(p.Own(t.Context(), one.Ref, one.Epoch()))
	defer o.Release()
	const commits = 60
	first := one.State().Seq
	last := first + commits
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			time.Sleep(time.Duration(i) * 5 * time.Millisecond)
			sub := o.Topic().Subscribe(AfterCommit(first))
			next := first + 1
			for next <= last {
				err := sub.Read(t.Context(), func(one Item) error {
					if one.Seq != next {
						t.Errorf("subscriber %d: got commit %d, want %d", i, one.Seq, next)
					}
					next++
					time.Sleep(time.Duration(i) * time.Millisecond)
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				if next <= last {
					<-sub.Changed()
				}
			}
		})
	}
	for i := range commits {
		commit(t, o, one, task.RunStarted{Run: fmt.Sprint(i, strings.Repeat("x", ringBytes/20))})
		if i%7 == 0 {
			if err := one.Barrier(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := one.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
}

// A topic keeps little while only the owner uses it, and more once there is a subscriber, which gets all events.
func TestATopicThatIsNotReadKeepsLittle(t *testing.T) {
	p, one := owned(t)
	o := fixture.Must[*Owner](t)(p.Own(t.Context(), one.Ref, one.Epoch()))
	defer o.Release()
	first := one.State().Seq
	commitMany := func() {
		for range 30 {
			commit(t, o, one, task.RunStarted{Run: strings.Repeat("x", unreadBytes/20)})
		}
		fixture.NoError(t, one.Barrier(t.Context()))
		untilSeq(t, o.Topic().Subscribe(AfterCommit(first)), one.State().Seq) // reads it to the end, and takes no part in it
	}
	commitMany()
	if _, bytes := p.Size(); bytes > unreadBytes {
		t.Errorf("a topic without subscribers: got %d bytes, want at most %d", bytes, unreadBytes)
	}
	topic, release, err := p.Task(one.Ref)
	fixture.NoError(t, err)
	if got := untilSeq(t, topic.Subscribe(AfterCommit(first)), one.State().Seq); len(got) != 30 {
		t.Errorf("a subscriber got %d events, want 30", len(got))
	}
	commitMany()
	if _, bytes := p.Size(); bytes <= unreadBytes {
		t.Errorf("a topic with a subscriber: got %d bytes, want all of about %d", bytes, 3*unreadBytes)
	}
	release()
	if _, bytes := p.Size(); bytes > unreadBytes {
		t.Errorf("a topic that its subscriber left: got %d bytes, want at most %d", bytes, unreadBytes)
	}
}

// A notice that is published before anybody subscribes is kept for the subscribers that come.
func TestNoticesWaitForASubscriber(t *testing.T) {
	p, one := owned(t)
	o := fixture.Must[*Owner](t)(p.Own(t.Context(), one.Ref, one.Epoch()))
	o.Publish(Event{Type: "notice", Task: one.Ref.ID, Behind: one.State().Seq, Data: []byte(`{}`)})
	topic, release, err := p.Task(one.Ref)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	o.Release() // the topic has all live events then
	if got := untilSeq(t, topic.Subscribe(AfterCommit(one.State().Seq)), one.State().Seq); len(got) != 1 || got[0] != "notice*" {
		t.Errorf("got %q, want the notice", got)
	}
}

// A run can end before its first subscriber comes. The subscriber still gets the run's live events, which no journal has,
// also when it reads the journal first. A subscriber of the next run gets no live events of this one.
func TestLiveEventsOutliveTheirOwner(t *testing.T) {
	s := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: t.TempDir(), Program: "test"}))
	one := fixture.Must[*store.Task](t)(s.Create(t.Context(), task.Created{Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/w"}}))
	ref := one.Ref
	p := New(s)
	defer p.Close()
	notice := func(o *Owner, name string) {
		o.Publish(Event{Type: name, Task: ref.ID, Behind: one.State().Seq, Data: []byte(`{}`)})
	}
	run := func(id string) (start Cursor) {
		if err := one.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		one = fixture.Must[*store.Owned](t)(s.Own(t.Context(), ref)).Task
		start = AfterCommit(one.State().Seq)
		o := fixture.Must[*Owner](t)(p.Own(t.Context(), ref, one.Epoch()))
		defer o.Release()
		notice(o, "first")
		commit(t, o, one, task.RunStarted{Run: id})
		notice(o, "second")
		commit(t, o, one, task.RunEnded{Run: id, Outcome: "completed"})
		notice(o, "last")
		if err := one.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		return start
	}
	check := func(name string, after Cursor, want ...string) {
		t.Helper()
		topic, release, err := p.Task(ref)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		got := untilSeq(t, topic.Subscribe(after), one.State().Seq)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	defer func() {
		if err := one.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	all := []string{"first*", "run.started", "second*", "run.ended", "last*"}
	check("from the start of the run", run("r1"), all...)
	check("from the start of the task", Cursor{}, "epoch.opened", "task.created", "epoch.opened", "run.started", "run.ended", "last*")
	check("from its first commit", AfterCommit(1), append([]string{"task.created", "epoch.opened"}, all...)...)
	check("from the start of the next run", run("r2"), all...)

	topic, release, err := p.Task(ref) // whoever follows the task for long
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := topic.Newest(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("from the start of a run beside a subscriber", run("r3"), all...)
}

// A topic keeps the journal's file open. If the run had a subscriber, the topic closes when its last user leaves.
func TestTopicOfAFollowedRunCloses(t *testing.T) {
	s := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: t.TempDir(), Program: "test"}))
	one := fixture.Must[*store.Task](t)(s.Create(t.Context(), task.Created{Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/w"}}))
	p := New(s)
	defer p.Close()
	o := fixture.Must[*Owner](t)(p.Own(t.Context(), one.Ref, one.Epoch()))
	_, leave, err := p.Task(one.Ref)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	o.Release()
	if topics, _ := p.Size(); topics != 0 {
		t.Errorf("got %d open topics, want none", topics)
	}
	fixture.NoError(t, one.Close(t.Context()))
}
