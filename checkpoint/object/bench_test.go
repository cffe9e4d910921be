package object

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"
)

// BenchmarkCheckpoint is what one checkpoint of a small edit costs: two blobs, three
// trees, a commit, its ref, in a store that is in use.
func BenchmarkCheckpoint(b *testing.B) {
	ctx := context.Background()
	s := made(b)
	var last ID
	n := 0
	one := func() {
		batch := must[*Batch](b)(s.Begin(ctx))
		n++
		x := must[ID](b)(batch.Blob([]byte(text(n, 8000))))
		y := must[ID](b)(batch.Blob([]byte(text(-n, 300))))
		tree := must[ID](b)(batch.Tree([]TreeEntry{{"x", ModeFile, x}}))
		tree = must[ID](b)(batch.Tree([]TreeEntry{{"dir", ModeTree, tree}, {"y", ModeFile, y}}))
		tree = must[ID](b)(batch.Tree([]TreeEntry{{"src", ModeTree, tree}}))
		c := Commit{Tree: tree, At: time.Unix(1_700_000_000, 0), Message: fmt.Sprint(n)}
		if last != "" {
			c.Parents = []ID{last}
		}
		last = must[ID](b)(batch.Commit(c))
		ok(b, batch.Close())
		ok(b, s.SetRef("refs/roost/t", last))
		s.Settle()
	}
	for b.Loop() {
		one()
	}
	b.StopTimer()
	b.ReportMetric(float64(len(packsOf(b, s))/2), "packs")
	b.ReportMetric(float64(must[int64](b)(s.Size()))/float64(n), "bytes/checkpoint")
}

// BenchmarkManyBlobs writes 20,000 small blobs in one batch, and finds them again.
func BenchmarkManyBlobs(b *testing.B) {
	const n = 20_000
	ctx := context.Background()
	contents := make([][]byte, n)
	for i := range contents {
		contents[i] = []byte(text(i, 500+i%3000))
	}
	var wrote, found, has time.Duration
	for b.Loop() {
		s := made(b)
		start := time.Now()
		batch := must[*Batch](b)(s.Begin(ctx))
		for _, c := range contents {
			must[ID](b)(batch.Blob(c))
		}
		ok(b, batch.Close())
		wrote += time.Since(start)
		start = time.Now()
		batch = must[*Batch](b)(s.Begin(ctx))
		for _, c := range contents {
			must[ID](b)(batch.Blob(c))
		}
		ok(b, batch.Close())
		found += time.Since(start)
		ids := make([]ID, n)
		for i, c := range contents {
			ids[i] = blobID(c)
		}
		start = time.Now()
		for _, id := range ids {
			if !s.Has(id) {
				b.Fatal("gone")
			}
		}
		has += time.Since(start)
		s.Close()
	}
	b.ReportMetric(float64(wrote.Milliseconds())/float64(b.N), "ms/write")
	b.ReportMetric(float64(found.Milliseconds())/float64(b.N), "ms/again")
	b.ReportMetric(float64(has.Microseconds())/float64(b.N)/n, "us/has")
}

// BenchmarkManyPacks opens a store of thousands of packs that nobody merged, looks
// 1,000 objects up and collects.
func BenchmarkManyPacks(b *testing.B) {
	dir := b.TempDir()
	s := opened(b, dir)
	ok(b, s.make())
	const n = 3000
	for i := range n {
		data := []byte(text(i, 200))
		pack, index := built([]entry{{id: hashOf(KindBlob, data), kind: packBlob, data: data}})
		putPack(b, s, pack, index)
	}
	var first, has time.Duration
	for b.Loop() {
		s := opened(b, dir)
		start := time.Now()
		s.Has(blobID([]byte(text(0, 200))))
		first += time.Since(start)
		ids := make([]ID, 1000)
		for i := range ids {
			ids[i] = blobID([]byte(text(i, 200)))
		}
		start = time.Now()
		for _, id := range ids {
			if !s.Has(id) {
				b.Fatal("gone")
			}
		}
		has += time.Since(start)
	}
	b.ReportMetric(float64(first.Microseconds())/float64(b.N)/1000, "ms/first")
	b.ReportMetric(float64(has.Nanoseconds())/float64(b.N)/1000, "ns/has")
	b.StopTimer()
	release := s.Keep()
	for i := range n {
		s.Has(blobID([]byte(text(i, 200))))
	}
	start := time.Now()
	must[Collected](b)(opened(b, dir).Collect(context.Background(), CollectOptions{}))
	b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/collect-held")
	release()
	s.Settle()
	start = time.Now()
	must[Collected](b)(opened(b, dir).Collect(context.Background(), CollectOptions{}))
	b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/collect")
}

// BenchmarkLargeBlob writes and reads one file of 64 MB that cannot be compressed.
func BenchmarkLargeBlob(b *testing.B) {
	const size = 64 << 20
	data, err := io.ReadAll(&noise{left: size, x: 5})
	ok(b, err)
	path := b.TempDir() + "/file"
	ok(b, os.WriteFile(path, data, 0o600))
	b.SetBytes(size)
	for b.Loop() {
		s := made(b)
		f := must[*os.File](b)(os.Open(path))
		var id ID
		batch := must[*Batch](b)(s.Begin(context.Background()))
		id = must[ID](b)(batch.BlobFrom(f, size))
		ok(b, batch.Close())
		f.Close()
		ok(b, s.Copy(context.Background(), id, io.Discard))
	}
}
