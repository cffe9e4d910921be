package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/task"
)

// What would be sent is what the model gets: without what is hidden, mended where a
// provider would refuse it, and each mending names the stored message by its number.
func TestWhatWouldBeSent(t *testing.T) {
	for name, c := range map[string]struct {
		api   string
		want  []string
		notes []string
	}{
		"as it stands": {
			`[{"role":"user","content":"hi","ts":1},{"role":"assistant","content":[{"type":"text","text":"yes"}],"ts":2},{"role":"user","content":"go","ts":3}]`,
			[]string{`{"role":"user","content":`, `{"role":"assistant","content":`, `{"role":"user","content":`}, nil,
		},
		"a call without a result, behind messages that are hidden": {
			`[{"role":"user","content":"old","ts":1,"condenseParent":"c1"},{"role":"user","content":"sum","ts":2,"isSummary":true,"condenseId":"c1"},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"x1","name":"read_file","input":{"path":"a"}}],"ts":3},{"role":"user","content":"go","ts":4}]`,
			[]string{`{"role":"user","content":`, `{"role":"assistant","content":`, `{"role":"user","content":`}, []string{"stored message 4: "},
		},
		"the same mending of several messages": {
			`[{"role":"user","content":"hi","ts":1},{"role":"assistant","content":[{"type":"tool_use","id":"x1","name":"read_file","input":{"path":"a"}}],"ts":2},` +
				`{"role":"user","content":"go","ts":3},{"role":"assistant","content":[{"type":"tool_use","id":"x2","name":"read_file","input":{"path":"b"}}],"ts":4},` +
				`{"role":"user","content":"on","ts":5}]`,
			[]string{`{"role":"user"`, `{"role":"assistant"`, `{"role":"user"`, `{"role":"assistant"`, `{"role":"user"`},
			[]string{"stored message 3: a tool call without result got a placeholder (and 1 more like it)"},
		},
		"nothing to send": {`[]`, nil, []string{"nothing would be sent: "}},
	} {
		v := newToolStore(t, files(`[{"ts":1,"type":"say","say":"text","text":"hi"}]`, c.api)).open("t1")
		got, notes, err := report.Effective(v)
		fixture.NoError(t, err)
		if len(got) != len(c.want) {
			t.Errorf("%s: %d messages: %s", name, len(got), got)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(string(got[i]), c.want[i]) {
				t.Errorf("%s: message %d is %s", name, i+1, got[i])
			}
			if strings.Contains(string(got[i]), `"old"`) || strings.Contains(string(got[i]), `"ts"`) {
				t.Errorf("%s: message %d holds what is not sent: %s", name, i+1, got[i])
			}
		}
		if !slices.EqualFunc(notes, c.notes, strings.HasPrefix) {
			t.Errorf("%s: got the notes %q, want %q", name, notes, c.notes)
		}
	}
}

// A history stands in for the other one only where that is gone: a file that says that
// there is nothing is believed, and so is one that cannot be read now.
func TestWhatStandsInForAHistory(t *testing.T) {
	const (
		ui  = `[{"ts":1,"type":"say","say":"text","text":"do it"},{"ts":2,"type":"say","say":"text","text":"done"}]`
		api = `[{"role":"user","content":[{"type":"text","text":"<task>\ndo it\n</task>"}],"ts":1},{"role":"assistant","content":[{"type":"text","text":"done"}],"ts":2}]`
	)
	for name, c := range map[string]struct {
		ui, api string
		history task.History
		made    int // -1: the history is shown as it is
		why     string
	}{
		"both are there":            {ui, api, task.UI, -1, ""},
		"rows of a missing file":    {"-", api, task.UI, 2, "reconstructed from the model's history, as far as possible: ui_messages.json is missing"},
		"rows of an empty file":     {"", api, task.UI, 2, "reconstructed from the model's history, as far as possible: ui_messages.json is empty"},
		"rows of no array":          {`{"a":1}`, api, task.UI, 2, "reconstructed from the model's history, as far as possible: ui_messages.json is not an array"},
		"rows of a cut file":        {`[{"ts":1,`, api, task.UI, 2, "reconstructed from the model's history, as far as possible: ui_messages.json is damaged"},
		"a row of a cut file":       {`[{"ts":1,"type":"say","say":"text","text":"do it"},{"ts`, api, task.UI, -1, ""},
		"an array of nothing":       {`[]`, api, task.UI, -1, ""},
		"messages of a lost file":   {ui, "-", task.API, 2, "reconstructed from what the user saw, as far as possible: api_conversation_history.json is missing"},
		"messages that are there":   {"-", api, task.API, -1, ""},
		"messages of nothing":       {ui, `[]`, task.API, -1, ""},
		"nothing to make it from":   {"-", `[]`, task.UI, -1, ""},
		"nothing to make them from": {`[]`, "-", task.API, -1, ""},
	} {
		v := newToolStore(t, files(c.ui, c.api)).open("t1")
		made, why, err := report.StandIn(v, c.history)
		fixture.NoError(t, err)
		if c.made < 0 && made != nil || c.made >= 0 && len(made) != c.made || why != c.why {
			t.Errorf("%s: %d made, %q, want %d, %q: %s", name, len(made), why, c.made, c.why, texts(made))
		}
	}
}

// A message whose bytes are gone makes nothing, and the others do all the same.
func TestALostMessageStandsForNothing(t *testing.T) {
	v := newToolStore(t, files("-", `[{"role":"user","content":"do it","ts":1},{"role":"assistant","content":"done","ts":2}]`)).open("t1")
	whole, _, err := report.StandIn(v, task.UI)
	fixture.NoError(t, err)
	v.State.API()[0].Missing = true
	made, why, err := report.StandIn(v, task.UI)
	fixture.NoError(t, err)
	if len(made) == 0 || len(made) >= len(whole) || why == "" || strings.Contains(strings.Join(texts(made), ""), "do it") {
		t.Errorf("%d of %d made, %q: %s", len(made), len(whole), why, texts(made))
	}
}

// A task of our own has its histories in the journal; nothing stands in for them.
func TestNothingStandsInForAJournal(t *testing.T) {
	s := newToolStore(t, nil)
	s.task(task.Created{Task: "own", Number: 1, CreatedAt: s.now}, []task.Event{added(task.UI, 1, `{"ts":1,"type":"say","say":"text","text":"hi"}`)})
	made, why, err := report.StandIn(s.open("own"), task.API)
	if made != nil || why != "" || err != nil {
		t.Errorf("got %s, %q, %v, want made = nil and why = \"\" and no error", texts(made), why, err)
	}
	got, notes, err := report.Effective(s.open("own"))
	if d := cmp.Diff([]string{"nothing would be sent: the model's history holds no message"}, notes); d != "" || got != nil || err != nil {
		t.Errorf("got %s, %v: %s, want d = \"\" and got = nil and no error", got, err, d)
	}
}
