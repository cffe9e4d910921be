package roofmt_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/roofmt"
)

func history(t *testing.T, roo, cline string) (tasks string) {
	t.Helper()
	storage := t.TempDir()
	tasks = filepath.Join(storage, "tasks")
	mkdirs(t, tasks, filepath.Join(storage, "state"))
	if roo != "" {
		write(t, tasks, map[string]string{roofmt.IndexName: roo})
	}
	if cline != "" {
		write(t, storage, map[string]string{filepath.FromSlash(roofmt.ClineHistory): cline})
	}
	return tasks
}

func TestRows(t *testing.T) {
	for name, c := range map[string]struct {
		roo, cline string
		want       map[string]string // id: task
		broken     bool
	}{
		"nothing there":            {want: map[string]string{"a": ""}},
		"Roo's index":              {roo: `{"version":1,"entries":[{"id":"a","task":"mow"},{"id":"b","task":"dig"}]}`, want: map[string]string{"a": "mow", "b": "dig", "c": ""}},
		"Cline's list":             {cline: `[{"id":"a","task":"mow","ts":5}]`, want: map[string]string{"a": "mow"}},
		"both":                     {roo: `{"entries":[{"id":"a","task":"roo"}]}`, cline: `[{"id":"a","task":"cline"},{"id":"b","task":"only"}]`, want: map[string]string{"a": "roo", "b": "only"}},
		"one id twice":             {cline: `[{"id":"a","task":"first"},{"id":"a","task":"second"}]`, want: map[string]string{"a": "first"}},
		"what is no row":           {cline: `[1,null,{"task":"no id"},{"id":7,"task":"odd id"},{"id":"a","task":"mow"}]`, want: map[string]string{"a": "mow"}},
		"cut":                      {cline: `[{"id":"a","task":"mow"},{"id":"b","ta`, want: map[string]string{"a": "mow", "b": ""}, broken: true},
		"Roo's cut":                {roo: `{"version":1,"updatedAt":5,"entries":[{"id":"a","task":"mow"},{"id`, want: map[string]string{"a": "mow"}, broken: true},
		"no bytes":                 {roo: "\x00\x00", cline: `[{"id":"a","task":"mow"}]`, want: map[string]string{"a": "mow"}, broken: true},
		"an object without a list": {roo: `{"version":1}`, cline: `[{"id":"a","task":"mow"}]`, want: map[string]string{"a": "mow"}, broken: true},
		"no list at all":           {cline: `"text"`, want: map[string]string{"a": ""}, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			tasks := history(t, c.roo, c.cline)
			rows, err := roofmt.ReadRows(tasks)
			if (err != nil) != c.broken || err != nil && !errors.Is(err, roofmt.ErrIndex) {
				t.Errorf("error %v", err)
			}
			for id, want := range c.want {
				row := string(rows.Row(id))
				if got := strings.Contains(row, `"task":"`+want+`"`); got != (want != "") || want == "" && row != "" {
					t.Errorf("%s: %s, want the task %q", id, row, want)
				}
			}
			if rows.Prints != roofmt.RowPrints(tasks) {
				t.Error("equal files have other prints when they are not read")
			}
		})
	}
}

func TestRowsOfChangedFiles(t *testing.T) {
	tasks := history(t, "", `[{"id":"a","task":"mow"}]`)
	before := roofmt.RowPrints(tasks)
	write(t, filepath.Dir(tasks), map[string]string{filepath.FromSlash(roofmt.ClineHistory): `[{"id":"a","task":"mow the lawn"}]`})
	if roofmt.RowPrints(tasks) == before {
		t.Error("a change does not show")
	}
}

// What stands under an index's name may be anything.
func TestRowsOfNoFile(t *testing.T) {
	tasks := history(t, "", "")
	if err := os.Mkdir(filepath.Join(tasks, roofmt.IndexName), 0o700); err != nil {
		t.Fatal(err)
	}
	rows, err := roofmt.ReadRows(tasks)
	if err == nil || rows.Len() != 0 {
		t.Errorf("%d rows of a folder (%v)", rows.Len(), err)
	}
}

func FuzzRows(f *testing.F) {
	for _, seed := range []string{`[]`, `[{"id":"a"}]`, `{"entries":[{"id":"a"}]}`, `{"entries":[{"id":"a"},{"id`, "\x00", `{"entries":{}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) == 0 {
			return
		}
		rows, err := roofmt.ReadRows(history(t, text, `[{"id":"of-cline"}]`))
		if rows.Row("of-cline") == nil {
			t.Fatalf("a damaged index hides the other one (%v)", err)
		}
	})
}
