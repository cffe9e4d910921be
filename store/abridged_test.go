package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
)

// A message that is left out would be lost from files that are written anew: its task goes on as
// one of ours, and its folder stays as it is.
func TestATaskOfWhichMessagesAreLeftOutIsNotContinuedInPlace(t *testing.T) {
	slow(t)
	ctx := context.Background()
	dir := t.TempDir()
	folder := filepath.Join(dir, "storage", "tasks", "11111111-1111-4111-8111-111111111111")
	fixture.NoError(t, os.MkdirAll(folder, 0o700))
	overlong := `{"ts":2,"type":"say","say":"text","text":"` + strings.Repeat("x", 65<<20) + `"}`
	texts := map[string]string{
		roofmt.UIName:  `[{"ts":1,"type":"say","say":"text","text":"do it"},` + overlong + `]`,
		roofmt.APIName: `[{"role":"user","content":[{"type":"text","text":"do it"}],"ts":1}]`,
	}
	for name, text := range texts {
		fixture.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	s := fixture.Must[*Store](t)(Open(Options{Root: filepath.Join(dir, "root"), Sources: []string{filepath.Join(dir, "storage")}}))
	ref := fixture.Must[Ref](t)(s.Find(ctx, filepath.Base(folder)))
	for try := range 2 {
		owned := fixture.Must[*Owned](t)(s.Own(ctx, ref))
		if owned.Forked == "" || owned.Again != (try == 1) || len(owned.Task.State().UI()) != 1 {
			t.Errorf("try %d: forked %q, again %v, %d messages", try, owned.Forked, owned.Again, len(owned.Task.State().UI()))
		}
		fixture.NoError(t, owned.Task.Close(ctx))
	}
	entries := fixture.Must[[]os.DirEntry](t)(os.ReadDir(folder))
	for name, text := range texts {
		if got := fixture.Must[[]byte](t)(os.ReadFile(filepath.Join(folder, name))); string(got) != text {
			t.Errorf("%s was written", name)
		}
	}
	if len(entries) != len(texts) {
		t.Errorf("%d files in the folder", len(entries))
	}
}
