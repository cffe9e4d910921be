package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
)

func TestWindowsOverHTTP(t *testing.T) {
	g := newBench(t)
	all := func(path string) (w api.Window) {
		if err := json.Unmarshal(g.get(path), &w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	whole := all(g.path("/messages"))
	if whole.Task != g.id || whole.History != "ui" || whole.Total != len(whole.Items) || whole.Before != nil || whole.After != nil || len(whole.Notes) != 0 {
		t.Fatalf("got %+v, want whole.Task = g.id and whole.History = \"ui\" and whole.Total = len(whole.Items) and whole.Before = nil and whole.After = nil and len(whole.Notes) = 0",
			whole)
	}
	for _, c := range []struct {
		query string
		from  int
		to    int
	}{{"?limit=2", whole.Total - 2, whole.Total}, {"?before=4&limit=2", 1, 3}, {"?before=%233", 0, 2}, {"?after=0&limit=3", 0, 3}, {"?after=2&before=5", 2, 4}, {"?after=999", whole.Total, whole.Total}, {"?before=1", 0, 0}} {
		w := all(g.path("/messages") + c.query)
		if diff := cmp.Diff(asTexts(whole.Items[c.from:c.to]), asTexts(w.Items)); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", c.query, diff)
		}
		if (w.Before == nil) != (c.from == 0) || (w.After == nil) != (c.to == whole.Total) {
			t.Errorf("%s: before %v, after %v", c.query, w.Before, w.After)
		}
	}
	model := all(g.path("/history"))
	sent := all(g.path("/history?view=effective"))
	if model.History != api.API || model.Total < 4 || sent.Total == 0 || !strings.Contains(string(sent.Items[0]), `"role":"user"`) {
		t.Errorf("got %+v\nand %+v; want the raw and the effective history", model, sent)
	}
}

func asTexts(list []json.RawMessage) []string {
	out := []string{}
	for _, raw := range list {
		out = append(out, string(raw))
	}
	return out
}

// Stored bytes are sent as they are, whatever their spelling.
func TestWindowsKeepSpelling(t *testing.T) {
	item := `{ "a":1.0,"b":"\u00e9\ud800</script>",	"c":[ ]}`
	text := string(windowBytes(api.Window{Items: []json.RawMessage{json.RawMessage(item)}, Numbers: []int{1}, Part: api.Part{Total: 1}}))
	if !strings.Contains(text, `"items":[`+item+`]`) || !json.Valid([]byte(text)) {
		t.Error(text)
	}
	if empty := fmt.Sprint(string(windowBytes(api.Window{}))); !strings.Contains(empty, `"items":[],"numbers":[],"total":0,"next_before":null,"next_after":null,"notes":[]`) {
		t.Error(empty)
	}
}
