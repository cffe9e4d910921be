package crashtest_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/crashtest"
)

// A kill while a history is condensed leaves it as it was or condensed, never between,
// and it can be condensed again, and gone on with.
func TestKilledWhileItCondenses(t *testing.T) {
	for _, fail := range []string{"condense.asked", "condense.committed", "journal.written", "journal.synced:2", "project.temp", "project.renamed"} {
		for _, provider := range []string{"script", "anthropic"} {
			t.Run(fail+"/"+provider, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				var turns []crashtest.Turn
				for i := range 4 {
					turns = append(turns, crashtest.Turn{Text: fmt.Sprintf("Step %d.", i), Calls: []crashtest.Call{{Name: "list_files", Input: map[string]any{"path": ".", "recursive": false}}}})
				}
				turns = append(turns, crashtest.Turn{Text: "The end of it.", Calls: crashtest.Complete("done").Calls}, crashtest.Turn{Text: "More.", Calls: crashtest.Complete("done again").Calls})
				b := newBench(t, provider, turns)
				if c := start(ctx, t, b, "", append(append([]string{"run"}, b.Model...), "--yes", "-C", b.Workspace, "the words")...); c.Code != 0 {
					t.Fatalf("the run: %d: %s", c.Code, c.Errors)
				}
				ids, err := b.Tasks()
				if err != nil || len(ids) != 1 {
					t.Fatalf("tasks %v, %v", ids, err)
				}
				before := look(ctx, t, b, ids[0])
				killed := start(ctx, t, b, fail, "condense", ids[0])
				if !killed.Killed {
					t.Fatalf("it ended by itself: %d: %s", killed.Code, killed.Errors)
				}
				doctor(ctx, t, b)
				cut := look(ctx, t, b, ids[0])
				if err := crashtest.CheckPrefix(before, cut); err != nil {
					t.Error(err)
				}
				switch n := summaries(cut); {
				case n == 0:
					same(t, before, cut)
				case n > 1 || len(cut.API) != len(before.API)+1 || tagged(cut) == 0 || len(cut.Events("history.condensed")) != 1:
					t.Errorf("%d summaries, %d messages of %d, %d covered", n, len(cut.API), len(before.API), tagged(cut))
				}
				if summaries(cut) == 0 {
					if c := start(ctx, t, b, "", "condense", ids[0]); c.Code != 0 {
						t.Fatalf("condensing again: %d: %s", c.Code, c.Errors)
					}
				}
				if c := start(ctx, t, b, "", "resume", ids[0], "and now rest"); c.Code != 0 {
					t.Fatalf("resume: %d: %s", c.Code, c.Errors)
				}
				after := look(ctx, t, b, ids[0])
				for _, err := range []error{crashtest.CheckPrefix(cut, after), crashtest.CheckHistories(after), after.CheckFiles()} {
					if err != nil {
						t.Error(err)
					}
				}
				var raws [][]byte
				for _, raw := range after.API {
					raws = append(raws, raw)
				}
				sent := fmt.Sprintf("%s", contextwindow.Effective(raws))
				if summaries(after) != 1 || strings.Contains(sent, "Step 0.") || !strings.Contains(sent, "and now rest") || !strings.Contains(sent, "Conversation Summary") {
					t.Errorf("%d summaries; sent: %.500s", summaries(after), sent)
				}
				doctor(ctx, t, b)
			})
		}
	}
}

func summaries(l crashtest.Look) (n int) {
	for _, raw := range l.API {
		if is, _ := esjson.Get(raw, "isSummary"); string(is) == "true" {
			n++
		}
	}
	return n
}

func tagged(l crashtest.Look) (n int) {
	for _, raw := range l.API {
		if _, is := esjson.Get(raw, "condenseParent"); is {
			n++
		}
	}
	return n
}

// same fails the test when the histories are not the same bytes.
func same(t *testing.T, a, b crashtest.Look) {
	t.Helper()
	if len(a.API) != len(b.API) || len(a.UI) != len(b.UI) {
		t.Errorf("%d and %d messages became %d and %d", len(a.UI), len(a.API), len(b.UI), len(b.API))
		return
	}
	for i := range a.API {
		if !bytes.Equal(a.API[i], b.API[i]) {
			t.Errorf("message %d changed: %s", i, b.API[i])
		}
	}
}
