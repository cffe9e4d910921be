package server

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/roost-dev/roost/api"
)

// What would be sent stands beside what it comes from: each message of the request once and in order, each stored message
// once, and each row of the conversation once.
func TestAlignment(t *testing.T) {
	g := newWorkingBench(t)
	check := func(what string) (states []string) {
		t.Helper()
		var got api.Alignment
		g.did(200, &got, "GET", g.path("/alignment?limit=1000"), "")
		var sent, raw, rows struct {
			Total int               `json:"total"`
			Items []json.RawMessage `json:"items"`
		}
		g.did(200, &sent, "GET", g.path("/history?view=effective"), "")
		g.did(200, &raw, "GET", g.path("/history"), "")
		g.did(200, &rows, "GET", g.path("/messages"), "")
		var numbers, stored []int
		last := 0
		for _, m := range got.Items {
			states = append(states, m.State)
			if m.Sent > 0 {
				numbers = append(numbers, m.Sent)
			}
			stored = append(stored, m.Stored...)
			if m.From > 0 {
				if m.From != last+1 || m.To < m.From {
					t.Errorf("%s: the rows %d to %d come behind row %d", what, m.From, m.To, last)
				}
				last = m.To
			}
		}
		slices.Sort(stored)
		for name, list := range map[string][]int{"sent": numbers, "stored": stored} {
			want := map[string]int{"sent": sent.Total, "stored": raw.Total}[name]
			for i, n := range list {
				if n != i+1 {
					t.Fatalf("%s: the %s messages are %v, want each once", what, name, list)
				}
			}
			if len(list) != want {
				t.Errorf("%s: got %d %s messages, want %d", what, len(list), name, want)
			}
		}
		if last != rows.Total {
			t.Errorf("%s: got %d rows, want %d", what, last, rows.Total)
		}
		return states
	}
	before := check("a task that ran")
	if before[0] != "sent" {
		t.Errorf("got the states %v, want the first message sent as it is", before)
	}
	g.did(200, nil, "POST", g.path("/condense"), `{"provider":"script","model":"`+g.model("- text: The fence is red.")+`"}`)
	states := check("a condensed task")
	if !slices.Contains(states, "condensed") || !slices.Contains(states, "summary") {
		t.Errorf("got the states %v, want messages that a summary stands for, and the summary", states)
	}
	var page api.Alignment
	g.did(200, &page, "GET", g.path("/alignment?after=1&limit=1"), "")
	if len(page.Items) != 1 || page.Items[0].Number != 2 || page.Before == nil || page.Total != len(states) {
		t.Errorf("got %+v, want the second item alone", page)
	}
}
