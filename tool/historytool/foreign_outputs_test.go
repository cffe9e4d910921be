package historytool

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/roost-dev/roost/tool"
)

// besides is a task's folder as Roo leaves it, with an output of two lines.
func besides(t *testing.T) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "task")
	for name, text := range map[string]string{
		"task/command-output/cmd-17.txt": "one\ntwo\n", "task/command-output/notes.txt": "no output", "task/secret.txt": "in the task", "secret.txt": "beside the task",
	} {
		name = filepath.Join(filepath.Dir(folder), name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestReadsWhatAnotherProgramKept(t *testing.T) {
	folder := besides(t)
	env := tool.Env{Kept: ForeignOutputs(folder)}
	for input, want := range map[string]string{
		`{"artifact_id":"cmd-17.txt"}`:                "[Command Output: cmd-17.txt]\nTotal size: 8 bytes | Showing bytes 0-8 | COMPLETE\n1 | one\n2 | two\n3 | ",
		`{"artifact_id":"cmd-17.txt","search":"two"}`: "[Command Output: cmd-17.txt] (search: \"two\")\nTotal matches: 1 | Showing first 1\n\n    2 | two",
		`{"artifact_id":"cmd-18.txt"}`:                "Error: Artifact not found: \"cmd-18.txt\"",
	} {
		if _, r := call(t, ReadOutput(), env, input); !strings.HasPrefix(r.Text, want) {
			t.Errorf("%s:\n got %q\nwant %q", input, r.Text, want)
		}
	}
	out, size, ok := ForeignOutputs(folder)("cmd-17.txt")
	if !ok || size != 8 {
		t.Fatal(size, ok)
	}
	if err := os.Remove(filepath.Join(folder, "command-output", "cmd-17.txt")); err != nil {
		t.Fatal(err)
	}
	if n, err := out.ReadAt(make([]byte, 8), 0); n != 0 || err == nil {
		t.Errorf("of a file that is gone %d bytes were read, %v", n, err)
	}
}

// Nothing but a plain file of that folder is an output, whatever name a model gives
// and whatever lies there.
func TestReadsNothingElse(t *testing.T) {
	folder := besides(t)
	names := []string{"", ".", "..", "notes.txt", "../secret.txt", "cmd-17.txt/", "./cmd-17.txt", "cmd-.txt", "cmd-17.txt\x00", "cmd-17.txt\n", "CMD-17.txt", "cmd-../../secret.txt", filepath.Join(folder, "secret.txt")}
	out := filepath.Join(folder, "command-output")
	if err := os.Mkdir(filepath.Join(out, "cmd-1.txt"), 0o700); err != nil {
		t.Fatal(err)
	}
	names = append(names, "cmd-1.txt")
	if runtime.GOOS != "windows" {
		for name, target := range map[string]string{"cmd-2.txt": "../../secret.txt", "cmd-3.txt": "../secret.txt", "cmd-4.txt": filepath.Join(filepath.Dir(folder), "secret.txt"), "cmd-5.txt": "cmd-17.txt"} {
			if err := os.Symlink(target, filepath.Join(out, name)); err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
	}
	for _, name := range names {
		if _, _, ok := ForeignOutputs(folder)(name); ok {
			t.Errorf("%q is an output", name)
		}
	}
	for _, dir := range []string{"", filepath.Join(folder, "none"), filepath.Join(folder, "secret.txt")} {
		if _, _, ok := ForeignOutputs(dir)("cmd-17.txt"); ok {
			t.Errorf("%q has an output", dir)
		}
	}
	if runtime.GOOS != "windows" { // a folder that leads elsewhere
		other := filepath.Join(t.TempDir(), "task")
		if err := os.Mkdir(other, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(out, filepath.Join(other, "command-output")); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := ForeignOutputs(other)("cmd-17.txt"); ok {
			t.Error("a folder that is a link has an output")
		}
	}
}
