package catalog

import (
	"fmt"
	"testing"
)

// Reading the rows of 10,000 tasks: what every list begins with.
func BenchmarkOpenRows(b *testing.B) {
	dir := b.TempDir()
	sh := &Shelf{Name: "one", Tool: "roo", Tasks: "/tasks"}
	for i := range 10_000 {
		id := fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(i*2654435761), i)
		sh.Rows = append(sh.Rows, Row{
			ID: id, Known: true, Traits: &Traits{Tool: "roo", Status: "idle", Workspace: fmt.Sprint("/home/me/", i%17), Model: "some model", Watch: "ui_messages.json\x00api_conversation_history.json\x00history_item.json"}, Title: fmt.Sprint("task ", i),
			TS: int64(1700000000000 + i), Cost: int64(i), Tokens: int64(990 + i), Size: 500_000,
			Digest: Mix(1, uint64(i)), Near: Mix(2, uint64(i)), Wrote: 1_700_000_000, Item: Mix(3, uint64(i)), Sizes: Mix(4, uint64(i)), Whole: make([]byte, 600),
		})
	}
	check(b, (&Rows{Shelves: []*Shelf{sh}}).Write(dir, 1))
	for b.Loop() {
		r, err := OpenRows(dir, 1)
		check(b, err)
		r.Close()
	}
}
