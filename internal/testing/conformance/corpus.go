package conformance

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// CorpusEnv names the folder below which real task folders lie, at any depth.
const CorpusEnv = "ROOST_CORPUS"

// Corpus is the root of the collection. The test is skipped when none is named.
// It belongs to other people: read it, copy from it, never write to it.
func Corpus(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(CorpusEnv)
	if dir == "" {
		t.Skipf("%s is not set", CorpusEnv)
	}
	return dir
}

// CorpusFolders returns the folders of the collection for which isTask is true, in the order of their paths. The
// caller decides what a task folder looks like: this package is below the one that knows.
func CorpusFolders(t *testing.T, isTask func(dir string) bool) []string {
	t.Helper()
	list, err := folders(Corpus(t), isTask)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func folders(root string, isTask func(dir string) bool) ([]string, error) {
	var list []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && isTask(path) {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for task folders: %w (check %s)", err, CorpusEnv)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("look for task folders: none below %s (check %s)", root, CorpusEnv)
	}
	return list, nil
}

// CorpusTally gives every folder to check, each as a subtest, and prints how many
// passed. It does not print names: they are other people's.
func CorpusTally(t *testing.T, list []string, check func(t *testing.T, dir string)) {
	t.Helper()
	root := os.Getenv(CorpusEnv)
	ran, passed := 0, 0
	for _, dir := range list {
		name, err := filepath.Rel(root, dir)
		if err != nil {
			name = filepath.Base(dir)
		}
		t.Run(name, func(t *testing.T) {
			ran++
			check(t, dir)
			if !t.Failed() {
				passed++
			}
		})
	}
	fmt.Printf("corpus: %d/%d\n", passed, ran)
}
