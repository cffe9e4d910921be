package contextwindow_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/rewind"
)

// rewind goes back to a row, by the order in which things came; what another program
// wrote has none but its times, and only its shape is looked at.
func (w *world) rewind() {
	if len(w.head.ui) == 0 {
		return
	}
	row, keep := w.n("row", 0, len(w.head.ui)-1), w.n("keep", 0, 3) == 0
	e, err := rewind.At(w.s, row, keep)
	if errors.Is(err, rewind.ErrNothingToCut) {
		return
	}
	if err != nil {
		w.Fatal(err)
	}
	first := row
	if keep {
		first++
	}
	after := head{ui: slices.Clone(w.head.ui[:first])}
	if w.head.ui[row].own {
		gone := map[string]bool{}
		for _, r := range w.head.ui[first:] {
			gone[r.marker] = r.marker != ""
		}
		for _, m := range w.head.api {
			if m.id < w.head.ui[first].id && !gone[m.marker] {
				after.api = append(after.api, m)
			}
		}
	}
	var more []task.Event
	if w.n("edit", 0, 4) == 0 {
		e.Why = "edit"
		words, m := w.row("say:user_feedback", "new words")
		more = append(more, task.InputQueued{Input: fmt.Sprint("in", w.s.Seq), Text: "new words"}, words)
		after.ui = append(after.ui, m)
	}
	w.move(e, more...)
	if !w.head.ui[row].own {
		after.api = w.left(w.head.api)
		w.prefix(after.api)
	}
	w.moved(after)
}

// left are the messages of the reference that the state still shows.
func (w *world) left(list []messageText) (out []messageText) {
	for _, m := range list {
		if w.s.Message(m.id).Hidden == "" {
			out = append(out, m)
		}
	}
	return out
}

// prefix: nothing that stays stands behind something that went, marks aside.
func (w *world) prefix(left []messageText) {
	for i, m := range w.head.api {
		if i < len(left) && left[i].id != m.id && m.marker == "" && !slices.ContainsFunc(w.head.api[:i], func(o messageText) bool { return o.marker != "" }) {
			w.Fatalf("message %d went from the middle", m.id)
		}
	}
}

func (w *world) turnsBack() {
	n := w.n("turns", 1, 3)
	e, err := rewind.Turns(w.s, n)
	if errors.Is(err, rewind.ErrTurns) {
		if w.s.Replies >= n {
			w.Fatalf("%d replies, and going back %d is too much", w.s.Replies, n)
		}
		return
	}
	if err != nil {
		w.Fatal(err)
	}
	before := w.s.Replies
	w.move(e)
	if w.s.Replies != before-n {
		w.Fatalf("%d turns back leave %d of %d replies", n, w.s.Replies, before)
	}
	w.moved(head{w.left(w.head.ui), w.left(w.head.api)})
}

// remove takes one message out: the call and its result go together.
func (w *world) remove() {
	if len(w.head.ui) == 0 {
		return
	}
	row := w.n("row", 0, len(w.head.ui)-1)
	e, err := rewind.Message(w.s, row)
	if errors.Is(err, rewind.ErrFirstMessage) && row == 0 || errors.Is(err, rewind.ErrShared) {
		return
	}
	if err != nil {
		w.Fatal(err)
	}
	w.move(e)
	after := head{w.left(w.head.ui), w.left(w.head.api)}
	if slices.ContainsFunc(after.ui, func(m messageText) bool { return m.id == w.head.ui[row].id }) {
		w.Fatalf("row %d is still there", row)
	}
	w.moved(after)
}

// back takes the newest move back, forth does it again.
func (w *world) back() {
	if len(w.done) == 0 {
		if d := w.s.Actions.Done; len(d) > 0 && d[len(d)-1].Move && w.s.Moved <= d[len(d)-1].Then {
			w.Fatalf("%+v could be taken back, although the task went on", d[len(d)-1])
		}
		return
	}
	m := w.done[len(w.done)-1]
	w.done, w.again = w.done[:len(w.done)-1], append(w.again, m)
	w.swap(m, task.Undone{Undoes: m.seq}, m.before, m.was)
}

func (w *world) forth() {
	if len(w.again) == 0 {
		return
	}
	m := w.again[len(w.again)-1]
	w.again, w.done = w.again[:len(w.again)-1], append(w.done, m)
	w.swap(m, task.Undone{Redoes: m.seq}, m.after, m.is)
}

func (w *world) swap(m moved, e task.Event, to head, want string) {
	w.commit(e)
	w.head = to.copied()
	if got := fingerprint(w.s); got != want {
		w.Fatalf("%+v of commit %d is not exact:\n%s\nwant\n%s", e, m.seq, got, want)
	}
}

// branch goes to a branch that was left.
func (w *world) branch() {
	if len(w.s.Branches) == 0 {
		return
	}
	b := w.s.Branches[w.n("branch", 0, len(w.s.Branches)-1)]
	known := map[uint64]messageText{}
	for _, m := range slices.Concat(w.head.ui, w.head.api) {
		known[m.id] = m
	}
	w.move(task.Rewound{Why: "branch", Branch: b.Seq})
	list := func(of []*task.Message) (out []messageText) {
		for _, m := range of {
			k, ok := known[m.ID]
			if !ok { // as it was left, which swap has looked at or will
				k = messageText{id: m.ID, raw: string(m.Raw()), own: !m.Foreign}
				k.marker = markerOf(m.Raw())
			}
			if k.tag, _ = esjson.GetString(m.Raw(), "truncationParent"); k.tag != "" {
				k.raw = string(esjson.Remove([]byte(k.raw), "truncationParent"))
			}
			if k.cond, _ = esjson.GetString(m.Raw(), "condenseParent"); k.cond != "" {
				k.raw = string(esjson.Remove([]byte(k.raw), "condenseParent"))
			}
			out = append(out, k)
		}
		return out
	}
	w.moved(head{list(w.s.UI()), list(w.s.API())})
}

// crash is a kill: what comes after it folds the log, or takes a snapshot.
func (w *world) crash() {
	want := fingerprint(w.s)
	s := task.New(w.blobs)
	for _, c := range w.log {
		if err := s.Apply(c); err != nil {
			w.Fatal(err)
		}
	}
	if got := fingerprint(s); got != want {
		w.Fatalf("after a crash:\n%s\nwant\n%s", got, want)
	}
	w.s = s
}

// fork begins a task with what this one says, and does not touch it.
func (w *world) fork() {
	s := task.New(w.blobs)
	for _, c := range w.log {
		if err := s.Apply(c); err != nil {
			w.Fatal(err)
		}
	}
	raw, err := task.Encode(task.Forked{Task: "fork", From: "t", Seq: s.Seq})
	if err != nil {
		w.Fatal(err)
	}
	if err := s.Apply(journal.Commit{Seq: s.Seq + 1, Epoch: 2, Events: []journal.Event{raw}}); err != nil {
		w.Fatal(err)
	}
	for i, m := range s.API() {
		if string(m.Raw()) != string(w.s.API()[i].Raw()) {
			w.Fatalf("message %d of the fork is %s", m.ID, m.Raw())
		}
	}
	if len(s.UI()) != len(w.s.UI()) || s.Usage.Requests != 0 || len(s.Actions.Done) > 0 || len(s.Questions) > 0 {
		w.Fatalf("the fork has %+v", s)
	}
}
