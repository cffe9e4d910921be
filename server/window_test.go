package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Paging by what a window says reaches every message once, in either direction,
// whatever the limit is and however large the messages are.
func TestWindowsMeet(t *testing.T) {
	large := json.RawMessage(strings.Repeat("x", windowBytes/2+1))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "messages")
		broken := rapid.IntRange(0, 50).Draw(t, "broken")
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		huge := rapid.SampledFrom([]int{0, 3, 5}).Draw(t, "huge")
		read := func(i int) (json.RawMessage, error) {
			if i == broken {
				return nil, errors.New("gone")
			}
			if huge > 0 && i%huge == 0 {
				return large, nil
			}
			return json.RawMessage("1"), nil
		}
		var want []int
		for i := 1; i <= n; i++ {
			if i != broken+1 {
				want = append(want, i)
			}
		}
		var got []int
		at := span{limit: limit}
		for range n + 2 { // from the end
			var w window
			w.fill(at, n, read)
			got = append(slices.Clone(w.Numbers), got...)
			if w.Before == nil {
				break
			}
			at.before = *w.Before
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("backward:\n%s", diff)
		}
		got, at = nil, span{limit: limit, after: 1}
		for range n + 2 { // from the start
			var w window
			w.fill(at, n, read)
			got = append(got, w.Numbers...)
			if w.After == nil {
				break
			}
			at.after = *w.After + 1
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("forward:\n%s", diff)
		}
	})
}

func TestWindowsOverHTTP(t *testing.T) {
	g := newGround(t)
	all := func(path string) (w window) {
		if err := json.Unmarshal(g.get(path), &w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	whole := all(g.path("/messages"))
	if whole.Task != g.id || whole.History != "ui" || whole.Total != len(whole.Items) || whole.Before != nil || whole.After != nil || len(whole.Notes) != 0 {
		t.Fatalf("%+v", whole)
	}
	for _, c := range []struct {
		query string
		from  int
		to    int
	}{{"?limit=2", whole.Total - 2, whole.Total}, {"?before=4&limit=2", 1, 3}, {"?before=%233", 0, 2}, {"?after=0&limit=3", 0, 3}, {"?after=2&before=5", 2, 4}, {"?after=999", whole.Total, whole.Total}, {"?before=1", 0, 0}} {
		w := all(g.path("/messages") + c.query)
		if diff := cmp.Diff(asTexts(whole.Items[c.from:c.to]), asTexts(w.Items)); diff != "" {
			t.Errorf("%s:\n%s", c.query, diff)
		}
		if (w.Before == nil) != (c.from == 0) || (w.After == nil) != (c.to == whole.Total) {
			t.Errorf("%s: before %v, after %v", c.query, w.Before, w.After)
		}
	}
	api := all(g.path("/history"))
	sent := all(g.path("/history?view=effective"))
	if api.History != "api" || api.Total < 4 || sent.Total == 0 || !strings.Contains(string(sent.Items[0]), `"role":"user"`) {
		t.Errorf("%+v\n%+v", api, sent)
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
	text := string(window{Items: []json.RawMessage{json.RawMessage(item)}, Numbers: []int{1}, Total: 1}.bytes())
	if !strings.Contains(text, `"items":[`+item+`]`) || !json.Valid([]byte(text)) {
		t.Error(text)
	}
	if empty := fmt.Sprint(string(window{}.bytes())); !strings.Contains(empty, `"items":[],"numbers":[],"total":0,"next_before":null,"next_after":null,"notes":[]`) {
		t.Error(empty)
	}
}
