package task

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task/facts"
)

// adopt makes the elements of another tool's files the task's first messages: all UI messages, then all API messages.
// noted are the notes of files, by their blobs.
func (s *State) adopt(e Adopted, c journal.Commit, noted map[string]*Notes) error {
	s.ID, s.Settings, s.CreatedAt = e.Task, e.Settings, e.CreatedAt
	s.Origin = "extension"
	brief := e
	brief.Files = slices.Clone(e.Files)
	for i := range brief.Files {
		brief.Files[i].Spans, brief.Files[i].SpansBlob = nil, "" // they live on as messages
	}
	s.Adopted = &brief
	if n, ok := esjson.GetInt(e.Item, "number"); ok {
		s.Number = int(n)
	}
	s.Parent, _ = esjson.GetString(e.Item, "parentTaskId")
	s.RootTask, _ = esjson.GetString(e.Item, "rootTaskId")
	s.Pinned, _ = esjson.GetBool(e.Item, "isFavorited") // Cline's favourites
	s.adoptChildren(e.Item)

	var first error
	for _, h := range []History{UI, API} {
		for _, f := range e.Files {
			if f.History != h || s.attachNoted(f, h, c.Seq, noted[f.Blob]) {
				continue
			}
			first = cmp.Or(first, s.attachSpans(f, h, c.Seq))
		}
	}
	for _, m := range s.messages {
		if s.source != nil && !m.rawAway && !esjson.Valid(m.raw) {
			m.drop() // whoever reads it gets the error
		}
	}
	return first
}

func (s *State) attachSpans(f Original, h History, seq uint64) error {
	if err := s.unspill(f.SpansBlob, &f.Spans); err != nil {
		return fmt.Errorf("original %s: %w", f.Name, err)
	}
	if len(f.Spans) == 0 {
		return nil
	}
	if len(f.Spans)%2 != 0 {
		return fmt.Errorf("original %s: the list of its elements' bounds has an odd length", f.Name)
	}
	var first error
	for i := 0; i < len(f.Spans); {
		n := window(f.Spans[i:])
		first = cmp.Or(first, s.attachWindow(f, h, seq, f.Spans[i:i+n]))
		i += n
	}
	return first
}

// window returns how many of the spans one read covers: elements that follow each other.
func window(spans []int64) int {
	n := 2
	for n+1 < len(spans) && sane(spans[n-2], spans[n-1]) && sane(spans[n], spans[n+1]) &&
		spans[n] >= spans[n-2]+spans[n-1] && spans[n]+spans[n+1]-spans[0] <= windowBytes {
		n += 2
	}
	return n
}

func (s *State) attachWindow(f Original, h History, seq uint64, spans []int64) error {
	start, end := spans[0], spans[len(spans)-2]+spans[len(spans)-1]
	data, err := s.elements(f.Blob, start, end-start)
	if err != nil && len(spans) > 2 { // one element at a time: those that are there are kept
		var first error
		for i := 0; i < len(spans); i += 2 {
			first = cmp.Or(first, s.attachWindow(f, h, seq, spans[i:i+2]))
		}
		return first
	}
	first := err
	for i := 0; i+1 < len(spans); i += 2 {
		m := s.newMessage(h, seq)
		m.Foreign = true
		off, n := spans[i]-start, spans[i+1]
		switch {
		case err != nil: // there are none
		// A state that keeps few bytes checks them when they are asked for: going
		// through half a gigabyte twice would show.
		case s.source != nil || esjson.Valid(data[off:off+n]):
			m.set(data[off:off+n:off+n], place{Blob: f.Blob, Off: spans[i], Len: n}, nil)
		case first == nil:
			first = fmt.Errorf("bytes %d+%d are not JSON", spans[i], n)
		}
		if m.Body.nowhere() {
			m.Missing = true
			m.blank()
		}
		s.attach(m)
		s.trim()
	}
	if first != nil {
		first = fmt.Errorf("original %s: %w", f.Name, first)
	}
	return first
}

