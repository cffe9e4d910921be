package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// RewindOptions say where the histories go back to. The zero value is one turn.
type RewindOptions struct {
	To     string // a message: #12, ~2 (turns), c3 (a checkpoint), or a ts; "" = ~1
	Keep   bool   // the message itself stays
	Edit   string // new words instead of the message, for the next run
	Remove bool   // only this message goes, with what belongs to it
	DryRun bool
}

// Rewind is what a rewind takes out of the histories, or took.
type Rewind struct {
	ID       string        `json:"id"`             // the task
	Forked   string        `json:"from,omitempty"` // the task that it continues, when that one cannot be written
	Kind     string        `json:"kind"`           // rewind, edit, remove
	DryRun   bool          `json:"dry_run"`
	To       *Row          `json:"to"` // the first message that goes; null when it is none that a person is shown
	Kept     bool          `json:"kept"`
	Gone     MessageCounts `json:"gone"`
	Left     MessageCounts `json:"left"`
	Turns    int           `json:"turns"`
	Calls    []GoneCall    `json:"calls"`
	Spent    Usage         `json:"spent"` // by the requests that go; it stays counted
	Files    []string      `json:"files"` // what was known of them is not known any more
	Asked    int           `json:"questions"`
	Queued   int           `json:"queued"`
	Restored int           `json:"restored"` // messages that a summary or truncation hid, and that are sent again
	Branch   string        `json:"branch"`   // the name of what was left; "" after a dry run

	// Unmatched is how many messages of another program's could not be matched to rows, by ids, words or times.
	Unmatched int `json:"unmatched,omitempty"`
}

// GoneCall is a tool call that goes.
type GoneCall struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	Stays   bool   `json:"stays"` // the call stays, and only its outcome counts no more
}

// BranchName is how a branch is called.
func BranchName(seq uint64) string { return fmt.Sprintf("b%d", seq) }

// Rewind takes both histories back in one commit. What went stays, as a branch. It
// returns when that is durable; Roo's files follow when finish is called, which must be.
//
// Errors: *RefError for a message that is not there, task.ErrTurns, task.ErrNothingToCut,
// those of task.CutMessage, *journal.BusyError while the task runs, or what Find gives.
func (s *Store) Rewind(ctx context.Context, ref Ref, o RewindOptions) (Rewind, func(context.Context) error, error) {
	none := func(context.Context) error { return nil }
	if o.DryRun {
		return s.dryRewind(ctx, ref, o)
	}
	if !ref.Own {
		// Another tool's folder is not taken over, and written to, for what cannot be done.
		if _, _, err := s.dryRewind(ctx, ref, o); err != nil {
			return Rewind{}, none, err
		}
	}
	owned, err := s.ownLean(ctx, ref)
	if err != nil {
		return Rewind{}, none, err
	}
	t := owned.Task
	r, events, err := planRewind(t.state, o, s.opt.Now())
	r.ID, r.Forked = t.Ref.ID, owned.Forked
	if err == nil {
		err = t.CommitDurably(ctx, "rewind", events...)
	}
	if err != nil {
		return r, none, errors.Join(err, t.Close(ctx))
	}
	r.Branch = BranchName(t.state.Seq)
	return r, t.Close, nil
}

func (s *Store) dryRewind(ctx context.Context, ref Ref, o RewindOptions) (Rewind, func(context.Context) error, error) {
	if fork, ok := s.Continued(ref); ok {
		ref = fork
	}
	v, err := s.ReadToContinue(ctx, ref)
	if err != nil {
		return Rewind{}, nil, err
	}
	r, _, err := planRewind(v.State, o, s.opt.Now())
	r.ID, r.DryRun = ref.ID, true
	return r, func(context.Context) error { return nil }, errors.Join(err, v.Close())
}

// CommitDurably commits events and makes them durable. what begins the names of the points at which tests kill it.
func (t *Task) CommitDurably(ctx context.Context, what string, events ...task.Event) error {
	failpoint.Hit(what + ".before")
	err := t.Commit(ctx, events...)
	if err == nil {
		failpoint.Hit(what + ".committed")
		err = t.Barrier(ctx)
	}
	if err == nil {
		failpoint.Hit(what + ".synced")
	}
	return err
}

// planRewind makes the events of a rewind and says what they take.
func planRewind(s *task.State, o RewindOptions, now int64) (Rewind, []task.Event, error) {
	at, err := findRow(s, o.To)
	if err != nil {
		return Rewind{}, nil, err
	}
	var e task.Rewound
	switch {
	case o.Remove && (at.turns > 0 || at.between):
		return Rewind{}, nil, &RefError{Given: o.To, Malformed: true, Why: "name the message that should go, such as #12", Candidates: someRows(s, len(s.UI()))}
	case o.Remove:
		e, err = s.CutMessage(at.row)
	case at.turns > 0:
		e, err = s.CutTurns(at.turns)
	default:
		e, err = s.CutAt(at.row, o.Keep)
	}
	if errors.Is(err, task.ErrTurns) {
		return Rewind{}, nil, &RefError{Given: o.To, Why: fmt.Sprintf("the model has replied %d times", s.Replies), Candidates: someRows(s, len(s.UI()))}
	}
	if err != nil {
		return Rewind{}, nil, err
	}
	if o.Edit == "" {
		return taken(s, e, o.Keep), []task.Event{e}, nil
	}
	e.Why = "edit"
	r := taken(s, e, o.Keep)
	events := []task.Event{e, task.InputQueued{Input: uuid.NewString(), Text: o.Edit}}
	if r.Left.UI > 0 { // else the run that begins shows them as what the task is about
		events = append(events, task.MessageAdded{History: task.UI, Message: s.NextMessage(), Body: task.Body{Raw: wordsRow(max(now, s.LastTS()), o.Edit)}})
	}
	return r, events, nil
}

