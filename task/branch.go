package task

import (
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task/facts"
)

// RunsOf packs messages of one history into ranges. Numbers of the other history between them do not end a range;
// numbers of this history that are not in the list, or lost, do.
func (s *State) RunsOf(list []*Message) []Run64 {
	var out []Run64
	for _, m := range list {
		if n := len(out) - 1; n >= 0 && s.follows(out[n][1], m) {
			out[n][1] = m.ID
			continue
		}
		out = append(out, Run64{m.ID, m.ID})
	}
	return out
}

// follows reports whether a message is the next one of its history after the number last.
func (s *State) follows(last uint64, m *Message) bool {
	if m.ID <= last {
		return false
	}
	for id := last + 1; id < m.ID; id++ {
		if h := s.messages[id-1].History; h == m.History || h == "" {
			return false
		}
	}
	return true
}

// listOf returns the messages of a history that ranges name, without those that the log lost.
func (s *State) listOf(h History, runs []Run64) []*Message {
	var out []*Message
	for _, r := range runs {
		for id := max(r[0], 1); id <= r[1] && id < s.NextMessage(); id++ {
			if m := s.messages[id-1]; m.History == h {
				out = append(out, m)
			}
		}
	}
	return out
}

// History returns a branch's list of one history, in order.
func (s *State) History(l Leaf, h History) []*Message {
	if h == UI {
		return s.listOf(UI, l.UI)
	}
	return s.listOf(API, l.API)
}

// Branch finds a branch by its number; nil when there is none.
func (s *State) Branch(seq uint64) *Branch {
	if i := slices.IndexFunc(s.Branches, func(b Branch) bool { return b.Seq == seq }); i >= 0 {
		return &s.Branches[i]
	}
	return nil
}

// leaf returns the present head.
func (s *State) leaf() Leaf {
	l := Leaf{
		Seq: s.Seq, UI: s.RunsOf(s.ui), API: s.RunsOf(s.api), OpenItems: s.OpenItems.clone(),
		Files: Ranges(s.fileAt), Failures: s.Failures,
	}
	l.NoSummary, l.NoMarker = s.RunsOf(s.lifted(noSummary)), s.RunsOf(s.lifted(noMarker))
	l.Ends = append(l.Ends, api.Each(s.Touched, func(i int) End { return End{i, s.order[i].Progress} })...)
	if s.Run != nil {
		l.Run, l.Waiting, l.Rewound = s.Run.ID, s.Run.Waiting, s.Run.Rewound
	}
	return l
}

// lifted returns the visible messages whose tag of one kind is lifted.
func (s *State) lifted(l lifted) []*Message {
	return api.Some(s.api, func(m *Message) (*Message, bool) { return m, m.Lifted&l != 0 })
}

// mark sets why the messages of the head are hidden, and that no tag of theirs is lifted.
func (s *State) mark(hidden string) {
	for _, m := range slices.Concat(s.ui, s.api) {
		m.Hidden, m.Lifted = hidden, 0
	}
}

// touch marks calls whose outcome will differ between branches. On the existing branches they keep their present
// outcome, which has not changed since those branches were left.
func (s *State) touch(calls []*Call) {
	for _, c := range calls {
		i := slices.Index(s.order, c)
		if i < 0 || slices.Contains(s.Touched, i) {
			continue
		}
		s.Touched = append(s.Touched, i)
		for b := range s.Branches {
			s.Branches[b].Leaf.Ends = append(s.Branches[b].Leaf.Ends, End{i, c.Progress})
		}
	}
}

// leave keeps the head as a branch, because the head is about to move.
func (s *State) leave(seq uint64, at int64, why, by string) {
	if len(s.Branches) == 0 {
		s.fileAll()
	}
	s.touch(s.lastCalls())
	s.Branches = append(s.Branches, Branch{Seq: seq, At: at, Why: why, By: by, Leaf: s.leaf()})
}