// importForeign makes one history equal to another program's file. It hides the messages that the file no longer has;
// it destroys nothing.
func (s *State) importForeign(e ForeignImported, c journal.Commit) error {
	if e.History != UI && e.History != API {
		return fmt.Errorf("foreign list of the history %q, which does not exist", e.History)
	}
	if err := s.unspill(e.RowsBlob, &e.Rows); err != nil {
		return fmt.Errorf("foreign %s history: %w", e.History, err)
	}
	if err := s.skipTo(e.First, c); err != nil {
		return fmt.Errorf("foreign %s history: %w", e.History, err)
	}
	next := make([]*Message, 0, len(e.Rows))
	kept := map[*Message]bool{}
	var first error
	for _, row := range e.Rows {
		var raw []byte
		if row.Len > 0 {
			var err error
			if raw, err = s.element(e.Blob, row.Off, row.Len); err != nil {
				first = cmp.Or(first, fmt.Errorf("foreign %s history: %w", e.History, err))
			}
		}
		m := s.Message(row.Message)
		if m != nil && m.History == "" { // the commit that added it is lost
			m.History = e.History
			m.Facts = facts.Of(m.History == API, m.Raw(), s.kinds)
		}
		if m != nil && (m.History != e.History || kept[m]) {
			m = nil // it is no state of that message: not lost, but new
		}
		if m == nil {
			m = s.newMessage(e.History, c.Seq)
			m.Foreign, m.Missing = true, raw == nil
			m.blank()
			s.messages = append(s.messages, m)
		}
		if raw != nil {
			before := m.size()
			m.set(raw, place{Blob: e.Blob, Off: row.Off, Len: row.Len}, nil)
			m.Missing = false
			s.grew(m, before)
			s.trim()
		}
		m.Hidden = ""
		kept[m] = true
		next = append(next, m)
	}
	list, last := s.visible(e.History), s.lastReply()
	for _, m := range *list {
		if !kept[m] {
			m.Hidden = "foreign"
		}
	}
	*list = next
	if e.History == API {
		s.reindex(last)
	}
	return first
}

// unspill reads a list that was too long for a commit's line.
func (s *State) unspill(blob string, list any) error {
	if blob == "" {
		return nil
	}
	raw, err := s.blobs.Range(blob, 0, -1)
	if err == nil {
		err = json.Unmarshal(raw, list)
	}
	return api.Failed(err, "list %s", blob)
}

// Adopt gives a new state the messages that adopting the files would give it, for a reader of a folder without a
// journal. noted holds notes of files, by their names: of such a file Adopt reads no byte until a caller reads a
// message. It reads the other files. The state's problems name what cannot be read.
func (s *State) Adopt(e Adopted, noted map[string]*Notes) {
	s.UpdatedAt = max(s.UpdatedAt, e.CreatedAt)
	if err := s.adopt(e, journal.Commit{At: e.CreatedAt}, noted); err != nil {
		s.Problems = append(s.Problems, Problem{Reason: "adopt the files: " + err.Error()})
	}
	s.trim()
}

// Notes hold what a state keeps of the messages of one foreign file. They are taken while the file is read: a second
// pass over half a gigabyte would take noticeable time. Notes serve one state, and one goroutine.
type Notes struct {
	history History
	kinds   map[string]string
	list    []*Message
}

// NewNotes returns notes for a file that holds the given history.
func NewNotes(h History) *Notes { return &Notes{history: h, kinds: map[string]string{}} }

// Note takes notes of the next message of the file, which is indexed with three levels. It keeps no reference to
// message.
func (n *Notes) Note(message *esjson.Index) {
	m := new(Message)
	m.Facts.Read(n.history == API, message, n.kinds)
	n.list = append(n.list, m)
}

// attachNoted makes the messages of a file from notes. It returns false when the notes are of other elements.
func (s *State) attachNoted(f Original, h History, seq uint64, n *Notes) bool {
	if n == nil || s.source == nil || n.history != h || len(n.list) == 0 || 2*len(n.list) != len(f.Spans) {
		return false
	}
	maps.Copy(s.kinds, n.kinds)
	for i, m := range n.list {
		m.ID, m.History, m.Seq, m.Foreign, m.state = s.NextMessage(), h, seq, true, s
		m.Body = place{Blob: f.Blob, Off: f.Spans[2*i], Len: f.Spans[2*i+1]}
		m.rawAway, m.textAway = true, true
		s.attach(m)
	}
	*n = Notes{history: h}
	return true
}

// Proposed returns the settings without those that only the user may decide: the provider, what is allowed, the
// address that gets a key, and the limits.
func (s Settings) Proposed() Settings { return s.Trusting(Settings{}) }

