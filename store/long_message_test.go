package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/infer"
)

// First words of megabytes are not read for a title, which says how many they are; what else
// tells the title counts first. All other messages are there, and the long one is, too.
func TestFirstWordsOfMegabytes(t *testing.T) {
	if testing.Short() {
		t.Skip("writes megabytes, and has one goroutine")
	}
	words := strings.Repeat("a word or two ", infer.LongMessage/14+1)
	long := uiRow(1, words)
	root := t.TempDir()
	s := open(t, root)
	for id, c := range map[string]struct{ ui, api, title string }{
		"alone":       {array(long, uiRow(2, "later")), "", "later"},
		"only":        {array(long), "", "(a first message of 8 MB)"},
		"to-the-side": {array(long), `[{"role":"user","content":"<task>said</task>","ts":1}]`, "said"},
		"both":        {"", `[{"role":"user","content":"` + words + `","ts":1}]`, "(a first message of 8 MB)"},
	} {
		dir := filepath.Join(root, "tasks", id)
		fixture.NoError(t, os.MkdirAll(dir, 0o700))
		if c.ui != "" {
			write(t, dir, roofmt.UIName, c.ui)
		}
		if c.api != "" {
			write(t, dir, roofmt.APIName, c.api)
		}
		v := fixture.Must[*View](t)(s.Read(context.Background(), fixture.Must[Ref](t)(s.Find(context.Background(), id))))
		if v.Summary.Title != c.title || len(v.Summary.Damaged) > 0 {
			t.Errorf("%s: %.80q, %+v, want %q", id, v.Summary.Title, v.Summary.Damaged, c.title)
		}
		fixture.NoError(t, v.Close())
	}
}
