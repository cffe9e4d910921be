//go:build linux

package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/internal/failpoint"
)

// killedMove is where the child of a test moves a to b and takes c away; it dies at a
// failpoint.
const killedMove = "WORKSPACE_TEST_MOVE"

func move(dir string) error {
	w, err := Open(dir)
	if err != nil {
		return err
	}
	var p [3]Path
	for i, name := range []string{"a", "b", "c"} {
		if p[i], err = w.Resolve(name); err != nil {
			return err
		}
	}
	_, err = w.Apply(context.Background(), []Change{
		{Path: p[0], Remove: true, Expect: HashOf([]byte("words"))},
		{Path: p[2], Remove: true, Expect: HashOf([]byte("more"))},
		{Path: p[1], Data: []byte("new words"), Like: &p[0]},
	})
	return err
}

// A file that is moved is never nowhere: its new place is filled before the old one is
// emptied, whatever the order in which the changes are asked for.
func TestAKilledMoveLosesNothing(t *testing.T) {
	for _, tt := range []struct {
		point string
		want  map[string]string
	}{
		{"tool.write.before", map[string]string{"a": "words", "c": "more"}},
		{"tool.write.after:1", map[string]string{"a": "words", "b": "new words", "c": "more"}},
		{"tool.write.after:2", map[string]string{"b": "new words", "c": "more"}},
		{"tool.write.after:3", map[string]string{"b": "new words"}},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"a": "words", "c": "more"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killedMove+"="+dir, failpoint.Env+"="+tt.point)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: the child ended with %v: %s", tt.point, err, out)
		}
		for _, name := range []string{"a", "b", "c"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			want, there := tt.want[name]
			if (err == nil) != there || string(data) != want {
				t.Errorf("%s: %s holds %q, %v; wanted %q", tt.point, name, data, err, want)
			}
		}
	}
}
