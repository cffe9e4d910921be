package task_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/foreign"
)

func rows(m foreign.Match) []uint64 {
	out := []uint64{}
	for _, r := range m.Rows {
		out = append(out, r.Message)
	}
	return out
}

func raws(elements ...string) (out [][]byte) {
	for _, e := range elements {
		out = append(out, []byte(e))
	}
	return out
}

// history is a state whose one history has these messages, from number 1.
func history(t *testing.T, h task.History, elements ...string) []*task.Message {
	t.Helper()
	w := tell(t)
	for i, e := range elements {
		w.then(task.MessageAdded{History: h, Message: uint64(i + 1), Body: body(e)})
	}
	if h == task.UI {
		return w.UI()
	}
	return w.API()
}

func TestMatchingForeignLists(t *testing.T) {
	ask := func(ts int, text string) string {
		return fmt.Sprintf(`{"ts":%d,"type":"ask","ask":"tool","text":%q}`, ts, text)
	}
	user := func(ts int, text string) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q}],"ts":%d}`, text, ts)
	}
	uses := func(ts int, ids ...string) string {
		return strings.Replace(assistant(ids...), `"ts":5`, fmt.Sprintf(`"ts":%d`, ts), 1)
	}
	for _, c := range []struct {
		name    string
		history task.History
		ours    []string
		theirs  []string
		rows    []uint64
		changed []int
		added   []int
		lacking string
	}{
		{"two empty lists", task.UI, nil, nil, []uint64{}, nil, nil, ""},
		{"the same", task.UI, []string{say(1, "a"), ask(2, "b")}, []string{say(1, "a"), ask(2, "b")}, []uint64{1, 2}, nil, nil, ""},
		{"the same value in another spelling", task.UI, []string{say(1, "a")},
			[]string{`{ "type":"say", "say":"text", "ts":1.0, "text":"\u0061" }`}, []uint64{1}, nil, nil, ""},
		{"a changed text", task.UI, []string{say(1, "a"), say(2, "b")}, []string{say(1, "a"), say(2, "c")}, []uint64{1, 2}, []int{1}, nil, ""},
		{"a new tail", task.UI, []string{say(1, "a")}, []string{say(1, "a"), say(2, "b")}, []uint64{1, 0}, nil, []int{1}, ""},
		{"a row in between", task.UI, []string{say(1, "a"), say(3, "c")}, []string{say(1, "a"), say(2, "b"), say(3, "c")}, []uint64{1, 0, 2}, nil, []int{1}, ""},
		{"the end is gone", task.UI, []string{say(1, "a"), say(2, "b")}, []string{say(1, "a")}, []uint64{1}, nil, nil, "2"},
		{"the head is gone", task.UI, []string{say(1, "a"), say(2, "b")}, []string{say(2, "b")}, []uint64{2}, nil, nil, "1"},
		{"everything is gone", task.UI, []string{say(1, "a"), say(2, "b")}, nil, []uint64{}, nil, nil, "1 2"},
		{"one time, two kinds", task.UI, []string{say(1, "a"), ask(1, "a")}, []string{ask(1, "a")}, []uint64{2}, nil, nil, "1"},
		{"one time, one kind: in order", task.UI, []string{say(1, "a"), say(1, "b")}, []string{say(1, "a"), say(1, "b"), say(1, "c")}, []uint64{1, 2, 0}, nil, []int{2}, ""},
		{"two rows changed places", task.UI, []string{say(1, "a"), say(2, "b")}, []string{say(2, "b"), say(1, "a")}, []uint64{2, 0}, nil, []int{1}, "1"},
		{"no object", task.UI, []string{`7`}, []string{`7`, `null`}, []uint64{1, 0}, nil, []int{1}, ""},
		{"tool ids decide, not the time", task.API, []string{uses(1, "c1", "c2")}, []string{uses(9, "c1", "c2")}, []uint64{1}, []int{0}, nil, ""},
		{"other tool ids at the same time", task.API, []string{uses(1, "c1")}, []string{uses(1, "c2")}, []uint64{0}, nil, []int{0}, "1"},
		{"results of the same calls", task.API, []string{results("c1")}, []string{`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"other"}],"ts":77}`}, []uint64{1}, []int{0}, nil, ""},
		{"a use is not its result", task.API, []string{assistant("c1")}, []string{results("c1")}, []uint64{0}, nil, []int{0}, "1"},
		{"a turn that was put back at another time", task.API, []string{user(1, "a"), user(2, "b")}, []string{user(1, "a"), user(5, "b")}, []uint64{1, 0}, nil, []int{1}, "2"},
		{"turns of an age without times", task.API, []string{`{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`, `{"role":"user","content":"c"}`},
			[]string{`{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`, `{"role":"user","content":"C"}`}, []uint64{1, 2, 3}, []int{2}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := foreign.Compare(history(t, c.history, c.ours...), c.history, raws(c.theirs...))
			if d := cmp.Diff(c.rows, rows(m)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.changed, m.Changed) + cmp.Diff(c.added, m.Added); d != "" {
				t.Error(d)
			}
			if got := ids(m.Lacking); got != c.lacking {
				t.Errorf("lacking %q, want %q", got, c.lacking)
			}
			if same := len(c.changed)+len(c.added)+len(c.lacking) == 0; m.Same() != same {
				t.Errorf("same %t", m.Same())
			}
		})
	}
}

// What Roo itself takes out when it resumes a task, and nothing else, may be
// lacking in a list that it wrote.
func TestWhatAnotherProgramMayLeaveOut(t *testing.T) {
	request := func(text string) string {
		return fmt.Sprintf(`{"ts":1,"type":"say","say":"api_req_started","text":%q}`, text)
	}
	turn := func(content string) string { return `{"role":"user","content":` + content + `,"ts":1}` }
	block := func(text string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, text) }
	env := block("<environment_details>\nnow\n</environment_details>")
	words := block("<user_message>\ngo on\n</user_message>")
	for _, c := range []struct {
		name    string
		history task.History
		ours    string
		theirs  []string
		want    bool
	}{
		{"the resume question", task.UI, `{"ts":1,"type":"ask","ask":"resume_task"}`, nil, true},
		{"the one after completion", task.UI, `{"ts":1,"type":"ask","ask":"resume_completed_task"}`, nil, true},
		{"another question", task.UI, `{"ts":1,"type":"ask","ask":"followup","text":"which?"}`, nil, false},
		{"reasoning at the end", task.UI, `{"ts":1,"type":"say","say":"reasoning","text":"hm"}`, nil, true},
		{"what was said", task.UI, say(1, "a"), nil, false},
		{"words of the person", task.UI, `{"ts":1,"type":"say","say":"user_feedback","text":"no"}`, nil, false},
		{"a request that never came back", task.UI, request(`{"apiProtocol":"anthropic"}`), nil, true},
		{"a request row without text", task.UI, `{"ts":1,"type":"say","say":"api_req_started"}`, nil, true},
		{"a request that was paid for", task.UI, request(`{"tokensIn":5,"cost":0}`), nil, false},
		{"a request of unknown cost", task.UI, request(`{"cost":null}`), nil, false},
		{"a cancelled request", task.UI, request(`{"cancelReason":"user_cancelled"}`), nil, false},
		{"a request row that Roo cannot read: it resumes nothing", task.UI, request(`{"cost`), nil, false},
		{"a reply", task.API, `{"role":"assistant","content":"b","ts":1}`, []string{`{"role":"assistant","content":"b","ts":1}`}, false},
		{"a turn that is nowhere", task.API, turn(`[` + words + `]`), []string{turn(`[` + block("other") + `]`)}, false},
		{"a turn that was put back with more", task.API, turn(`[` + words + `,` + env + `]`),
			[]string{turn(`[` + words + `,` + block("and this") + `,` + block("<environment_details>\nlater") + `]`)}, true},
		{"half of a turn was put back", task.API, turn(`[` + words + `,` + block("second") + `]`), []string{turn(`[` + words + `]`)}, false},
		{"its halves are in two turns", task.API, turn(`[` + words + `,` + block("second") + `]`), []string{turn(`[` + words + `]`), turn(`[` + block("second") + `]`)}, false},
		{"a turn of nothing but its environment", task.API, turn(`[` + env + `]`), []string{turn(`[` + env + `]`)}, false},
		{"results that were put back", task.API, results("c1"), []string{turn(`[{"type":"tool_result","tool_use_id":"c1","content":"r"},` + words + `]`)}, true},
		{"results that became placeholders", task.API, results("c1"), []string{turn(`[{"type":"tool_result","tool_use_id":"c1","content":"Task was interrupted"}]`)}, false},
		{"a turn of plain text became a block", task.API, turn(`"go \"on\""`), []string{turn(`[` + block(`go "on"`) + `,` + env + `]`)}, true},
		{"a turn of plain text that is also a member's name", task.API, turn(`"text"`), []string{turn(`[` + block("go") + `]`)}, false},
		{"a turn of plain text is nowhere", task.API, turn(`"go on"`), []string{turn(`[` + block("go") + `]`)}, false},
		{"a turn without content", task.API, `{"role":"user","ts":1}`, []string{turn(`[]`)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := history(t, c.history, c.ours)[0]
			if got := foreign.Expendable(m, raws(c.theirs...)); got != c.want {
				t.Errorf("%t, want %t: %s", got, c.want, m.Raw())
			}
		})
	}
}

// "go on" may be said twice. A window that does not know of the second time has
// not carried it over.
func TestTheSameWordsOfAnEarlierTurnCarryNothingOver(t *testing.T) {
	turn := func(ts int, more string) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"go on"}%s],"ts":%d}`, more, ts)
	}
	ours := history(t, task.API, turn(1, ""), assistant("c1"), turn(3, ""))
	for name, c := range map[string]struct {
		theirs []string
		want   bool
	}{
		"a stale window":          {[]string{turn(1, ""), assistant("c1")}, false},
		"Roo put it back":         {[]string{turn(1, ""), assistant("c1"), turn(9, `,{"type":"text","text":"x"}`)}, true},
		"something else was said": {[]string{turn(1, ""), assistant("c1"), `{"role":"user","content":"no","ts":9}`}, false},
	} {
		theirs := raws(c.theirs...)
		m := foreign.Compare(ours, task.API, theirs)
		if len(m.Lacking) != 1 {
			t.Fatalf("%s: lacking %s", name, ids(m.Lacking))
		}
		if got := foreign.Expendable(m.Lacking[0], m.New(theirs)); got != c.want {
			t.Errorf("%s: got %t, want got = %v", name, got, c.want)
		}
	}
}

// Old tasks have no times: all their turns look alike. A long one must be matched
// in one go.
func TestManyAlikeAreMatchedInOneGo(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	alike := func(n int) time.Duration {
		w := tell(t)
		var theirs [][]byte
		var events []task.Event
		for i := range n {
			raw := fmt.Sprintf(`{"role":"user","content":"%d"}`, i)
			events = append(events, apiMessage(uint64(i+1), raw))
			theirs = append(theirs, []byte(raw))
		}
		w.then(events...)
		begin := time.Now()
		if m := foreign.Compare(w.API(), task.API, theirs); !m.Same() {
			t.Fatal("a list is not the same as itself")
		}
		return time.Since(begin)
	}
	// A busy machine can make any single measurement long; only a matching that compares
	// each with each is too long every time.
	var small, big time.Duration
	for range 5 {
		if small, big = alike(3_000), alike(60_000); big <= 100*small || big <= time.Second {
			return
		}
	}
	t.Errorf("3,000 in %s, 60,000 in %s: twenty times the messages took %.0f times as long", small, big, float64(big)/float64(small))
}
