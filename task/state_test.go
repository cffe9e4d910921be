package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/foreign"
)

func commit(seq uint64, raws ...json.RawMessage) journal.Commit {
	c := journal.Commit{Seq: seq, Epoch: 1, At: 1000 + int64(seq)}
	for _, r := range raws {
		c.Events = append(c.Events, journal.Event(r))
	}
	return c
}

func encode(t interface{ Fatal(...any) }, seq uint64, events ...task.Event) journal.Commit {
	var raws []json.RawMessage
	for _, e := range events {
		raw, err := task.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		raws = append(raws, raw)
	}
	return commit(seq, raws...)
}

// folded is the state of a list of commits, one event list each.
func folded(t *testing.T, blobs task.Blobs, steps ...[]task.Event) *task.State {
	t.Helper()
	s := task.New(blobs)
	for i, step := range steps {
		if err := s.Apply(encode(t, uint64(i+1), step...)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// dump is all that a state says, in one canonical text.
func dump(s *task.State) string {
	var b strings.Builder
	list := func(name string, messages []*task.Message) {
		for _, m := range messages {
			fmt.Fprintf(&b, "%s %d %s hidden=%q missing=%t foreign=%t ts=%d kind=%s %s\n", name, m.ID, m.History, m.Hidden, m.Missing, m.Foreign, m.TS(), m.Kind(), m.Raw())
		}
	}
	list("ui", s.UI())
	list("api", s.API())
	for id := uint64(1); id < s.NextMessage(); id++ {
		list("all", []*task.Message{s.Message(id)})
	}
	for _, c := range s.Calls() {
		brief := *c
		if brief.Finished != nil {
			done := *brief.Finished
			done.Result = nil // with or without its bytes in memory
			brief.Finished = &done
		}
		j, _ := json.Marshal(brief)
		result, err := c.Result()
		fmt.Fprintf(&b, "call %s %s current=%t %s -> %s %v\n", c.Outcome(), j, s.Call(c.ID) == c, c.Input(), result, err)
	}
	var open []string
	for _, c := range s.OpenCalls() {
		open = append(open, c.ID)
	}
	shown := *s
	shown.Branches = slices.Clone(s.Branches)
	for i := range shown.Branches {
		leaf := &shown.Branches[i].Leaf
		leaf.Ends = slices.Clone(leaf.Ends)
		for k := range leaf.Ends {
			if done := leaf.Ends[k].Finished; done != nil {
				brief := *done
				brief.Result = nil
				leaf.Ends[k].Finished = &brief
			}
		}
	}
	j, _ := json.Marshal(struct {
		S           any
		Open        any
		TS          int64
		Checkpoints any
		Restoring   any
	}{&shown, open, s.LastTS(), s.Checkpoints, s.Restoring})
	b.WriteString(strings.ReplaceAll(string(j), ":[]", ":null")) // a snapshot does not tell the two apart
	return b.String()
}

func checkValid(t interface{ Fatalf(string, ...any) }, s *task.State) {
	for h, list := range map[task.History][]*task.Message{task.UI: s.UI(), task.API: s.API()} {
		seen := map[uint64]bool{}
		for _, m := range list {
			if m.Hidden != "" || m.History != h || seen[m.ID] || s.Message(m.ID) != m {
				t.Fatalf("%s history holds message %d of %s, hidden %q, twice %t", h, m.ID, m.History, m.Hidden, seen[m.ID])
			}
			seen[m.ID] = true
			if !esjson.Valid(m.Raw()) {
				t.Fatalf("message %d is not JSON: %s", m.ID, m.Raw())
			}
		}
	}
	for _, c := range s.Calls() {
		switch c.Outcome() {
		case task.OutcomeFinished, task.OutcomeNotStarted, task.OutcomeUnknown:
		default:
			t.Fatalf("call %s has outcome %q", c.ID, c.Outcome())
		}
	}
	for _, c := range s.OpenCalls() {
		if c.Answered || s.Call(c.ID) != c {
			t.Fatalf("call %s is not open", c.ID)
		}
	}
}

type blobMap map[string]string

func (b blobMap) Range(hash string, off, n int64) ([]byte, error) {
	data, ok := b[hash]
	if !ok {
		return nil, errors.New("blob is missing")
	}
	if n < 0 {
		n = int64(len(data)) - off
	}
	if off < 0 || n < 0 || off+n > int64(len(data)) {
		return nil, errors.New("outside")
	}
	return []byte(data[off : off+n]), nil
}

func body(raw string) task.Body { return task.Body{Raw: []byte(raw)} }
func ui(id uint64, raw string) task.Event {
	return task.MessageAdded{History: task.UI, Message: id, Body: body(raw)}
}
func apiMessage(id uint64, raw string) task.Event {
	return task.MessageAdded{History: task.API, Message: id, Body: body(raw)}
}

func assistant(calls ...string) string {
	var blocks []string
	for _, c := range calls {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"n","input":{"k":%q}}`, c, c))
	}
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `],"ts":5}`
}

func results(calls ...string) string {
	var blocks []string
	for _, c := range calls {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"r"}`, c))
	}
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + `],"ts":6}`
}

