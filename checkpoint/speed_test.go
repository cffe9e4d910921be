package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestSpeed prints what surveys of many files cost. It asserts nothing: ROOST_SPEED is the
// number of files.
func TestSpeed(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("ROOST_SPEED"))
	if n == 0 {
		t.Skip("ROOST_SPEED is not set")
	}
	for _, git := range []string{"none", ""} {
		l := newBench(t, Options{Git: git})
		for i := range n {
			l.write(fmt.Sprintf("d%02d/e%02d/file%03d.go", i/50/20, i/50%20, i%50), fmt.Sprintf("package p%d\n\nfunc f() int { return %d }\n", i, i))
		}
		if git == "" {
			gitIn(t, l.root, "init", "-q")
			gitIn(t, l.root, "add", ".")
			gitIn(t, l.root, "commit", "-qm", "all")
		}
		name := map[string]string{"": "git", "none": "no git"}[git]
		timed := func(what string, do func()) {
			start := time.Now()
			do()
			t.Logf("%s: %s: %v", name, what, time.Since(start).Round(100*time.Microsecond))
		}
		var s *Survey
		timed("cold survey", func() { s = l.survey() })
		timed("changes of nothing", func() { l.changes(s) })
		time.Sleep(3 * time.Second) // until the times of the files are believed
		timed("survey of files that were new a moment ago", func() { s = l.survey() })
		timed("changes of nothing", func() { l.changes(s) })
		for range 3 {
			timed("warm survey", func() { s = l.survey() })
			timed("changes of nothing", func() { l.changes(s) })
		}
		l.k = l.open(Options{Git: git})
		timed("survey of the next process", func() { s = l.survey() })
		l.write("d00/e00/file001.go", "changed")
		timed("changes of one file", func() { l.changes(s) })
		timed("hold of one file", func() { _, err := l.k.Hold(t.Context(), []string{"d00/e00/file001.go"}); l.must(err) })
		timed("hold and save of one file", func() {
			l.write("d00/e00/file001.go", "changed again")
			v, err := l.k.Hold(t.Context(), []string{"d00/e00/file001.go"})
			l.must(err)
			_, err = l.k.Save(t.Context(), Snapshot{Task: "t", Number: 1, Files: v})
			l.must(err)
		})
		size, err := l.k.Size(t.Context())
		l.must(err)
		info, err := os.Stat(filepath.Join(l.data, l.k.Name(), "survey"))
		l.must(err)
		t.Logf("%s: store %d bytes, survey file %d bytes", name, size, info.Size())
	}
}
