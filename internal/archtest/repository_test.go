package archtest

import (
	"io/fs"
	"os"
	"slices"
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
	pages, err := fs.Glob(tree, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	manual, err := fs.Glob(tree, "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	links, err := CheckLinks(tree, slices.Concat(pages, manual)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range slices.Concat(found, page, links) {
		t.Error(v)
	}
}
