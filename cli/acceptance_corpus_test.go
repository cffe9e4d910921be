package cli

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/tasks"
	"github.com/roost-dev/roost/internal/testing/clitest"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/roofmt"
)

// Every real task is listed as its editor listed it, or as a plain reading of its files
// says; it is shown and exported in every form; and not a byte of it changes.
func TestCorpusAcceptance(t *testing.T) {
	t.Parallel()
	folders := conformance.CorpusFolders(t, roofmt.IsFolder)
	rows := editorRows(t, conformance.Corpus(t))
	compared := 0
	conformance.CorpusTally(t, folders, func(t *testing.T, dir string) {
		base := t.TempDir()
		roost := func(want []int, args ...string) string {
			t.Helper()
			a, out, errs := clitest.New(t, "ROOST_ROOT="+filepath.Join(base, "root"), "ROOST_CACHE="+filepath.Join(base, "cache"), "ROOST_SOURCES="+dir)
			if code := Run(context.Background(), a, args); !slices.Contains(want, code) {
				t.Fatalf("%v: exit code %d: %s", args, code, errs)
			}
			return out.String()
		}
		before := sums(t, dir)
		var list struct{ Items []api.Summary }
		unmarshal(t, []byte(roost([]int{failure.ExitDone}, "list", "--empty", "--json")), &list)
		if len(list.Items) != 1 {
			t.Fatalf("%d tasks in one folder", len(list.Items))
		}
		got := list.Items[0]
		row := editorRowOf(t, rows, dir)
		if row != nil {
			compared++
		}
		asEditorSays(t, got, row, readRows(filepath.Join(dir, roofmt.UIName)))
		if again := roost([]int{failure.ExitDone}, "list", "--empty", "--json"); again != string(encoded(t, list.Items)) {
			t.Errorf("a second list says something else: %s", cmp.Diff(string(encoded(t, list.Items)), again))
		}

		name := got.Source + ":" + got.ID
		roost([]int{failure.ExitDone}, "show", name)
		roost([]int{failure.ExitDone}, "search", "a", "--limit", "3")
		for _, format := range tasks.ExportFormats {
			to := filepath.Join(base, "out."+format)
			roost([]int{failure.ExitDone, failure.ExitDamaged}, "export", name, "--format", format, "-o", to)
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: got %v, want no error", format, err)
			}
		}
		exact(t, dir, filepath.Join(base, "out.roo", got.ID))
		if d := cmp.Diff(before, sums(t, dir)); d != "" {
			t.Errorf("the folder changed: %s", d)
		}
	})
	fmt.Printf("corpus: %d tasks compared with their editor's own rows\n", compared)
}

// encoded is a page as list --json prints it.
func encoded(t *testing.T, items []api.Summary) []byte {
	t.Helper()
	var out strings.Builder
	must(t, (&app.App{Out: &out}).PrintJSON(api.PageOf(items, "")))
	return []byte(out.String())
}

// sums are the sums of a folder's files.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	}))
	return out
}

// exact checks that an exported folder holds whole histories as they were.
func exact(t *testing.T, dir, exported string) {
	t.Helper()
	for _, name := range []string{roofmt.UIName, roofmt.APIName} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !json.Valid(want) {
			continue
		}
		got, err := os.ReadFile(filepath.Join(exported, name))
		var a, b []json.RawMessage
		if json.Unmarshal(want, &a) != nil || len(a) == 0 {
			continue
		}
		if err != nil || json.Unmarshal(got, &b) != nil || len(a) != len(b) {
			t.Errorf("%s: %d elements were exported as %d (%v)", name, len(a), len(b), err)
			continue
		}
		for i := range a {
			if string(a[i]) != string(b[i]) {
				t.Errorf("%s: element %d was exported as another one", name, i)
				break
			}
		}
	}
}

// editorRow is what an editor's own index says of a task.
type editorRow struct {
	ID        string
	Task      string
	TS        int64
	TotalCost float64
	TokensIn  float64
	Status    string
}

// editorRows are all index files of the collection, by the top folder they are in.
func editorRows(t *testing.T, corpus string) map[string][]editorRow {
	t.Helper()
	out := map[string][]editorRow{}
	must(t, filepath.WalkDir(corpus, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var list []editorRow
		switch filepath.Base(path) {
		case "taskHistory.json":
			data, err := os.ReadFile(path)
			must(t, err)
			unmarshal(t, data, &list)
		case roofmt.IndexName:
			data, err := os.ReadFile(path)
			must(t, err)
			var index struct{ Entries []editorRow }
			unmarshal(t, data, &index)
			list = index.Entries
		}
		rel, err := filepath.Rel(corpus, path)
		must(t, err)
		top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		out[top] = append(out[top], list...)
		return nil
	}))
	return out
}

