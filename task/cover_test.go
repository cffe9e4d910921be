package task_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// both are the histories as their files hold them.
func both(t testing.TB, s *task.State) string {
	t.Helper()
	ui, err := s.RawUI()
	if err != nil {
		t.Fatal(err)
	}
	api, err := s.RawAPI()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s\n%s", ui, api)
}

// talk adds a row and a message.
func (w *foldedLog) talk(text string) {
	w.then(task.MessageAdded{History: task.UI, Message: w.NextMessage(), Body: task.Body{Raw: fmt.Appendf(nil, `{"ts":1,"type":"say","say":"text","text":%q}`, text)}},
		task.MessageAdded{History: task.API, Message: w.NextMessage() + 1, Body: task.Body{Raw: fmt.Appendf(nil, `{"role":"user","content":%q}`, text)}})
}

// coverAll has a summary or a marker stand for the messages before a place.
func (w *foldedLog) coverAll(kind, id string, at int) {
	sent := w.API()
	n := w.NextMessage()
	added := task.MessageAdded{History: task.API, Message: n, Body: task.Body{Raw: fmt.Appendf(nil, `{"role":"user","content":"sum","isSummary":true,"condenseId":%q}`, id)}}
	if kind == api.ActionTruncate {
		added.Raw = fmt.Appendf(nil, `{"role":"user","content":"cut","isTruncationMarker":true,"truncationId":%q}`, id)
	}
	if at < len(sent) {
		added.Before = sent[at].ID
	}
	row := task.MessageAdded{History: task.UI, Message: n + 1, Body: task.Body{Raw: fmt.Appendf(nil, `{"ts":1,"type":"say","say":"row","text":%q}`, id)}}
	if kind == api.ActionTruncate {
		w.then(added, row, task.HistoryTruncated{Truncation: id, Marker: n, Row: n + 1, Covers: w.RunsOf(sent[:at]), Messages: at})
		return
	}
	w.then(added, row, task.HistoryCondensed{Condense: id, Summary: n, Row: n + 1, Covers: w.RunsOf(sent[:at]), Messages: at})
}

func TestCover(t *testing.T) {
	w := tell(t, task.Created{Task: "t"})
	for _, text := range []string{"a", "b", "c"} {
		w.talk(text)
	}
	before := both(t, w.State)
	w.coverAll(api.ActionCondense, "one", 2)
	after := both(t, w.State)
	want := `{"role":"user","content":"a","condenseParent":"one"} {"role":"user","content":"b","condenseParent":"one"} {"role":"user","content":"sum","isSummary":true,"condenseId":"one"} {"role":"user","content":"c"}`
	if !strings.Contains(after, want) {
		t.Errorf("histories: %s", after)
	}
	w.then(w.Actions.Done[0].Back())
	if d := cmp.Diff(before, both(t, w.State)); d != "" {
		t.Errorf("taken back: %s", d)
	}
	w.then(w.Actions.Undone[0].Again())
	if d := cmp.Diff(after, both(t, w.State)); d != "" {
		t.Errorf("done again: %s", d)
	}
	w.talk("d")
	w.then(w.Actions.Done[0].Back()) // the task went on: what came since stays
	if got := both(t, w.State); strings.Contains(got, "one") || !strings.Contains(got, `"content":"d"`) {
		t.Errorf("taken back later: %s", got)
	}
}

// Events that name nothing that there is change nothing.
func TestCoverOfNothing(t *testing.T) {
	w := tell(t, task.Created{Task: "t"})
	w.talk("a")
	before := both(t, w.State)
	w.then(task.HistoryCondensed{Undoes: 77}, task.HistoryTruncated{Redoes: 78}, task.HistoryTruncated{Run: "old", Truncation: "x", Messages: 3})
	w.then(task.HistoryCondensed{Condense: "lost", Summary: 99, Row: 98, Covers: []task.Run64{{1, 50}}})
	w.then(w.Actions.Done[len(w.Actions.Done)-1].Back())
	w.then(w.Actions.Undone[len(w.Actions.Undone)-1].Again())
	for how, s := range map[string]*task.State{"folded": w.State, "again": w.again(1 << 20), "restored": w.restored(1 << 20)} {
		if d := cmp.Diff(before, both(t, s)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", how, d)
		}
	}
}

