package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// A task is created, read beside its owner, and found in Roo's own format.
func Example() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "roost-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	s, err := store.Open(store.Options{Root: root, Program: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := s.Create(ctx, task.Created{Task: "first", Title: "Say hello", Number: 1}, task.MessageAdded{
		History: task.UI, Message: 1, Body: task.Body{Raw: []byte(`{"ts":1,"type":"say","say":"text","text":"hello"}`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ref, err := s.Find(ctx, "first")
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := s.Read(ctx, ref) // while it is owned
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Summary.Title, v.Summary.Messages.UI)
	if err := v.Close(); err != nil {
		fmt.Println(err)
	}
	if err := t.Close(ctx); err != nil { // Roo's files are written now at the latest
		fmt.Println(err)
	}
	rows, err := os.ReadFile(filepath.Join(ref.Dir, "ui_messages.json"))
	fmt.Println(string(rows), err)
	// Output:
	// Say hello 1
	// [{"ts":1,"type":"say","say":"text","text":"hello"}] <nil>
}
