package archtest

import (
	"os"
	"testing"
)

// TestRepository holds this repository to its own rules.
func TestRepository(t *testing.T) {
	found, err := Check(os.DirFS("../.."), "github.com/roost-dev/roost")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}
