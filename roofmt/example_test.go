package roofmt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

func ExampleRead() {
	dir, _ := os.MkdirTemp("", "task")
	defer os.RemoveAll(dir)
	torn := `[{"ts":1,"type":"say","say":"text","text":"do it"},{"ts":2,"ty`
	_ = os.WriteFile(filepath.Join(dir, roofmt.UIName), []byte(torn), 0o600)

	f, err := roofmt.Read(context.Background(), dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	for raw := range f.UI.All() {
		fmt.Println(esjson.TextOf(raw, "text"))
	}
	fmt.Println(f.UI.State, "-", f.Losses[0].Recovered)
	// Output:
	// do it
	// damaged - 1 whole message
}

func ExampleFind() {
	storage, _ := os.MkdirTemp("", "storage")
	defer os.RemoveAll(storage)
	_ = os.MkdirAll(filepath.Join(storage, "tasks", "1728239012345"), 0o700)

	found, err := roofmt.Find(context.Background(), storage)
	fmt.Println(found.Shape, found.Tasks[0].ID, err)
	_, err = roofmt.Find(context.Background(), filepath.Join(storage, "unmounted"))
	fmt.Println(err != nil)
	// Output:
	// storage root 1728239012345 <nil>
	// true
}
