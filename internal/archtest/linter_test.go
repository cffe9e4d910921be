package archtest

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// depguard is the part of the linter's settings that repeats the layers: for each
// rule the packages it is about, and those that it says stand above them.
func depguard(t *testing.T) (rules map[string][2][]string) {
	t.Helper()
	text, err := os.ReadFile("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(text), "    depguard:\n")
	if !ok {
		t.Fatal("the linter has no import rules")
	}
	list, _, _ = strings.Cut(list, "\n  exclusions:")
	rule := regexp.MustCompile(`(?m)^        (\w+):\n          files: \[(.*)\]\n`)
	about := regexp.MustCompile(`"\*\*/([\w/]+)/\*\*"`)
	above := regexp.MustCompile(`\{pkg: github\.com/roost-dev/roost/([\w/]+), desc: (\w+) stands above\}`)
	rules = map[string][2][]string{}
	at := rule.FindAllStringSubmatchIndex(list, -1)
	for i, m := range at {
		end := len(list)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		var files, denied []string
		for _, f := range about.FindAllStringSubmatch(list[m[4]:m[5]], -1) {
			files = append(files, f[1])
		}
		for _, d := range above.FindAllStringSubmatch(list[m[1]:end], -1) {
			if d[1] != d[2] {
				t.Errorf("%s: the words for %s speak of %s", list[m[2]:m[3]], d[1], d[2])
			}
			denied = append(denied, d[1])
		}
		rules[list[m[2]:m[3]]] = [2][]string{files, denied}
	}
	return rules
}

// The linter shows editors what this package decides. It may know less (it cannot
// tell workspace/terminal from workspace), but it must not know anything else.
func TestLinterRepeatsTheLayers(t *testing.T) {
	covered := map[string]bool{}
	for name, r := range depguard(t) {
		files, denied := r[0], r[1]
		if len(files) == 0 {
			t.Errorf("%s is about no package", name)
		}
		for _, from := range files {
			_, layer, ok := owner(from)
			if !ok {
				t.Errorf("%s: %s stands in no layer", name, from)
			}
			covered[from] = true
			for _, to := range denied {
				if judge(from, to, false) == "" {
					t.Errorf("%s: the linter keeps %s out of %s, the layers do not", name, to, from)
				}
			}
			if len(denied) == 0 || name == "providers" {
				continue
			}
			for _, row := range layers[:layer] {
				for _, to := range row {
					if _, err := os.Stat(path.Join("../..", to)); err != nil || !isPart(to) || name == "ground" && to == "workspace" {
						continue
					}
					if !slices.Contains(denied, to) {
						t.Errorf("%s: %s stands above %s, and the linter does not say so", name, to, from)
					}
				}
			}
		}
	}
	var missing []string
	for _, row := range layers[2:] { // nothing stands above the first two
		for _, name := range row {
			if _, err := os.Stat(path.Join("../..", name)); err == nil && !covered[name] && name != "workspace/terminal" {
				missing = append(missing, name)
			}
		}
	}
	if diff := cmp.Diff([]string(nil), missing); diff != "" {
		t.Errorf("packages that no rule of the linter is about: %s", diff)
	}
}

// isPart leaves out programs, tests and measurements, which nobody imports.
func isPart(name string) bool {
	return !strings.HasPrefix(name, "cmd/") && !strings.HasPrefix(name, "internal/") && name != "bench"
}

// TestJudge is the rule by example: who may import whom.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		from, to string
		test     bool
		want     string // part of the reason, "" when it may
	}{
		{"cli", "engine", false, ""},
		{"cmd/roost", "cli", false, ""},
		{"store", "task", false, ""},
		{"task", "store", false, "store stands above task"},
		{"task", "store", true, "store stands above task"},
		{"cli", "cmd/roost", false, "cmd/roost stands above cli"},
		{"task", "journal", false, ""},
		{"journal", "task", false, "neighbours"},
		{"journal", "task", true, ""},
		{"journal/filelog", "journal", false, ""},
		{"journal", "journal/filelog", false, ""},
		{"llm/anthropic", "llm/wire", false, ""},
		{"workspace", "workspace/terminal", false, ""},
		{"workspace/terminal", "workspace", false, ""}, // a parent; the file itself says what it needs
		{"redact", "workspace/terminal", false, ""},
		{"redact", "workspace", false, "workspace stands above redact"},
		{"esjson", "internal/conformance", true, ""},
		{"esjson", "internal/conformance", false, "neighbours"},
		{"internal/conformance", "esjson", false, ""},
		{"agent", "store", false, "interface of its own"},
		{"agent", "store", true, ""},
		{"agent", "journal/filelog", false, "interface of its own"},
		{"agent", "journal", false, ""},
		{"llm/script", "task", false, "not tasks or disks"},
		{"tool/filetool", "usage", false, "no history"},
		{"tool/filetool", "workspace", false, ""},
		{"workspace/shell", "task", false, "how tasks are kept"},
		{"checkpoint", "checkpoint/object", false, ""},
		{"checkpoint", "store", false, "not where tasks are kept"},
		{"checkpoint/object", "workspace", false, "objects only"},
		{"checkpoint/object", "internal/failpoint", false, ""},
		{"agent", "checkpoint", false, "interface of its own"},
		{"engine", "a/stranger", false, ""}, // reported once, as a package without a place
		{"a/stranger", "engine", false, ""},
		{"taskforce", "task", false, ""}, // only a path's own parts count
	} {
		got := judge(c.from, c.to, c.test)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s (test %v): %q, want %q", c.from, c.to, c.test, got, c.want)
		}
	}
}
