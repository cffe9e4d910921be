package patch_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/filetool"
	"github.com/roost-dev/roost/tool/patch"
	"github.com/roost-dev/roost/workspace"
)

func init() {
	patch.PlanPatch = func(t *testing.T, files []string, text string) (root string, err error) {
		t.Helper()
		root = t.TempDir()
		for i := 0; i < len(files); i += 2 {
			name := filepath.Join(root, files[i])
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(files[i+1]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ws, err := workspace.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		call, err := json.Marshal(map[string]string{"patch": text})
		if err != nil {
			t.Fatal(err)
		}
		_, err = filetool.ApplyPatch().Plan(t.Context(), tool.Env{Workspace: ws}, call)
		return root, err
	}
}
