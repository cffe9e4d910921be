package object_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/checkpoint/object"
)

// What a file held is written, named and read back.
func Example() {
	dir, err := os.MkdirTemp("", "object-example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	s, err := object.Open(filepath.Join(dir, "store"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	id, err := save(ctx, s, "hello\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := s.Commit(ctx, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	entries, err := s.Tree(ctx, c.Tree)
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := s.Read(ctx, entries[0].ID, 1<<20)
	fmt.Printf("%s %q %v\n", entries[0].Name, data, err)
	done, err := s.Collect(ctx, object.CollectOptions{})
	fmt.Println(done.Kept, done.Removed, err)
	// Output:
	// a.txt "hello\n" <nil>
	// 3 0 <nil>
}

// save writes one state, gives it a name that keeps it, and lets go.
func save(ctx context.Context, s *object.Store, content string) (object.ID, error) {
	b, err := s.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer b.Discard()
	blob, err := b.Blob([]byte(content))
	if err != nil {
		return "", err
	}
	tree, err := b.Tree([]object.TreeEntry{{Name: "a.txt", Mode: object.ModeFile, ID: blob}})
	if err != nil {
		return "", err
	}
	id, err := b.Commit(object.Commit{Tree: tree, At: time.Unix(1_700_000_000, 0), Message: "a.txt"})
	if err != nil {
		return "", err
	}
	if err := b.Close(); err != nil {
		return "", err
	}
	if err := s.SetRef(object.RefName("task-1"), id); err != nil {
		return "", err
	}
	s.Settle()
	return id, nil
}
