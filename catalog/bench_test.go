package catalog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// Keeping text: bytes of text a second, and how large the file is beside it.
func BenchmarkPut(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := make([]string, 2000)
	total := 0
	for i := range texts {
		texts[i] = prose(r, 1500)
		total += len(texts[i])
	}
	dir := b.TempDir()
	db := opened(b, dir)
	b.SetBytes(int64(total))
	for i := 0; b.Loop(); i++ {
		put(b, db, fmt.Sprint("task ", i), texts...)
	}
	var size int64
	for _, end := range []string{"", "-wal"} {
		if info, err := os.Stat(filepath.Join(dir, Name+end)); err == nil && end == "" {
			size += info.Size()
		}
	}
	b.ReportMetric(float64(size)/float64(total)/float64(b.N), "file/text")
}

// Searching 200,000 messages.
func BenchmarkSearch(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	db := opened(b, b.TempDir())
	var list []Entry
	for i := range 1000 {
		texts := make([]string, 200)
		for j := range texts {
			texts[j] = prose(r, 1000)
		}
		if i%100 == 0 {
			texts[7] += " 修复登录错误 needle_in_the_hay "
		}
		if list = append(list, entry(fmt.Sprint("task ", i), texts...)); len(list) == 100 || i == 999 {
			fixture.NoError(b, db.Put(context.Background(), list))
			list = nil
		}
	}
	for _, query := range []string{"needle_in_the_hay", "le_in_th", "登录", "src/" + testWords[3] + "/" + testWords[2000], testWords[1500] + " " + testWords[2100], testWords[3999] + "_" + testWords[17], testWords[5] + " " + testWords[9] + " " + testWords[40], testWords[2], "zq"} {
		b.Run(query, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = len(found(b, db, query))
			}
			b.ReportMetric(float64(n), "hits")
		})
	}
}
