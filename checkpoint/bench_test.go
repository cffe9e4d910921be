package checkpoint

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-dev/roost/task"
)

// BenchmarkWarmSurvey is what a command costs in a workspace of 20,000 files that are as
// they were.
func BenchmarkWarmSurvey(b *testing.B) {
	for _, git := range []bool{false, true} {
		b.Run(fmt.Sprintf("git=%v", git), func(b *testing.B) {
			o := Options{Git: "none"}
			if git {
				o.Git = ""
			}
			l := newBench(b, o)
			for i := range 20000 {
				l.write(fmt.Sprintf("d%02d/e%02d/file%03d.go", i/50/20, i/50%20, i%50), fmt.Sprintf("package p%d\n", i))
			}
			if git {
				l.commitAll(l.root)
			}
			l.survey().Close()
			time.Sleep(time.Duration(settling) + time.Second)
			l.survey().Close()
			for b.Loop() {
				l.survey().Close()
			}
		})
	}
}

// BenchmarkApply puts 2,000 files of 2 KB in 40 folders back and forth.
func BenchmarkApply(b *testing.B) {
	l := newBench(b, Options{Git: "none"})
	const n = 2000
	var paths []string
	text := func(i, v int) string { return fmt.Sprintf("%0*d version %d", 2000, i, v) }
	for i := range n {
		p := fmt.Sprintf("d%02d/file%04d", i%40, i)
		paths = append(paths, p)
		l.write(p, text(i, 1))
	}
	was, err := l.k.Hold(b.Context(), paths)
	l.must(err)
	for i, p := range paths {
		l.write(p, text(i, 2))
	}
	now, err := l.k.Hold(b.Context(), paths)
	l.must(err)
	var files []task.RestoreFile
	for _, p := range paths {
		files = append(files, task.RestoreFile{Path: p, From: now[p], To: was[p]})
	}
	b.ResetTimer()
	for range b.N {
		left, err := l.k.Apply(b.Context(), files)
		l.must(err)
		if len(files) != n || len(left) > 0 {
			b.Fatalf("got %d files and left %v, want %d and none", len(files), left, n)
		}
		files = task.Swapped(files)
	}
}