var calls = []string{"c1", "c2", "c3"}

// anyEvent draws an event that may or may not fit the state.
func anyEvent(t *rapid.T, next *uint64) task.Event {
	id := rapid.Uint64Range(0, *next+1).Draw(t, "id")
	call := rapid.SampledFrom(calls).Draw(t, "call")
	raw := rapid.SampledFrom([]string{
		assistant(call), assistant("c1", "c2"), results(call), results("c1", "c2"), `{"role":"user","content":"x","ts":3}`,
		`{"ts":7,"type":"say","say":"text","text":"hi"}`, `{"ts":8,"type":"ask","ask":"tool","text":"","partial":true}`, `7`, `null`,
	}).Draw(t, "raw")
	h := rapid.SampledFrom([]task.History{task.UI, task.API}).Draw(t, "history")
	switch rapid.IntRange(0, 34).Draw(t, "kind") {
	case 0, 1, 2, 3:
		*next++
		return task.MessageAdded{History: h, Message: *next, Body: body(raw)}
	case 4:
		return task.MessageAdded{History: h, Message: id, Body: task.Body{Compose: []task.Piece{{Literal: `{"t":`}, {TextOf: id}, {Literal: "}"}}}}
	case 5:
		return task.MessageChanged{Message: id, Body: body(raw)}
	case 6:
		return task.MessageTextSaved{Message: id, Text: "more"}
	case 7:
		return task.MessageHidden{Messages: []uint64{id, id + 1}, Reason: rapid.SampledFrom([]string{"rewind", ""}).Draw(t, "why")}
	case 8:
		return task.ToolStarted{Call: call, Name: "n", Message: id}
	case 9:
		return task.ToolFinished{Call: call, Name: "n", Outcome: "ok", Result: []byte(`{"type":"tool_result"}`)}
	case 10:
		return task.ForeignImported{History: h, Blob: "b", Rows: []task.ForeignRow{{Message: id}, {Message: id + 1}, {Off: 0, Len: 2}}}
	case 11:
		return task.UsageChanged{Input: 1, Output: 2}
	case 12:
		return api.QuestionOpened{Question: call}
	case 13:
		return api.QuestionClosed{Question: call}
	case 14:
		return task.FileChanged{Path: call, Source: rapid.SampledFrom([]string{"read_tool", "roo_edited", "user_edited"}).Draw(t, "src")}
	case 15:
		return task.RunStarted{Run: call}
	case 16:
		return task.TurnFailed{Run: call}
	case 17:
		return task.MessageChanged{Message: id, Body: task.Body{Compose: []task.Piece{
			{Literal: `{"role":"user","content":[`}, {Result: call}, {Literal: `],"was":[`}, {TextOf: id}, {Literal: ","}, {TextOf: id}, {Literal: "]}"},
		}}}
	case 18:
		*next++
		return task.MessageAdded{History: h, Message: *next, Body: task.Body{Compose: []task.Piece{{Literal: `{"x":`}, {Result: call}, {Literal: `}`}}}}
	}
	if e := anyOtherEvent(t, h, call, id); e != nil {
		return e
	}
	return task.MessageAdded{History: h, Message: *next + 1, Body: task.Body{Blob: rapid.SampledFrom([]string{"b", "gone"}).Draw(t, "blob")}}
}