// Trusting returns the settings with the policy, address and limits of had, which Proposed removes.
func (s Settings) Trusting(had Settings) Settings {
	s.BaseURL, s.Account, s.Limits = had.BaseURL, had.Account, had.Limits
	s.Approve, s.Allow, s.Deny, s.Tools, s.AskTools, s.DenyTools = had.Approve, had.Allow, had.Deny, had.Tools, had.AskTools, had.DenyTools
	return s
}

// Powers describes the settings that Proposed removes, and those that let a task do more than a new one.
func (s Settings) Powers() []string {
	var out []string
	if s.Approve != "" && s.Approve != "ask" {
		out = append(out, "approve "+s.Approve)
	}
	if free := slices.Concat(s.Allow, s.Tools); len(free) > 0 {
		out = append(out, "allowed without asking: "+strings.Join(free, ", "))
	}
	if s.BaseURL != "" {
		out = append(out, "base URL "+s.BaseURL)
	}
	if s.Account != "" {
		out = append(out, "the key of profile "+s.Account)
	}
	return out
}

// Notes describes for the user the settings that a task came with and that do not apply here. There are none when it
// brought no settings, or when the user kept it as it is. now are the settings that apply. A nil Reception has no
// notes.
func (r *Reception) Notes(now Settings) []string {
	if r == nil || r.Kept {
		return nil
	}
	var out []string
	if had := r.Had.Powers(); len(had) > 0 {
		text := "it came with " + strings.Join(had, "; ")
		if slices.Equal(now.Powers(), had) {
			out = append(out, text+"; these were taken over")
		} else {
			out = append(out, text+"; these do not hold here, your own settings do (--trust-settings takes them over)")
		}
	}
	for _, words := range r.Queue {
		line, _, _ := strings.Cut(words, "\n")
		out = append(out, "a message that waited in it is not sent: "+line)
	}
	if n := r.Answers; n > 0 {
		out = append(out, api.Plural(n, "recorded answer")+" to its questions do not count; they are asked again")
	}
	return out
}

// Untrusted reports whether the log before it may hold anything: no user of this place vouches for it.
func (r *Reception) Untrusted() bool { return r != nil && !r.Kept && r.From != FromPerson }

// Open reports whether the task has anything open that Received would end.
func (s *State) Open() bool {
	return len(s.Queue)+len(s.Questions)+len(s.Answered) > 0 || s.Run != nil && s.Run.Outcome == "" || s.Restoring != nil
}

func (s *State) receive(e Received, c journal.Commit) {
	r := Reception{From: e.From, At: c.At, Had: e.Had, Kept: e.Kept, Questions: len(s.Questions), Answers: len(s.Answered)}
	r.Queue = append(r.Queue, api.Each(s.Queue, func(q InputQueued) string { return q.Text })...)
	if run := s.Run; run != nil && run.Outcome == "" {
		r.Run = run.ID
	}
	s.Received, s.Begins, s.Person = &r, c.Seq, e.Person
	for i := range s.Checkpoints {
		s.Checkpoints[i].Store = cmp.Or(e.Stores[s.Checkpoints[i].Store], s.Checkpoints[i].Store)
	}
	if e.Kept {
		return
	}
	s.Settings = e.Settings
	s.endUnfinished(c.At)
	s.OpenItems, s.WaitingUntil, s.Restoring = OpenItems{}, 0, nil
	for _, call := range s.order {
		if call.Finished == nil {
			call.Foreign = true // whether it started, and who allowed it, is not known
		}
	}
	for i := range s.Branches {
		s.Branches[i].Leaf.OpenItems = OpenItems{}
	}
}

// Brings describes what an unproven log would bring along: Powers, and everything that is open.
func (s *State) Brings() []string {
	out := s.Settings.Powers()
	count := func(n int, one, many string) {
		if n > 0 {
			if n > 1 {
				one = many
			}
			out = append(out, fmt.Sprintf("%d %s", n, one))
		}
	}
	count(len(s.Queue), "message in the queue", "messages in the queue")
	count(len(s.Answered), "recorded answer", "recorded answers")
	count(len(s.Questions), "open question", "open questions")
	if s.Run != nil && s.Run.Outcome == "" {
		out = append(out, "an unfinished run")
	}
	return out
}
