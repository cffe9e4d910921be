package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each flow of the page in web-flows.md has its test, and each test of the page is in web-flows.md. The test is here
// because it needs no browser.
func TestFlowsHaveTests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "tools", "pagetest", "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files with tests of the page, %v, want some", len(files), err)
	}
	there := map[string]bool{}
	for _, file := range files {
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(readFile(t, file), -1) {
			there[m[1]] = true
		}
	}
	named := map[string]bool{}
	for line := range strings.Lines(readFile(t, "web-flows.md")) {
		for _, m := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(line, -1) {
			named[m[1]] = true
			if !there[m[1]] {
				t.Errorf("web-flows.md names the test %s, which tools/pagetest does not have", m[1])
			}
		}
	}
	for name := range there {
		if !named[name] {
			t.Errorf("web-flows.md has no row with %s of tools/pagetest", name)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