// anyOtherEvent draws one of the types that anyEvent leaves out, nil now and then.
func anyOtherEvent(t *rapid.T, h task.History, call string, id uint64) task.Event {
	other := rapid.SampledFrom(calls).Draw(t, "other")
	blob := rapid.SampledFrom([]string{"b", "gone"}).Draw(t, "blob")
	switch rapid.IntRange(0, 22).Draw(t, "other kind") {
	case 0:
		return task.Created{Task: call, Title: other, Number: int(id)}
	case 1:
		return task.Adopted{Task: call, Item: []byte(`{"number":4}`), Files: []task.Original{{Name: "f", Blob: blob, History: h, Spans: []int64{0, 2, 2, rapid.SampledFrom([]int64{0, 2, 9}).Draw(t, "length")}}}}
	case 2:
		return task.ForeignRefused{Name: call, Reason: other}
	case 3:
		return task.Changed{Title: &call}
	case 4:
		return task.RunWaiting{Run: call, Question: other}
	case 5:
		return task.RunEnded{Run: call, Outcome: "failed"}
	case 6:
		return task.TurnStarted{Turn: int(id)}
	case 7:
		return task.TurnEnded{Run: call}
	case 8:
		return task.ToolProcess{Call: call, PGID: int(id)}
	case 9:
		return task.InputQueued{Input: call}
	case 10:
		return task.InputTaken{Input: call}
	case 11:
		return task.SubtaskStarted{Child: call, Call: other}
	case 12:
		return task.SubtaskEnded{Child: call, Result: other}
	case 13:
		return task.EpochOpened{}
	case 14:
		return api.QuestionOpened{Question: call, Call: other, Text: "t"}
	case 15:
		return api.QuestionClosed{Question: call, By: "terminal"}
	case 16:
		return task.ToolFinished{Call: call, Name: "n", Blob: blob}
	case 17, 18, 19, 20, 21:
		return anyCheckpointEvent(t, call, id)
	}
	return nil
}

func TestPrefixThenRestIsAll(t *testing.T) {
	blobs := blobMap{"b": "{}{}"}
	rapid.Check(t, func(t *rapid.T) {
		log := anyLog(t)
		all := task.New(blobs)
		var spent task.UsageTotals
		for _, c := range log {
			_ = all.Apply(c)
			checkValid(t, all)
			if all.Usage.Input < spent.Input || all.Usage.Requests < spent.Requests {
				t.Fatalf("the usage totals fell: %+v after %+v", all.Usage, spent)
			}
			spent = all.Usage
		}
		cut := rapid.IntRange(0, len(log)).Draw(t, "cut")
		two := task.New(blobs)
		for _, c := range log[:cut] {
			_ = two.Apply(c)
		}
		before := dump(two)
		if again := dump(two); again != before {
			t.Fatalf("reading changed the state: %s", cmp.Diff(before, again))
		}
		for _, c := range log[cut:] {
			_ = two.Apply(c)
		}
		if d := cmp.Diff(dump(all), dump(two)); d != "" {
			t.Fatal(d)
		}
	})
}