// lastCalls returns the calls of the last reply: another branch may give them another outcome.
func (s *State) lastCalls() []*Call {
	m := s.lastReply()
	if m == nil {
		return nil
	}
	return api.Some(m.Facts.Uses, func(u facts.Use) (*Call, bool) {
		c := s.calls[u.ID]
		return c, c != nil && c.Message == m.ID
	})
}

// enter makes a leaf the head.
func (s *State) enter(l Leaf) {
	before := s.lastReply()
	s.mark("rewind")
	s.ui, s.api = s.History(l, UI), s.History(l, API)
	s.mark("")
	for _, m := range s.listOf(API, l.NoSummary) {
		m.Lifted |= noSummary
	}
	for _, m := range s.listOf(API, l.NoMarker) {
		m.Lifted |= noMarker
	}
	s.liftLater(l.Seq)
	for _, e := range l.Ends {
		if e.Call < 0 || e.Call >= len(s.order) {
			continue
		}
		c := s.order[e.Call]
		c.Progress = e.Progress
		c.away = c.Finished != nil && (e.away || c.Finished.Result == nil)
	}
	s.OpenItems = l.OpenItems.clone()
	s.showFiles(numbersIn(l.Files, len(s.filed)))
	s.reindex(before)
	s.Failures = l.Failures
	if s.Run != nil && s.Run.ID == l.Run {
		s.Run.Waiting, s.Run.Rewound = l.Waiting, l.Rewound
	} else if s.Run != nil {
		s.Run.Waiting, s.Run.Rewound = "", true
	}
}

// liftLater removes tags that messages got on another branch, after commit seq, if the summary or marker of the tag
// is not on this branch.
func (s *State) liftLater(seq uint64) {
	living := map[string]bool{} // the ids of the visible summaries and markers
	for _, m := range s.api {
		if t := m.Tags(); m.Facts.Summary {
			living[t.Summary] = true
		} else if t.Marks {
			living[t.Marker] = true
		}
	}
	for _, m := range s.api {
		if m.Body.Seq > seq {
			m.lift(func(id string) bool { return !living[id] })
		}
	}
}

// swap exchanges the head and the version that a branch holds. Undo and redo are such exchanges.
func (s *State) swap(seq uint64) bool {
	b := s.Branch(seq)
	if b == nil {
		return false
	}
	s.touch(s.lastCalls())
	now, then := s.leaf(), b.Leaf
	s.enter(then)
	b.Leaf = now
	return true
}

// moves reports whether an event adds to the histories, so that an earlier move of the head cannot be undone any
// more.
func moves(e Event) bool {
	switch e.(type) {
	case MessageAdded, MessageChanged, MessageTextSaved, MessageHidden, ForeignImported,
		ToolStarted, ToolFinished, api.QuestionOpened, api.QuestionClosed, InputQueued, InputTaken, FileChanged:
		return true
	}
	return false
}

func (s *State) rewind(e Rewound, c journal.Commit) error {
	for i, r := range e.Hide {
		if r[0] == 0 || r[1] < r[0] || i > 0 && r[0] <= e.Hide[i-1][1] {
			return fmt.Errorf("rewind that hides messages %d to %d out of order", r[0], r[1])
		}
	}
	if s.Branch(c.Seq) != nil {
		return fmt.Errorf("a second rewind in commit %d", c.Seq)
	}
	var to *Branch
	if e.Branch != 0 {
		if to = s.Branch(e.Branch); to == nil {
			return fmt.Errorf("branch %d does not exist", e.Branch)
		}
	}
	if e.Why == "fork" { // what the fork leaves out belongs to the other task
		s.fileAll()
		s.cut(e)
		return nil
	}
	before := Gone{len(s.ui), len(s.api)}
	s.touch(s.callsNamed(e.Calls))
	s.leave(c.Seq, c.At, e.Why, e.By)
	if to != nil {
		s.enter(s.Branch(e.Branch).Leaf)
	} else {
		s.cut(e)
	}
	s.Actions.Do(Action{Kind: e.Why, Seq: c.Seq, At: c.At, Move: true, By: e.By,
		Gone: Gone{before.UI - len(s.ui), before.API - len(s.api)}})
	return nil
}

