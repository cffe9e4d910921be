//go:build unix

package filetool

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/tool"
)

// Whatever sections are put together: either the files become what doing one after the
// other gives, and are found to be so, or nothing is touched.
func TestAPatchDoesWhatItsSectionsSay(t *testing.T) {
	names := []string{"a", "b", "d/c", "d/n", "n"}
	applied := 0
	rapid.Check(t, func(r *rapid.T) {
		env, root := sandbox(t, "a", "a1\na2\n", "b", "b1\r\nb2\r\n", "d/c", "c1\nc2")
		before := fixture.Files(t, root)
		model, possible := maps.Clone(before), true
		var sections []string
		for range rapid.IntRange(1, 4).Draw(r, "sections") {
			path := rapid.SampledFrom(names).Draw(r, "path")
			old, there := model[path]
			switch kind := rapid.SampledFrom([]string{"add", "delete", "change", "change", "move"}).Draw(r, "kind"); kind {
			case "add":
				sections = append(sections, add+path+"\n+new "+path)
				possible = possible && !there
				model[path] = "new " + path + "\n"
			case "delete":
				sections = append(sections, del+path)
				possible = possible && there
				delete(model, path)
			default:
				first, _, _ := strings.Cut(strings.ReplaceAll(old, "\r", ""), "\n")
				moveTo := ""
				possible = possible && there
				fresh := strings.Replace(old, first, first+"x", 1)
				model[path] = fresh
				if kind == "move" {
					moveTo = rapid.SampledFrom(names).Draw(r, "to")
					if _, taken := model[moveTo]; taken && moveTo != path {
						possible = false
					}
					delete(model, path)
					model[moveTo] = fresh
				}
				lines := []string{"@@", "-" + first, "+" + first + "x"}
				if moveTo != "" {
					lines = append([]string{"*** Move to: " + moveTo}, lines...)
				}
				sections = append(sections, update(path, lines...))
			}
		}
		in := patchCall(sections...)
		p, err := ApplyPatch().Plan(context.Background(), env, in)
		if !possible || maps.Equal(before, model) {
			if err == nil {
				r.Fatalf("it was planned: %s", in)
			}
			if d := cmp.Diff(before, fixture.Files(t, root)); d != "" {
				r.Fatal(d)
			}
			return
		}
		if err != nil {
			r.Fatalf("%s: got %v, want no error", in, err)
		}
		applied++
		inspect := func(want tool.Finding) {
			if got, err := ApplyPatch().(tool.Inspector).Inspect(context.Background(), env, in, p.Ask().Before); got != want || err != nil {
				r.Fatalf("found %s, %v, want %s", got, err, want)
			}
		}
		inspect(tool.NotDone)
		res, err := p.Run(context.Background(), nil)
		if err != nil || res.IsError {
			r.Fatalf("got %v %+v, want no error and not res.IsError", err, res)
		}
		inspect(tool.Done)
		if d := cmp.Diff(model, fixture.Files(t, root)); d != "" {
			r.Fatalf("got %s\n%s, want d = \"\"", d, in)
		}
		// The files that are told of are those that changed.
		told := map[string]bool{}
		for _, f := range res.Files {
			told[f.Path] = true
		}
		for _, name := range names {
			if changed := before[name] != model[name]; changed != told[name] {
				r.Fatalf("%s changed: %t, told: %t", name, changed, told[name])
			}
		}
		if again, err := p.Run(context.Background(), nil); err != nil || !again.IsError {
			r.Fatalf("a plan ran twice: %v %+v", err, again)
		}
		noneLeft(t, root)
	})
	if applied == 0 {
		t.Error("no patch was possible")
	}
}

// Of many patches that were planned for the same files one is applied, and whole.
func TestOfManyPatchesForOneStateOneIsApplied(t *testing.T) {
	env, root := sandbox(t, "a", "1\n", "b", "1\n")
	var plans []tool.Plan
	for i := range 6 {
		sections := []string{update("a", "-1", fmt.Sprint("+writer ", i)), update("b", "-1", fmt.Sprint("+writer ", i)), add + fmt.Sprint("n", i) + "\n+x"}
		if i%2 == 1 {
			slices.Reverse(sections)
		}
		plans = append(plans, plan(t, env, ApplyPatch(), patchCall(sections...)))
	}
	results := make([]tool.Result, len(plans))
	var wg sync.WaitGroup
	for i, p := range plans {
		wg.Go(func() {
			var err error
			if results[i], err = p.Run(context.Background(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	won := -1
	for i, r := range results {
		if r.IsError && !strings.Contains(r.Text, "nothing was written") {
			t.Error(r.Text)
		}
		if !r.IsError && won >= 0 {
			t.Errorf("%d and %d were applied", won, i)
		}
		if !r.IsError {
			won = i
		}
	}
	text := fmt.Sprintf("writer %d\n", won)
	if d := cmp.Diff(map[string]string{"a": text, "b": text, fmt.Sprint("n", won): "x\n"}, fixture.Files(t, root)); d != "" {
		t.Error(d)
	}
}

// A file of which little is read first, one that is too large for that, and one that
// may not be read: each is searched as far as it can be.
func TestSearchingFilesOfAllSizes(t *testing.T) {
	env, root := sandbox(t, "small", "x\nneedle\n", "none", "x\n", "empty", "", "binary", "needle\x00")
	fixture.WriteFile(t, filepath.Join(root, "large"), strings.Repeat("y\n", 2<<20+10)+"needle at the end")
	fixture.WriteFile(t, filepath.Join(root, "locked"), "needle\n")
	if err := os.Chmod(filepath.Join(root, "locked"), 0); err != nil {
		t.Fatal(err)
	}
	locked := os.Geteuid() != 0
	for _, pattern := range []string{"needle", "(?i)NEEDLE", "n.{2}dle"} {
		_, res := run(t, env, SearchFiles(), call("path", ".", "regex", pattern))
		for name, want := range map[string]bool{"# small": true, "# large": true, "needle at the end": true, "# none": false, "# empty": false, "# binary": false, "# locked": !locked} {
			if strings.Contains(res.Text, name) != want {
				t.Errorf("%s: %q is there: %t\n%s", pattern, name, !want, res.Text)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := SearchFiles().Plan(ctx, env, call("path", ".", "regex", "needle")); err == nil {
		t.Error("a search went on after it was cancelled")
	}
}