func TestComposedMessages(t *testing.T) {
	s := folded(t, nil,
		[]task.Event{ui(1, `{"ts":1,"type":"say","say":"text","text":"","partial":true}`)},
		[]task.Event{task.MessageTextSaved{Message: 1, Text: "he\"l"}},
		[]task.Event{task.MessageTextSaved{Message: 1, Text: "lo\u2028"}},
	)
	if got := s.UI()[0].Text(); got != "he\"llo\u2028" {
		t.Fatalf("streamed so far %q", got)
	}
	for i, step := range [][]task.Event{
		{task.MessageChanged{Message: 1, Body: task.Body{Compose: []task.Piece{{Literal: `{"text":`}, {TextOf: 1}, {Literal: `}`}}}}},
		{apiMessage(2, assistant("c1")), task.ToolFinished{Call: "c1", Result: []byte(`{"type":"tool_result","tool_use_id":"c1","x":"\ud800"}`)}},
		{task.MessageAdded{History: task.API, Message: 3, Body: task.Body{Compose: []task.Piece{{Literal: `{"role":"user","content":[`}, {Result: "c1"}, {Literal: `]}`}}}}},
	} {
		if err := s.Apply(encode(t, uint64(i+4), step...)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := string(s.UI()[0].Raw()), "{\"text\":\"he\\\"llo\u2028\"}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := string(s.API()[1].Raw()), `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","x":"\ud800"}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if len(s.OpenCalls()) != 0 || !s.Call("c1").Answered {
		t.Error("the call is still open")
	}
	if err := s.Apply(encode(t, 9, task.MessageAdded{History: task.API, Message: 4, Body: task.Body{Compose: []task.Piece{{Result: "nobody"}}}})); err == nil {
		t.Error("a result that does not exist was composed")
	}
}

func TestHiddenRepliesDoNotCount(t *testing.T) {
	s := folded(t, nil,
		[]task.Event{apiMessage(1, `{"role":"user","content":"x"}`), apiMessage(2, assistant("c1"))},
		[]task.Event{task.ToolStarted{Call: "c1", Name: "n"}, task.ToolFinished{Call: "c1", Name: "n", Result: []byte(`{}`)}},
		[]task.Event{apiMessage(3, results("c1")), task.TurnFailed{}},
	)
	if s.Replies != 1 || s.Failures != 1 {
		t.Fatalf("replies %d, failures %d", s.Replies, s.Failures)
	}
	if err := s.Apply(encode(t, 4, task.MessageHidden{Messages: []uint64{2, 3}, Reason: "rewind"})); err != nil {
		t.Fatal(err)
	}
	if s.Replies != 0 || s.Failures != 0 || len(s.API()) != 1 || s.Message(2).Hidden != "rewind" {
		t.Fatalf("replies %d, failures %d, api %d", s.Replies, s.Failures, len(s.API()))
	}
	// A script plays its turn again, with the same ids: it is a new call.
	if err := s.Apply(encode(t, 5, apiMessage(4, assistant("c1")))); err != nil {
		t.Fatal(err)
	}
	open := s.OpenCalls()
	if len(open) != 1 || open[0].Outcome() != task.OutcomeNotStarted {
		t.Fatalf("open calls %+v", open)
	}
}

func TestLostCommitsKeepNumbers(t *testing.T) {
	s := folded(t, nil, []task.Event{ui(1, `{"ts":1}`)})
	s.Lost(journal.Damage{Seq: 2, Reason: "bad checksum"})
	if err := s.Apply(encode(t, 3, ui(4, `{"ts":4}`))); err != nil {
		t.Fatal(err)
	}
	if len(s.UI()) != 2 || !s.Message(2).Missing || s.Message(2).Hidden != "lost" || s.NextMessage() != 5 || len(s.Problems) != 1 {
		t.Fatalf("ui %d, message 2 %+v", len(s.UI()), s.Message(2))
	}
	if err := s.Apply(encode(t, 4, ui(1<<60, `{}`))); err == nil {
		t.Error("a number far away was believed")
	}
	if err := s.Apply(encode(t, 3, ui(5, `{}`))); err == nil {
		t.Error("an older commit was folded again")
	}
}

func TestMissingBlobsAreMarked(t *testing.T) {
	s := task.New(blobMap{"have": `{"ts":9}`})
	err := s.Apply(encode(t, 1,
		task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Blob: "gone"}},
		task.MessageAdded{History: task.UI, Message: 2, Body: task.Body{Blob: "have"}}))
	if err == nil || len(s.UI()) != 2 || !s.UI()[0].Missing || s.UI()[1].Missing || s.UI()[1].TS() != 9 || len(s.Problems) != 1 {
		t.Fatalf("got %v, %s, want an error and len(s.UI()) = 2 and s.UI()[0].Missing and not s.UI()[1].Missing and s.UI()[1].TS() = 9 and len(s.Problems) = 1",
			err, dump(s))
	}
}

func TestForeignHistoryReplacesOurs(t *testing.T) {
	foreign := `[{"ts":2,"new":1},{"ts":3}]`
	s := folded(t, blobMap{"f": foreign},
		[]task.Event{ui(1, `{"ts":1}`), ui(2, `{"ts":2}`), apiMessage(3, assistant("c1"))},
		[]task.Event{task.ForeignImported{History: task.UI, Blob: "f", Rows: []task.ForeignRow{
			{Message: 2, Off: 1, Len: 16}, {Off: 18, Len: 8}, {Message: 3}, {Message: 2},
		}}},
	)
	if len(s.UI()) != 4 || string(s.UI()[0].Raw()) != `{"ts":2,"new":1}` || !s.UI()[1].Foreign || s.Message(1).Hidden != "foreign" {
		t.Fatal(dump(s))
	}
	checkValid(t, s) // rows that name a message of the other history, or one twice, are new
}