// A summary that is hidden covers no message.
func TestAHiddenSummaryCoversNothing(t *testing.T) {
	w := tell(t, task.Created{Task: "t"})
	w.talk("a")
	n := w.NextMessage()
	w.coverAll(api.ActionCondense, "one", 1)
	covered := w.API()[0]
	if got := covered.CoveredBy(); len(got) != 1 || got[0] != n {
		t.Errorf("got the summaries %v, want %d", got, n)
	}
	w.then(hidden("rewind", n))
	if got := covered.CoveredBy(); len(got) != 0 {
		t.Errorf("got the summaries %v after they were hidden, want none", got)
	}
}

// A summary stands for others. One whose numbers reach over itself, as those of a log that
// somebody mended may, is sent all the same.
func TestASummaryNeverCoversItself(t *testing.T) {
	w := tell(t, task.Created{Task: "t"})
	w.talk("a")
	n := w.NextMessage()
	w.then(task.MessageAdded{History: task.API, Message: n, Body: task.Body{Raw: []byte(`{"role":"user","content":"sum","isSummary":true,"condenseId":"one"}`)}},
		task.HistoryCondensed{Condense: "one", Summary: n, Covers: []task.Run64{{1, n + 7}}, Messages: 1})
	for how, s := range map[string]*task.State{"folded": w.State, "again": w.again(1 << 20), "restored": w.restored(0)} {
		got := both(t, s)
		if !strings.Contains(got, `"content":"a","condenseParent":"one"}`) || strings.Count(got, "condenseParent") != 1 {
			t.Errorf("%s: got %s, want strings.Contains(got, `\"content\":\"a\",\"condenseParent\":\"one\"}`) and strings.Count(got, \"condenseParent\") = 1",
				how, got)
		}
	}
}

// Whatever is said, condensed, truncated, taken back and done again: taking back gives
// what was before, to the byte, as long as nothing was said since; and reading the log
// again, or a snapshot, says the same.
func TestCoverProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := tell(t, task.Created{Task: "t"})
		w.talk("first")
		var was, again []string // the histories before each action, and after each that was taken back
		for i := range rapid.IntRange(1, 20).Draw(r, "steps") {
			done, undone := w.Actions.Done, w.Actions.Undone
			switch rapid.IntRange(0, 5).Draw(r, "do") {
			case 0:
				if len(was) > 0 {
					again = append(again, both(t, w.State))
					w.then(done[len(done)-1].Back())
					if d := cmp.Diff(was[len(was)-1], both(t, w.State)); d != "" {
						r.Fatalf("taken back: %s", d)
					}
					was = was[:len(was)-1]
				}
			case 1:
				if len(again) > 0 {
					was = append(was, both(t, w.State))
					w.then(undone[len(undone)-1].Again())
					if d := cmp.Diff(again[len(again)-1], both(t, w.State)); d != "" {
						r.Fatalf("done again: %s", d)
					}
					again = again[:len(again)-1]
				}
			case 2:
				if len(was) == 0 && len(again) == 0 {
					w.talk(fmt.Sprint("word ", i))
				}
			default:
				was, again = append(was, both(t, w.State)), nil
				kind := rapid.SampledFrom([]string{api.ActionCondense, api.ActionTruncate}).Draw(r, "kind")
				w.coverAll(kind, fmt.Sprint(kind, i), rapid.IntRange(0, len(w.API())).Draw(r, "at"))
			}
			now := both(t, w.State)
			for how, s := range map[string]*task.State{"again": w.again(1 << 20), "lean": w.again(0), "restored": w.restored(0)} {
				if d := cmp.Diff(now, both(t, s)); d != "" {
					r.Fatalf("%s: got %s, want d = \"\"", how, d)
				}
				if !slices.Equal(s.Covers, w.Covers) {
					r.Fatalf("%s: %+v, not %+v", how, s.Covers, w.Covers)
				}
			}
		}
	})
}
