package archtest

import (
	"os"
	"testing"
)

// TestRepository holds this repository to its own rules.
func TestRepository(t *testing.T) {
	tree, house := os.DirFS("../.."), "github.com/roost-dev/roost"
	found, err := Check(tree, house)
	if err != nil {
		t.Fatal(err)
	}
	page, err := CheckPage(tree, house, "ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(found, page...) {
		t.Error(v)
	}
}