func TestFileRecordsAsRoosTracker(t *testing.T) {
	change := func(path, source string) []task.Event {
		return []task.Event{task.FileChanged{Path: path, Source: source}}
	}
	s := folded(t, nil, change("a", "read_tool"), change("b", "file_mentioned"), change("a", "roo_edited"), change("a", "user_edited"))
	want := `{"files_in_context":[` +
		`{"path":"a","record_state":"stale","record_source":"read_tool","roo_read_date":1001,"roo_edit_date":null,"user_edit_date":null},` +
		`{"path":"b","record_state":"active","record_source":"file_mentioned","roo_read_date":1002,"roo_edit_date":null,"user_edit_date":null},` +
		`{"path":"a","record_state":"stale","record_source":"roo_edited","roo_read_date":1003,"roo_edit_date":1003,"user_edit_date":null},` +
		`{"path":"a","record_state":"active","record_source":"user_edited","roo_read_date":1003,"roo_edit_date":1003,"user_edit_date":1004}]}`
	if d := cmp.Diff(want, string(task.MetadataJSON(s.Files))); d != "" {
		t.Fatal(d)
	}
}

func TestMatchForeignFindsEveryMessageAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "n")
		s := task.New(nil)
		var elements [][]byte
		keep, changed, lacking := []uint64{}, 0, 0
		for i := range n {
			ts := rapid.SampledFrom([]string{`"ts":1,`, `"ts":2,`, ``}).Draw(t, "ts")
			raw := `{` + ts + `"type":"say","say":"text","text":"` + fmt.Sprint(i) + `"}`
			if err := s.Apply(encode(t, uint64(i+1), ui(uint64(i+1), raw))); err != nil {
				t.Fatal(err)
			}
			elements = append(elements, []byte(raw))
			keep = append(keep, uint64(i+1))
		}
		m := foreign.Compare(s.UI(), task.UI, elements)
		if !m.Same() {
			t.Fatalf("our own list is not the same: %+v", m)
		}
		if n > 0 { // a changed row is a change in its place, a new tail is added
			at := rapid.IntRange(0, n-1).Draw(t, "at")
			elements[at] = esjson.Set(elements[at], "text", []byte(`"other"`))
			changed = 1
			elements = append(elements, []byte(`{"ts":99,"type":"say","say":"text"}`))
			keep = append(keep, 0)
		}
		m = foreign.Compare(s.UI(), task.UI, elements)
		var got []uint64
		for _, r := range m.Rows {
			got = append(got, r.Message)
		}
		if d := cmp.Diff(keep, append([]uint64{}, got...)); d != "" || len(m.Changed) != changed || len(m.Lacking) != lacking {
			t.Fatalf("got %s %+v, want d = \"\" and len(m.Changed) = changed and len(m.Lacking) = lacking", d, m)
		}
	})
}

// longTask folds a task of n messages, and as many saved pieces of text in one of them, and
// hides most of it again.
func longTask(t testing.TB, n int) {
	s := task.New(nil)
	seq, id := uint64(0), uint64(0)
	var ids []uint64
	apply := func(events ...task.Event) {
		seq++
		if err := s.Apply(encode(t, seq, events...)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n / 4 {
		c := fmt.Sprint("c", i)
		apply(ui(id+1, `{"ts":1,"type":"say","say":"text","text":""}`), apiMessage(id+2, assistant(c)))
		apply(task.MessageTextSaved{Message: id + 1, Text: "some text"}, task.FileChanged{Path: "same", Source: "read_tool"})
		apply(task.MessageChanged{Message: id + 2, Body: body(assistant(c))})
		apply(ui(id+3, `{"ts":2}`), apiMessage(id+4, results(c)))
		_ = s.OpenCalls()
		id += 4
		ids = append(ids, id, id-1, id-2)
	}
	for range n {
		apply(task.MessageTextSaved{Message: 1, Text: "more"})
	}
	apply(task.MessageHidden{Messages: ids, Reason: "rewind"})
}

// A long task costs each message what a short one does. What is counted is memory, which is
// the same on a busy machine: a fold that copies what is there for each commit takes fifty
// times as much and more. Time is for the benchmark below.
func TestLongTasksFoldLinearly(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and seconds under the race detector")
	}
	took := func(n int) (bytes, objects uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		longTask(t, n)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
	}
	took(40) // what is made once
	bytes, objects := took(2_000)
	manyBytes, manyObjects := took(20_000)
	t.Logf("2,000 messages: %d bytes in %d objects; 20,000: %d in %d", bytes, objects, manyBytes, manyObjects)
	if manyBytes > 14*bytes || manyObjects > 12*objects {
		t.Error("ten times the messages take far more than ten times the memory")
	}
}

func BenchmarkFold(b *testing.B) {
	for _, n := range []int{2_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				longTask(b, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/message")
		})
	}
}
