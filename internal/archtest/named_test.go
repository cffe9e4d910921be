package archtest

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestNamedTestsExist: each test that a page of the documentation names for what it promises is
// there. A script is named TestScripts/NAME.
func TestNamedTestsExist(t *testing.T) {
	tree := os.DirFS("../..")
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case strings.HasPrefix(path, "cli/testdata/script/"):
			name, _, _ := strings.Cut(d.Name(), ".")
			there["TestScripts/"+name] = true
		case strings.HasSuffix(path, "_test.go"):
			text, err := fs.ReadFile(tree, path)
			if err != nil {
				return err
			}
			for _, m := range declared.FindAllSubmatch(text, -1) {
				there[string(m[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range []string{"docs/security.md"} {
		text, err := fs.ReadFile(tree, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`(Test[\\w/]+)`").FindAllStringSubmatch(string(text), -1) {
			named++
			if !there[m[1]] {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
	if named < 10 {
		t.Errorf("%d tests are named, want those of each statement", named)
	}
}
