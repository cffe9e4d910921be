package checkpoint

import (
	"fmt"
	"testing"
	"time"
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
			l := newLab(b, o)
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
