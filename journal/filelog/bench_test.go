package filelog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

const benchPayload = 5 << 10

func benchDraft() journal.Draft {
	return journal.Draft{At: 1, By: "bench", Events: []journal.Event{[]byte(`{"text":"` + strings.Repeat("x", benchPayload) + `"}`)}}
}

// BenchmarkAppendBarrier and BenchmarkBareAppendSync belong together: their ratio
// is the price of the journal.
func BenchmarkAppendBarrier(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o := mustOwn(b, b.TempDir(), filelog.Options{})
			add(b, o, n)
			d := benchDraft()
			for b.Loop() {
				if _, err := o.Append(b.Context(), d); err != nil {
					b.Fatal(err)
				}
				if err := o.Barrier(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkBareAppendSync(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f, err := filelog.OS.OpenFile(filepath.Join(b.TempDir(), "f"), os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			off := int64(n) * 90
			if _, err := f.WriteAt(make([]byte, off), 0); err != nil {
				b.Fatal(err)
			}
			_ = f.Datasync()
			line, _ := journal.EncodeCommit(journal.Commit{Seq: 100000, Epoch: 1, At: 1, By: "bench", Events: benchDraft().Events})
			for b.Loop() {
				n, err := f.WriteAt(line, off)
				if err == nil {
					err = f.Datasync()
				}
				if err != nil {
					b.Fatal(err)
				}
				off += int64(n)
			}
		})
	}
}