// wordsRow shows what the person said.
func wordsRow(ts int64, words string) []byte {
	var o esjson.Object
	o.Int("ts", ts)
	o.String("type", "say")
	o.String("say", "user_feedback")
	o.String("text", words)
	o.Raw("images", []byte("[]"))
	return o.Bytes()
}

// taken says what a rewind takes.
func taken(s *task.State, e task.Rewound, keep bool) Rewind {
	r := Rewind{Kind: e.Why, Kept: keep, Calls: []GoneCall{}, Files: []string{}, Asked: len(e.Questions), Queued: len(e.Inputs), Unmatched: e.Unmatched}
	goes := map[uint64]bool{}
	for _, run := range e.Hide {
		for id := run[0]; id <= run[1] && id < s.NextMessage(); id++ {
			goes[id] = true
		}
	}
	var spent usage.Tokens
	for i, m := range s.UI() {
		if !goes[m.ID] {
			r.Left.UI++
			continue
		}
		r.Gone.UI++
		if m.ID == e.To {
			row := rowAt(s, i)
			r.To = &row
		}
		if cost, ok := m.Spent(); ok {
			cost.AddTo(&spent)
		}
	}
	for _, m := range s.API() {
		if !goes[m.ID] {
			r.Left.API++
			continue
		}
		r.Gone.API++
		if m.Kind() == "assistant" {
			r.Turns++
		}
	}
	var cost money.USD
	r.Spent, cost = inWhole(spent)
	r.Spent.Cost = &cost
	for _, c := range s.Calls() {
		stays := slices.Contains(e.Calls, c.ID) && s.Call(c.ID) == c
		if m := s.Message(c.Message); !stays && (m == nil || m.Hidden != "" || !goes[c.Message]) {
			continue
		}
		gone := GoneCall{ID: c.ID, Name: c.Name, Outcome: string(c.Outcome()), Stays: stays}
		if c.Finished != nil {
			gone.Outcome = c.Finished.Outcome
		}
		r.Calls = append(r.Calls, gone)
	}
	known := map[string]bool{}
	for _, f := range s.Files {
		if e.Files == 0 || f.Seq < e.Files {
			known[f.Path] = true
		}
	}
	for _, f := range s.Files {
		if !known[f.Path] {
			known[f.Path] = true
			r.Files = append(r.Files, f.Path)
		}
	}
	r.Restored = s.Lifts(e)
	return r
}

// ownLean takes a task over like Own, and reads no more of it than it must: its log
// from the snapshot on, and Roo's files only where another program may have changed
// them. The next owner looks at everything.
func (s *Store) ownLean(ctx context.Context, ref Ref) (*Owned, error) {
	v := &View{Ref: ref}
	if linked(ref.Dir) || !HasJournal(ref.Log) || !v.asWritten() {
		return s.Own(ctx, ref)
	}
	if err := s.Prepare(); err != nil {
		return nil, err
	}
	t, err := s.takeWith(ctx, ref, ref.Own, true)
	if err != nil {
		return nil, err
	}
	if t.hit() || empty(t.state) || !v.asWritten() || !t.proj.sawFiles() {
		if err := t.drop(); err != nil {
			return nil, err
		}
		return s.Own(ctx, ref)
	}
	return &Owned{Task: t}, nil
}

// sawFiles reads the two small files as they stand, and opens the histories; false when one cannot be.
func (p *projector) sawFiles() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range []string{roofmt.UIName, roofmt.APIName} {
		f, err := roofmt.OpenFile(p.task.Ref.Dir, name)
		if err != nil || f.Close() != nil {
			return false
		}
	}
	for name, to := range map[string]*[]byte{roofmt.ItemName: &p.base, roofmt.MetadataName: &p.meta} {
		f, err := roofmt.OpenFile(p.task.Ref.Dir, name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false
		}
		data, err := io.ReadAll(f)
		err = errors.Join(err, f.Close())
		if err != nil || esjson.TypeOf(data) != esjson.TypeObject || !esjson.Valid(data) {
			return false
		}
		*to = data
	}
	return true
}

// drop lets a task go that nothing was done to.
func (t *Task) drop() error {
	close(t.proj.stop)
	<-t.proj.done
	t.wants.moved(t.state.Seq)
	return t.log.Close()
}