// editorRowOf is the row of a folder: its own item goes before an index.
func editorRowOf(t *testing.T, rows map[string][]editorRow, dir string) *editorRow {
	t.Helper()
	var own editorRow
	if data, err := os.ReadFile(filepath.Join(dir, roofmt.ItemName)); err == nil && json.Unmarshal(data, &own) == nil {
		return &own
	}
	rel, err := filepath.Rel(conformance.Corpus(t), dir)
	must(t, err)
	top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	for _, r := range rows[top] {
		if r.ID == filepath.Base(dir) {
			return &r
		}
	}
	return nil
}

// uiRow is a row of a UI history, read as plainly as can be.
type uiRow struct {
	TS              int64
	Type, Say, Ask  string
	Text            string
	ContextCondense struct{ Cost float64 }
}

func (r uiRow) kind() string { return r.Type + ":" + r.Say + r.Ask }

// readRows is nil when the file is no whole list of rows.
func readRows(path string) []uiRow {
	data, err := os.ReadFile(path)
	var rows []uiRow
	if err != nil || json.Unmarshal(data, &rows) != nil {
		return nil
	}
	return rows
}

// asEditorSays compares a listed task with its editor's row, and with its rows.
func asEditorSays(t *testing.T, got api.Summary, row *editorRow, ui []uiRow) {
	t.Helper()
	last := slices.Clone(ui)
	for len(last) > 0 && strings.HasPrefix(last[len(last)-1].kind(), "ask:resume_") {
		last = last[:len(last)-1]
	}
	var cost float64
	for _, r := range ui {
		var spent struct{ Cost float64 }
		switch r.kind() {
		case "say:api_req_started", "say:deleted_api_reqs", "say:subagent_usage":
			_ = json.Unmarshal([]byte(r.Text), &spent)
		}
		cost += spent.Cost + r.ContextCondense.Cost
	}
	if row != nil && cost == 0 {
		cost = row.TotalCost
	}
	micros := func(usd float64) int64 { return int64(math.Round(usd * 1e6)) }
	if got.Usage.Cost == nil || len(ui) > 0 && math.Abs(float64(int64(*got.Usage.Cost)-micros(cost))) > 1 {
		t.Errorf("cost %v, want %.6f", got.Usage.Cost, cost)
	}
	if row != nil && len(ui) > 0 && math.Abs(float64(int64(*got.Usage.Cost)-micros(row.TotalCost))) > 1 {
		t.Errorf("cost %v, the editor says %.6f", got.Usage.Cost, row.TotalCost)
	}
	switch {
	case len(ui) > 0 && strings.TrimSpace(ui[0].Text) != "":
		if want := strings.TrimSpace(ui[0].Text); got.Title != want {
			t.Errorf("the title has %d bytes, the first row %d", len(got.Title), len(want))
		}
	case got.Messages.UI > 0 && ui == nil: // of a damaged file, what is whole of it
	case row != nil && strings.TrimSpace(row.Task) != "":
		if got.Title != strings.TrimSpace(row.Task) {
			t.Errorf("the title has %d bytes, the editor's %d", len(got.Title), len(row.Task))
		}
	case got.Title == "" && got.Messages.API > 0:
		t.Error("no title")
	}
	if row != nil && len(ui) > 0 && got.Title != strings.TrimSpace(row.Task) {
		t.Errorf("the editor gives it another title")
	}
	if len(last) > 0 && last[len(last)-1].TS > 0 && got.TS != last[len(last)-1].TS {
		t.Errorf("ts %d, want %d", got.TS, last[len(last)-1].TS)
	}
	if len(ui) == 0 && row != nil && got.TS != row.TS && got.Messages.UI == 0 {
		t.Errorf("ts %d, the editor says %d", got.TS, row.TS)
	}
	want := "interrupted"
	switch {
	case len(last) > 0 && last[len(last)-1].kind() == "ask:completion_result":
		want = "completed"
	case row != nil && row.Status == "completed":
		want = "completed"
		for _, r := range slices.Backward(ui) {
			if r.kind() == "say:completion_result" {
				break
			}
			if r.kind() == "say:user_feedback" {
				want = "interrupted"
				break
			}
		}
	case got.Messages.UI+got.Messages.API == 0:
		want = "idle"
	}
	if got.Status != want {
		t.Errorf("status %s, want %s", got.Status, want)
	}
}
