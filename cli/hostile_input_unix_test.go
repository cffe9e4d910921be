//go:build unix

package cli

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/export"
)

// A FIFO that nobody writes to, or a device, is refused at once whatever asks for a file.
func TestInputThatIsNoFile(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.foreign("good", "words", 1776300000000)
	model := s.script(finish("done"))
	fifo := filepath.Join(s.dir, "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	for _, name := range []string{fifo, "/dev/zero"} {
		for _, args := range [][]string{
			{"import", name},
			{"approvals", "import", name},
			{"config", "import", name},
			{"run", "--provider", "script", "--model", name, "-C", s.ws, "go"},
			{"run", "--provider", "script", "--model", model, "--image", name, "-C", s.ws, "go"},
			{"resume", "good", "--image", name, "go"},
			{"serve", "--listen", "127.0.0.1:0", "--tls-cert", name, "--tls-key", name},
		} {
			r := s.bounded(args...)
			if r.code == failure.ExitDone || !strings.Contains(r.err, name) || !strings.Contains(r.err, "no regular file") && args[0] != "config" {
				t.Errorf("roost %q: exit %d\n%s", args, r.code, r.err)
			}
		}
	}
	s.env("ROOST_CONFIG=" + fifo)
	if r := s.bounded("list"); r.code != failure.ExitConfig || !strings.Contains(r.err, fifo) {
		t.Errorf("the settings: exit %d\n%s", r.code, r.err)
	}
}

// A repository that holds FIFOs where Roost looks for files stops no run.
func TestWorkspaceOfPipes(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(finish("done"))
	for _, name := range []string{".rooignore", ".roomodes", "AGENTS.md", ".roorules", ".roo/mcp.json", ".roo/rules/a.md", ".roo/commands/a.md", ".roo/skills/a/SKILL.md", ".git/HEAD", ".git/config"} {
		path := filepath.Join(s.ws, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, syscall.Mkfifo(path, 0o600))
		r := s.bounded("run", "--provider", "script", "--model", model, "-C", s.ws, "--yes", "go")
		if r.code != failure.ExitDone {
			t.Errorf("%s: exit %d\n%s", name, r.code, r.err)
		}
		must(t, os.Remove(path))
	}
}

// The folders of an archive are as deep as a task's can be.
func TestDeepArchive(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	name := "tasks/deep/task/" + strings.Repeat("d/", 4000) + "x"
	sum := sha256.Sum256([]byte("words"))
	list, err := json.Marshal(export.Manifest{
		Format: export.ArchiveFormat, Version: 1, Tasks: []export.ArchivedTask{{ID: "deep", Dir: "tasks/deep"}},
		Files: []export.ArchivedFile{{Path: name, Size: 5, SHA256: hex.EncodeToString(sum[:])}},
	})
	must(t, err)
	path := filepath.Join(s.dir, "deep.zip")
	f, err := os.Create(path)
	must(t, err)
	w := zip.NewWriter(f)
	for name, text := range map[string]string{export.ManifestName: string(list), name: "words"} {
		out, err := w.Create(name)
		must(t, err)
		_, err = out.Write([]byte(text))
		must(t, err)
	}
	must(t, w.Close())
	must(t, f.Close())
	r := s.bounded("import", path)
	if r.code != failure.ExitFailed || !strings.Contains(r.out+r.err, "more than 256 folders deep") {
		t.Errorf("exit %d\n%.2000s%.2000s", r.code, r.out, r.err)
	}
	if found, _ := filepath.Glob(filepath.Join(s.root, "tasks", "*", "d")); len(found) > 0 {
		t.Errorf("%q was made", found)
	}
}
