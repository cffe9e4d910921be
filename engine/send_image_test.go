package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// screenshot is a data URL of a picture that no line of a journal holds.
var screenshot = "data:image/png;base64," + strings.Repeat("QUJD", 100_000)

// allEvents is all that is in a task's log, as streams show it.
func (b *bench) allEvents(ref store.Ref) (out []events.Event) {
	b.t.Helper()
	err := events.ReadJournal(b.t.Context(), b.store, ref, events.Cursor{}, func(e events.Item) error {
		out = append(out, e.Event)
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// A screenshot for a task that works, and one for a task whose run is queued, wait outside
// the journals: through a change of their words and through a restart, until the model gets
// them.
func TestAScreenshotWaitsOutsideTheJournal(t *testing.T) {
	b := newLimitedBench(t, engine.Options{MaxRuns: 1})
	sees := `
- expect: ["the other one"]
  tools: [{name: attempt_completion, input: {result: done}}]
`
	r := b.ask(strings.Replace(waitsForGo, "- tools: [{name: attempt_completion, input: {result: done}}]\n", "", 1) + sees)
	works := b.submit(r)
	waitForFile(t, filepath.Join(r.Workspace, "here"))
	queued := b.submit(b.ask(sees))
	other := "the other one"
	for _, id := range []string{works.Ref.ID, queued.Ref.ID} {
		m := engine.Message{ID: "m", Text: "look", Images: []string{screenshot}, By: "test", Request: engine.Request{Interactive: true}}
		if sent := b.send(id, m); sent.Delivered != "queued" {
			t.Fatalf("got %+v, want sent.Delivered = \"queued\"", sent)
		}
		if err := b.engine.EditInput(t.Context(), id, "m", &other); err != nil {
			t.Fatal(err)
		}
	}
	waits := func(id string) (out task.InputQueued) {
		t.Helper()
		words, err := b.engine.Inputs(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range words {
			if q.Input == "m" {
				out = q
			}
		}
		return out
	}
	for _, id := range []string{works.Ref.ID, queued.Ref.ID} {
		if q := waits(id); q.Text != other || len(q.Images) != 1 || q.Images[0] != screenshot {
			t.Errorf("%s: %q, %d images", id, q.Text, len(q.Images))
		}
	}
	for _, e := range b.allEvents(works.Ref) {
		if e.Type == "input.queued" && (len(e.Data) > 1000 || !strings.Contains(string(e.Data), `"image_count":1`) || strings.Contains(string(e.Data), "images_blob")) {
			t.Errorf("the event has %d bytes: %.300s", len(e.Data), e.Data)
		}
	}
	touch(t, r.Workspace, "go")
	b.waitForState(works.ID, "completed")
	b.waitForState(queued.ID, "completed")

	// What waits when the process ends is there for the next one.
	rests := b.submit(b.ask(asksWhich))
	b.asked(rests.Ref.ID)
	b.send(rests.Ref.ID, engine.Message{ID: "m", Text: other, Images: []string{screenshot}, Delivery: "queue", By: "test"})
	if err := b.engine.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.restart(engine.Options{})
	if q := waits(rests.Ref.ID); q.Text != other || len(q.Images) != 1 || q.Images[0] != screenshot {
		t.Errorf("in the next process: %q, %d images", q.Text, len(q.Images))
	}
	b.reply(b.asked(rests.Ref.ID).ID, engine.Reply{Text: "this", By: "test"})
	b.waitForState(rests.ID, "completed")

	_, data, _ := strings.Cut(screenshot, ",")
	for _, ticket := range []engine.Ticket{works, queued, rests} {
		s := b.state(ticket.Ref.ID)
		seen := 0
		for _, m := range s.API() {
			seen += strings.Count(string(m.Raw()), `"data":"`+data+`"`)
		}
		if seen != 1 || rowsOf(s, "say:user_feedback", other) != 1 || len(s.Queue) != 0 {
			t.Errorf("the model sees it %d times, %d wait: %v", seen, len(s.Queue), kinds(s))
		}
		checkHistory(t, s, true)
		journal, err := os.ReadFile(filepath.Join(ticket.Ref.Log, "journal.jsonl"))
		if err != nil || len(journal) > 64<<10 {
			t.Errorf("the journal has %d bytes, %v", len(journal), err)
		}
	}
}

// Images that come with an answer reach the model, whether the run that asked waits for the answer or was released.
func TestImagesOfAnAnswerReachTheModel(t *testing.T) {
	for _, hold := range []time.Duration{time.Hour, time.Millisecond} {
		for name, script := range map[string]string{"question": asksWhich, "approval": asksForACommand} {
			b := newLimitedBench(t, engine.Options{})
			r := b.ask(script)
			r.Hold, r.Approve = hold, "ask"
			ticket := b.submit(r)
			b.asked(ticket.Ref.ID)
			if hold == time.Millisecond {
				settledStatus(b, ticket.Ref.ID)
			}
			m := engine.Message{ID: "m", Text: "no", Images: []string{screenshot}, By: "test", Request: engine.Request{Interactive: true}}
			if sent := b.send(ticket.Ref.ID, m); sent.Delivered != "answered" {
				t.Errorf("%s: got %+v, want an answer", name, sent)
			}
			if name == "approval" { // the second command asks, too
				b.reply(b.asked(ticket.Ref.ID).ID, engine.Reply{Text: "no"})
			}
			b.waitForState(ticket.ID, "completed")
			s := b.state(ticket.Ref.ID)
			checkHistory(t, s, true)
			_, data, _ := strings.Cut(screenshot, ",")
			seen := 0
			for _, m := range s.API() {
				seen += strings.Count(string(m.Raw()), `"data":"`+data+`"`)
			}
			if seen != 1 || len(s.Queue) != 0 {
				t.Errorf("%s, held for %s: got %d images and %d inputs in the queue, want 1 and 0: %v", name, hold, seen, len(s.Queue), kinds(s))
			}
			shown := slices.IndexFunc(s.UI(), func(m *task.Message) bool { return strings.Contains(string(m.Raw()), data) })
			words := `"text":"no"`
			if name == "approval" {
				words = `"text":""` // a bare no is the decision
			}
			if shown < 0 || !strings.Contains(string(s.UI()[shown].Raw()), words) {
				t.Errorf("%s, held for %s: got row %d with the image, want one that has %s: %v", name, hold, shown, words, kinds(s))
			}
		}
	}
}