// cut hides what a rewind removes.
func (s *State) cut(e Rewound) {
	for _, r := range e.Hide {
		for id := r[0]; id <= r[1] && id < s.NextMessage(); id++ {
			if m := s.messages[id-1]; m.Hidden == "" && m.History != "" {
				m.Hidden = e.Why
			}
		}
	}
	last := s.lastReply()
	s.dropHidden()
	lift := api.SetOf(e.Lift)
	for _, m := range s.api {
		m.lift(func(id string) bool { return lift[id] })
	}
	for _, c := range s.callsNamed(e.Calls) {
		c.Finished, c.At, c.away, c.Rewound = nil, place{}, false, true
	}
	s.Questions = slices.DeleteFunc(s.Questions, func(q *Question) bool { return slices.Contains(e.Questions, q.Question) })
	s.Answered = slices.DeleteFunc(s.Answered, func(a Answered) bool { return slices.Contains(e.Questions, a.Question) })
	s.Queue = slices.DeleteFunc(s.Queue, func(q InputQueued) bool { return slices.Contains(e.Inputs, q.Input) })
	for _, id := range e.Inputs {
		delete(s.QueuedAt, id)
	}
	if e.Files != 0 {
		s.showFiles(slices.DeleteFunc(slices.Clone(s.fileAt), func(i uint64) bool { return s.filed[i-1].Seq >= e.Files }))
	}
	s.reindex(last)
	if s.Run != nil {
		s.Run.Rewound = true
		if s.Question(s.Run.Waiting) == nil {
			s.Run.Waiting = ""
		}
	}
}

func (s *State) callsNamed(ids []string) []*Call {
	return api.Some(ids, func(id string) (*Call, bool) {
		c := s.calls[id]
		return c, c != nil
	})
}

func (s *State) undone(e Undone, c journal.Commit) error {
	seq := max(e.Undoes, e.Redoes)
	if e.Undoes != 0 && e.Redoes != 0 || !s.swap(seq) {
		return fmt.Errorf("commit %d holds no event that moved the head", seq)
	}
	s.Actions.turn(e.Undoes, e.Redoes, c.Seq)
	return nil
}

// fork makes the state that of a new task. Cost, runs and open questions belong to the other task. Both tasks keep
// the checkpoints, which record what files held.
func (s *State) fork(e Forked, c journal.Commit) {
	s.Fork = &e
	s.ID, s.Title, s.Tags, s.Pinned = e.Task, e.Title, nil, false
	s.Origin, s.Number, s.Parent, s.RootTask = e.Origin, 1, "", ""
	s.CreatedAt, s.UpdatedAt, s.Settings = e.CreatedAt, c.At, e.Settings
	s.Adopted, s.Actions, s.Run, s.Runs, s.Turns = nil, Actions{}, nil, RunHistory{}, 0
	s.WaitingUntil, s.OpenItems = 0, OpenItems{}
	s.Children, s.Usage, s.Refused, s.Restoring = nil, UsageTotals{}, nil, nil
	if e.Branch != 0 {
		if b := s.Branch(e.Branch); b != nil {
			l := b.Leaf
			l.OpenItems = OpenItems{}
			s.enter(l)
		}
	}
	s.Branches, s.Touched, s.Moved = nil, nil, c.Seq
	s.Received, s.Begins = nil, c.Seq
	s.Access, s.Person = api.Access{Owner: e.Person}, e.Person
}

// Own reports whether this task added a message, and not the task that it is a fork of.
func (s *State) Own(m *Message) bool { return s.Fork == nil || m.Seq > s.Fork.Seq }
