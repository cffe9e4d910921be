package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is done to a tree, step by step: a file that is covered and not told of is the
// one that it was. Files are watched again after they were told of, as users do.
func TestNothingThatIsCoveredIsMissed(t *testing.T) {
	places := []string{"a", "d/a", "d/e/a", "d/e/b", "x/a", "x/e/b"}
	folders := []string{"d", "x", "d/e", "x/e", "spare"}
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "watch-*")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			r.Fatal(err)
		}
		at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
		w := newWatcher(&hub{sys: newSystem()}, dir)
		w.limit = len(wayTo(dir)) + rapid.IntRange(1, 6).Draw(r, "folders")
		defer w.Close()
		covered, was := map[string]bool{}, map[string]string{}
		look := func(name string) {
			covered[name] = w.Watch(at(name))
			was[name] = content(at(name))
		}
		for _, name := range places {
			look(name)
		}
		for step := range rapid.IntRange(1, 30).Draw(r, "steps") {
			for range rapid.IntRange(0, 3).Draw(r, "changes") {
				one := rapid.SampledFrom(append(slices.Clone(places), folders...))
				from, to := at(one.Draw(r, "from")), at(one.Draw(r, "to"))
				// What cannot be done is not done: then nothing has changed.
				switch rapid.IntRange(0, 6).Draw(r, "what") {
				case 0, 1:
					_ = os.MkdirAll(filepath.Dir(from), 0o755)
					_ = os.WriteFile(from, []byte(fmt.Sprint(step)), 0o644)
				case 2:
					_ = os.Remove(from)
				case 3:
					_ = os.RemoveAll(from)
				case 4:
					_ = os.Rename(from, to)
				case 5:
					_ = os.Symlink(to, from)
				case 6:
					_ = os.MkdirAll(from, 0o755)
				}
			}
			if rapid.Bool().Draw(r, "watched early") { // before what happened is taken
				name := rapid.SampledFrom(places).Draw(r, "early")
				_ = w.Watch(at(name))
			}
			hints, all := w.Take()
			for _, name := range places {
				told := all || slices.Contains(hints, at(name))
				if now := content(at(name)); covered[name] && !told && now != was[name] {
					r.Fatalf("%s was %q, is %q, and nothing was told", name, was[name], now)
				}
				if told || !covered[name] {
					look(name)
				}
			}
		}
		if len(w.folders) > w.limit {
			r.Fatalf("%d folders are watched, %d were allowed", len(w.folders), w.limit)
		}
	})
}

// content is what a file holds, as far as it is one: links are followed by nobody here.
func content(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return "gone"
	}
	data, _ := os.ReadFile(path)
	if real, err := filepath.EvalSymlinks(path); err != nil || real != path {
		return "behind a link"
	}
	return info.Mode().Type().String() + string(data)
}
