package cli

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/clitest"
	"github.com/roost-dev/roost/roofmt"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// many is a storage of so many tasks. Of each three, one is not in the index of the
// storage, one has no item of its own, and one has neither.
func many(t *testing.T, storage string, n int) (titles map[string]string) {
	t.Helper()
	titles = map[string]string{}
	var entries []json.RawMessage
	for i := range n {
		id, ts := fmt.Sprint(1776200000000+int64(i)*1000), 1776200000000+int64(i)*1000
		titles[id] = fmt.Sprintf("task %d of many", i)
		dir := filepath.Join(storage, "tasks", id)
		must(t, os.MkdirAll(dir, 0o700))
		item := fmt.Sprintf(`{"id":%q,"number":1,"ts":%d,"task":%q,"tokensIn":%d,"tokensOut":1,"totalCost":0.25,"workspace":"/w/%d"}`, id, ts+500, titles[id], 100+i, i%7)
		files := map[string]string{
			roofmt.UIName:  fmt.Sprintf(`[{"ts":%d,"type":"say","say":"text","text":%q},{"ts":%d,"type":"say","say":"api_req_started","text":"{\"tokensIn\":%d,\"tokensOut\":1,\"cost\":0.25}"}]`, ts, titles[id], ts+500, 100+i),
			roofmt.APIName: fmt.Sprintf(`[{"role":"user","content":[{"type":"text","text":%q}],"ts":%d}]`, titles[id], ts),
		}
		switch i % 3 {
		case 0:
			files[roofmt.ItemName] = item
		case 1:
			entries = append(entries, json.RawMessage(item))
		}
		for name, text := range files {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	index, err := json.Marshal(map[string]any{"version": 1, "updatedAt": 1776200000000, "entries": entries})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(storage, "tasks", roofmt.IndexName), index, 0o600))
	must(t, filepath.WalkDir(storage, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, yesterday, yesterday)
	}))
	return titles
}

// A thousand folders whose indexes know only some of them are a thousand tasks: cold,
// warm, with a catalogue that was deleted or damaged, and while their storage cannot be
// reached.
func TestAThousandFolders(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	t.Parallel()
	base := t.TempDir()
	storage := filepath.Join(base, "store")
	titles := many(t, storage, 1000)
	cache := filepath.Join(base, "cache")
	roost := func(args ...string) string {
		t.Helper()
		a, out, errs := clitest.New(t, "ROOST_ROOT="+filepath.Join(base, "root"), "ROOST_CACHE="+cache, "ROOST_SOURCES="+storage)
		if code := Run(context.Background(), a, args); code != failure.ExitDone {
			t.Fatalf("%v: exit code %d: %s", args, code, errs)
		}
		return out.String()
	}
	tasks := func() []api.Summary {
		t.Helper()
		var list struct{ Items []api.Summary }
		unmarshal(t, []byte(roost("list", "--json")), &list)
		return list.Items
	}
	before := sizes(t, storage)
	list := tasks()
	if len(list) != 1000 {
		t.Fatalf("%d tasks", len(list))
	}
	for i, sum := range list {
		n := 999 - i // newest first
		if sum.Title != titles[sum.ID] || sum.ID != fmt.Sprint(1776200000000+int64(n)*1000) {
			t.Fatalf("%d: %s is called %q", n, sum.ID, sum.Title)
		}
		if sum.TS != 1776200000500+int64(n)*1000 || sum.Usage.Cost == nil || sum.Usage.Cost.String() != "0.25" || sum.Usage.TokensIn != int64(100+n) {
			t.Fatalf("%d: ts %d, %+v", n, sum.TS, sum.Usage)
		}
		if n%3 == 2 != slices.Contains(sum.Inferred, "title") || len(sum.Damaged) > 0 {
			t.Fatalf("%d: inferred %v, damaged %v", n, sum.Inferred, sum.Damaged)
		}
	}

	asks := [][]string{{"list", "--json"}, {"list"}, {"list", "--json", "--limit", "50"}, {"list", "--json", "--query", "task 77"}, {"list", "--sort", "tokens", "--limit", "9"}, {"search", "many", "--limit", "20", "--json"}}
	answers := func() (out []string) {
		for _, ask := range asks {
			out = append(out, roost(ask...))
		}
		return out
	}
	first := answers()
	catalogues := func() (out []string) {
		must(t, filepath.WalkDir(cache, func(path string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				out = append(out, path)
			}
			return err
		}))
		return out
	}
	for name, change := range map[string]func(){
		"as it is": func() {},
		"deleted":  func() { must(t, os.RemoveAll(cache)) },
		"damaged": func() {
			for _, path := range catalogues() {
				data, err := os.ReadFile(path)
				must(t, err)
				for i := range data {
					if i%97 == 0 {
						data[i] ^= 0x5a
					}
				}
				must(t, os.WriteFile(path, data, 0o600))
			}
		},
		"empty": func() {
			for _, path := range catalogues() {
				must(t, os.Truncate(path, 0))
			}
		},
	} {
		change()
		for i, got := range answers() {
			if got != first[i] {
				t.Errorf("with a catalogue that is %s, %v says something else: %s", name, asks[i], cmp.Diff(first[i], got))
			}
		}
	}
	if d := cmp.Diff(before, sizes(t, storage)); d != "" {
		t.Errorf("looking changed the storage: %s", d)
	}

	// All of them go into one archive, also where their ids are too long for a request to a server.
	for name, args := range map[string][]string{"all": {"--all"}, "named": slices.Collect(maps.Keys(titles))} {
		file := filepath.Join(base, name+".zip")
		roost(append([]string{"export", "-o", file}, args...)...)
		held, err := zip.OpenReader(file)
		must(t, err)
		got := len(slices.DeleteFunc(held.File, func(f *zip.File) bool { return !strings.HasSuffix(f.Name, roofmt.UIName) }))
		if must(t, held.Close()); got != 1000 {
			t.Errorf("%s: got an archive of %d tasks, want all", name, got)
		}
	}

	// The storage goes away, as a disk that is not mounted does.
	must(t, os.Rename(storage, storage+".gone"))
	for _, sum := range tasks() {
		said := slices.ContainsFunc(sum.Damaged, func(d api.Damage) bool { return strings.Contains(d.Problem, "cannot be reached") })
		if sum.Title != titles[sum.ID] || !said {
			t.Fatalf("%s is called %q; %+v", sum.ID, sum.Title, sum.Damaged)
		}
		delete(titles, sum.ID)
	}
	if len(titles) > 0 {
		t.Errorf("%d tasks are gone", len(titles))
	}
	must(t, os.Rename(storage+".gone", storage))
	if got := roost("list", "--json"); got != first[0] {
		t.Errorf("after it came back: %s", cmp.Diff(first[0], got))
	}
}

