package doctor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/doctor"
)

// A check changes nothing, and lists what it finds. A repair keeps what it replaces.
func ExampleCheck() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "roost-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	dir := filepath.Join(root, "tasks", "torn")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "ui_messages.json"), []byte(`[{"ts":1,"type":"say","say":"text","text":"a"},{"ts":2`), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	s, err := store.Open(store.Options{Root: root})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range []doctor.Options{{}, {Repair: true}} {
		r, err := doctor.Check(ctx, s, nil, o)
		fmt.Println(r.OK, len(r.Damaged), len(r.Repaired), err)
	}
	// Output:
	// 0 1 0 <nil>
	// 1 0 1 <nil>
}
