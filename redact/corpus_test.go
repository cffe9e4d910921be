package redact

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOrdinaryCodeComesOutUnchanged reads the source of Go's standard library: megabytes
// of code, hashes, tables, addresses, test data and comments that nobody wrote with this
// package in mind. The keys that are in it for its own tests are the only thing that is
// masked.
func TestOrdinaryCodeComesOutUnchanged(t *testing.T) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("there is no Go here: ", err)
	}
	r := New(Known{Kind: "mine", Value: "sk-ant-not-in-there-0123456789"})
	files, size := 0, 0
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(out)), "src"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if testing.Short() && files > 1500 {
			return fs.SkipAll
		}
		switch filepath.Ext(path) {
		case ".go", ".s", ".c", ".h", ".md", ".txt", ".mod", ".sum", ".json", ".yml", ".bash", ".pl":
		default:
			return nil
		}
		data, err := os.ReadFile(path) //nolint:gosec // the library's own files
		if err != nil {
			return err
		}
		files, size = files+1, size+len(data)
		got, n := r.String(string(data))
		if n == 0 {
			if got != string(data) {
				t.Errorf("%s was changed without a mask", path)
			}
			return nil
		}
		if kinds := maskedKinds(got); !testKeys(data, kinds) {
			t.Errorf("%s: %d masked: %v", path, n, kinds)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 1000 {
		t.Errorf("only %d files", files)
	}
	t.Logf("%d files, %d bytes", files, size)
}

// maskedKinds are the kinds of the masks in a text.
func maskedKinds(s string) map[string]int {
	kinds := map[string]int{}
	for _, part := range strings.Split(s, "[REDACTED:")[1:] {
		kind, _, _ := strings.Cut(part, "]")
		kinds[kind]++
	}
	return kinds
}

// testKeys: what was masked are private keys that stand there as such.
func testKeys(data []byte, kinds map[string]int) bool {
	return len(kinds) == 1 && kinds["private-key"] > 0 && bytes.Contains(data, []byte("PRIVATE KEY-----"))
}