// A task that came, changed or went shows in the next list.
func TestChangesShowInTheNextList(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	storage := filepath.Join(base, "store")
	many(t, storage, 30)
	a, out, errs := clitest.New(t, "ROOST_ROOT="+filepath.Join(base, "root"), "ROOST_CACHE="+filepath.Join(base, "cache"), "ROOST_SOURCES="+storage)
	list := func() map[string]api.Summary {
		t.Helper()
		out.Reset()
		if code := Run(context.Background(), a, []string{"list", "--json"}); code != failure.ExitDone {
			t.Fatal(errs)
		}
		var got struct{ Items []api.Summary }
		unmarshal(t, bytes.TrimSpace(out.Bytes()), &got)
		all := map[string]api.Summary{}
		for _, sum := range got.Items {
			all[sum.ID] = sum
		}
		return all
	}
	list()
	one, two, three := "1776200002000", "1776200005000", "1776200008000" // all without an index
	dir := func(id string) string { return filepath.Join(storage, "tasks", id) }
	must(t, os.RemoveAll(dir(one)))
	data, err := os.ReadFile(filepath.Join(dir(two), roofmt.UIName))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir(two), roofmt.UIName), append(bytes.TrimSuffix(data, []byte("]")), `,{"ts":1776200099000,"type":"ask","ask":"completion_result","text":""}]`...), 0o600))
	// In place, of the same size: the folder's own time does not change.
	data, err = os.ReadFile(filepath.Join(dir(three), roofmt.UIName))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir(three), roofmt.UIName), bytes.Replace(data, []byte("task 8 of many"), []byte("task 8 of MANY"), 1), 0o600))
	must(t, os.CopyFS(dir("1776200100000"), os.DirFS(dir(two))))
	got := list()
	if _, ok := got[one]; ok || len(got) != 30 {
		t.Errorf("%d tasks", len(got))
	}
	if got[two].Status != "completed" || got[two].TS != 1776200099000 || got["1776200100000"].Status != "completed" {
		t.Errorf(`got %+v, want got[two].Status = "completed" and got[two].TS = 1776200099000 and got["1776200100000"].Status = "completed"`,
			got[two])
	}
	if got[three].Title != "task 8 of MANY" {
		t.Errorf("got %+v, want got[three].Title = \"task 8 of MANY\"", got[three].Title)
	}
}
