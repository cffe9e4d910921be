package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/esjson"
)

// VectorsEnv names the folder that holds FAMILY.jsonl, one case a line.
const VectorsEnv = "ROOST_VECTORS"

// Case is one conformance case: what the original did (Want) with Input.
type Case struct {
	Name        string
	Input, Want Value
	Bug         string // why the original should not be copied here, "" when nothing is known
}

// Same compares two raw values as JSON and reports a difference as an error.
func (c Case) Same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !esjson.Equal(got, want) {
		t.Errorf("%s\n got %.1500s\nwant %.1500s", what, got, want)
	}
}

// Run gives every case of a family to check, each as a subtest of its own, and prints how many passed. A case passes
// unless check fails it. byChoice means that it passed by being right, or stricter, where the original is not; that
// must follow from a rule over input and wanted output, never from the case's name.
func Run(t *testing.T, family string, check func(t *testing.T, c Case) (byChoice bool)) {
	t.Helper()
	dir := os.Getenv(VectorsEnv)
	if dir == "" {
		t.Skipf("%s is not set", VectorsEnv)
	}
	cases, err := load(dir, family)
	if err != nil {
		t.Fatal(err)
	}
	ran, passed, choices := 0, 0, 0
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			ran++
			defer func() {
				if t.Skipped() {
					t.Error("a case must not be skipped")
				}
			}()
			choice := check(t, c)
			if t.Failed() {
				return
			}
			passed++
			if choice {
				choices++
			}
		})
	}
	// Not all of them ran when the command line named some.
	fmt.Printf("vectors: %s %d/%d (by choice %d)\n", family, passed, ran, choices)
}

// load reads a family, and its further cases in the folder "more" where there are some.
func load(dir, family string) ([]Case, error) {
	all, err := read(dir, family)
	if err != nil {
		return all, err
	}
	more, err := read(filepath.Join(dir, "more"), family)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	return append(all, more...), err
}

// read loads one file of a family. It fails when there is nothing to run.
func read(dir, family string) ([]Case, error) {
	data, err := os.ReadFile(filepath.Join(dir, family+".jsonl"))
	if err != nil {
		return nil, fmt.Errorf("read the vectors of %s: %w (check %s)", family, err, VectorsEnv)
	}
	var all []Case
	n := 0
	for line := range bytes.Lines(data) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		v := Value(line)
		c := Case{Name: v.Str("name"), Input: v.Get("input"), Want: v.Get("want"), Bug: v.Str("roo_bug")}
		if !esjson.Valid(line) || c.Name == "" || c.Input == nil || c.Want == nil {
			return nil, fmt.Errorf("read the vectors of %s: line %d is no case with name, input and want", family, n)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read the vectors of %s: the file has no cases", family)
	}
	return all, nil
}
