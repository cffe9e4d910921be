package job_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/crashtest/job"
)

// The job is what it says: 60 turns, three subtasks, each named by one call.
func TestWhole(t *testing.T) {
	j := job.Whole()
	if n := len(j.Plans["main"]); n != 60 {
		t.Errorf("the main plan has %d turns", n)
	}
	delegated := map[string]int{}
	faults := map[job.Fault]int{}
	for name, steps := range j.Plans {
		for i, s := range steps {
			for _, c := range s.Calls {
				if c.Tool == "new_task" {
					words := c.Input["message"].(string)
					for plan := range j.Plans {
						if strings.Contains(words, job.Words(plan)) {
							delegated[plan]++
						}
					}
				}
				if last := i == len(steps)-1; last != (c.Tool == "attempt_completion") {
					t.Errorf("%s, step %d: %s", name, i+1, c.Tool)
				}
			}
			for _, f := range s.Faults {
				faults[f]++
			}
		}
	}
	if d := cmp.Diff(map[string]int{"left": 1, "right": 1, "leaf": 1}, delegated); d != "" {
		t.Error(d)
	}
	for _, f := range []job.Fault{job.RateLimited, job.Quota, job.Overloaded, job.Cut, job.Broken, job.Silent} {
		if faults[f] == 0 {
			t.Errorf("no step meets %q", f)
		}
	}
}

// commands are the command lines of some calls, ready for a shell.
func commands(calls []job.Call) (lines []string) {
	for _, c := range calls {
		if c.Tool == "execute_command" {
			lines = append(lines, strings.ReplaceAll(c.Input["command"].(string), "$ID", "id"))
		}
	}
	return lines
}

// ground is a prepared workspace.
func ground(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "workspace")
	if err := job.Prepare(dir); err != nil {
		t.Fatal(err)
	}
	// What the command of a later step shows.
	for _, n := range []string{"0", "1", "2"} {
		path := filepath.Join(dir, "notes", "part-"+n+".md")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("part\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func shell(t *testing.T, dir, line string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: got %v: %s, want no error", line, err, out)
	}
	return string(out)
}

func tree(t *testing.T, dir string) string {
	t.Helper()
	text, err := job.Tree(dir)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var sleeps = regexp.MustCompile(`(setsid )?sleep [0-9.]+( >/dev/null 2>&1 &)?;? ?`)

// Wherever a command is cut, its mending leaves what the whole command would have left,
// and mending once more changes nothing.
func TestMendingMakesTheSameBytes(t *testing.T) {
	mended := 0
	for name, steps := range job.Whole().Plans {
		for i, s := range steps {
			lines, mends := commands(s.Calls), commands(s.Mend)
			if len(lines) == 0 {
				continue
			}
			if len(lines) != 1 || len(mends) != 1 {
				t.Errorf("%s, step %d: %d commands, %d in the mending", name, i+1, len(lines), len(mends))
				continue
			}
			line := sleeps.ReplaceAllString(lines[0], "")
			whole := ground(t)
			if out := shell(t, whole, line); !strings.Contains(out, s.Calls[0].Want) {
				t.Errorf("%s, step %d: %q", name, i+1, out)
			}
			want := tree(t, whole)
			parts := strings.Split(strings.TrimSuffix(line, "; "), "; ")
			for n := range len(parts) + 1 {
				dir := ground(t)
				shell(t, dir, strings.Join(append([]string{":"}, parts[:n]...), "; "))
				for range 2 {
					shell(t, dir, mends[0])
				}
				if d := cmp.Diff(want, tree(t, dir)); d != "" {
					t.Errorf("%s, step %d, cut after %q: -whole +mended\n%s", name, i+1, parts[:n], d)
				}
				mended++
			}
		}
	}
	if mended < 40 {
		t.Errorf("%d commands were cut", mended)
	}
}

// The same for the patch: whichever of its files are changed, what is left of it is done
// by the mending.
func TestMendingThePatch(t *testing.T) {
	var step job.Step
	for _, s := range job.Whole().Plans["main"] {
		if s.Calls[0].Tool == "apply_patch" {
			step = s
		}
	}
	changes := []string{
		`sed -i 's/^three$/THREE/' data/list.txt`,
		`printf '# New\n\nby a patch\n' > docs/new.md`,
		`cp -p docs/name.md docs/renamed.md && sed -i 's/goes/came/' docs/renamed.md`,
		`rm docs/old.md`,
		`rm docs/name.md`,
	}
	whole := ground(t)
	shell(t, whole, strings.Join(changes, " && "))
	want := tree(t, whole)
	for n := range len(changes) + 1 {
		dir := ground(t)
		shell(t, dir, strings.Join(slices.Concat([]string{":"}, changes[:n]), " && "))
		for range 2 {
			for _, c := range step.Mend {
				if c.Tool == "write_to_file" {
					shell(t, dir, fmt.Sprintf("printf '%s' > %s", c.Input["content"], c.Input["path"]))
				}
			}
			shell(t, dir, commands(step.Mend)[0])
		}
		if d := cmp.Diff(want, tree(t, dir)); d != "" {
			t.Errorf("%d changes were made: -whole +mended\n%s", n, d)
		}
	}
}
