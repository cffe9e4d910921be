package pagetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each flow in the docs has its test, and each test of a flow is in the docs.
func TestFlowsHaveTests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, file := range files {
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(readFile(t, file), -1) {
			there[m[1]] = true
		}
	}
	delete(there, "TestFlowsHaveTests")
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "web-flows.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		for _, m := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(line, -1) {
			named[m[1]] = true
			if !there[m[1]] {
				t.Errorf("the docs name the test %s, which is not there", m[1])
			}
		}
	}
	for name := range there {
		if !named[name] {
			t.Errorf("docs/web-flows.md has no row with %s", name)
		}
	}
}
