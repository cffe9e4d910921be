package export

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// packed writes an archive whose list may lie about its files.
func packed(t *testing.T, m Manifest, names ...string) string {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	list, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, ManifestName) {
		out, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		text := []byte("of " + name)
		if name == ManifestName {
			text = list
		}
		if _, err := out.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tasks.zip")
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func listed(names ...string) Manifest {
	m := Manifest{Format: ArchiveFormat, Version: 1, Tasks: []ArchivedTask{{ID: "a b", Dir: "tasks/a%20b"}}}
	for _, name := range names {
		sum := sha256.Sum256([]byte("of " + name))
		m.Files = append(m.Files, ArchivedFile{Path: name, Size: int64(len("of " + name)), SHA256: hex.EncodeToString(sum[:])})
	}
	return m
}

// A task's folder and the journal that lay apart from it become one folder, and names
// come back as they were.
func TestUnpack(t *testing.T) {
	names := []string{"tasks/a%20b/task/ui_messages.json", "tasks/a%20b/task/odd/%FF%25", "tasks/a%20b/log/journal.jsonl", "tasks/a%20b/log/blobs/aa/bb"}
	list, c, err := Unpack(packed(t, listed(names...), names...))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if len(list) != 1 || list[0].Name != "a b" || len(list[0].Files) != 4 {
		t.Fatalf("got %+v, want len(list) = 1 and list[0].Name = \"a b\" and len(list[0].Files) = 4", list)
	}
	want := map[string]string{
		"journal.jsonl": names[2], filepath.Join("blobs", "aa", "bb"): names[3], "ui_messages.json": names[0], filepath.Join("odd", "\xff%"): names[1],
	}
	for _, f := range list[0].Files {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil || string(text) != "of "+want[f.Path] || f.Size != int64(len(text)) {
			t.Errorf("%q holds %q, %v", f.Path, text, err)
		}
		in.Close()
	}
}

// No path of an archive leads out of its task, and no list is believed that does not
// fit the archive.
func TestUnpackRefuses(t *testing.T) {
	const good = "tasks/a%20b/task/x"
	for name, tt := range map[string]struct {
		m     Manifest
		names []string
	}{
		"up":                 {listed("tasks/a%20b/task/../x"), []string{"tasks/a%20b/task/../x"}},
		"up, spelled":        {listed("tasks/a%20b/task/%2E%2E/x"), []string{"tasks/a%20b/task/%2E%2E/x"}},
		"a separator":        {listed("tasks/a%20b/task/a%2Fb"), []string{"tasks/a%20b/task/a%2Fb"}},
		"a zero":             {listed("tasks/a%20b/task/a%00b"), []string{"tasks/a%20b/task/a%00b"}},
		"no name":            {listed("tasks/a%20b/task//x"), []string{"tasks/a%20b/task//x"}},
		"a broken escape":    {listed("tasks/a%20b/task/%zz"), []string{"tasks/a%20b/task/%zz"}},
		"the task itself":    {listed("tasks/a%20b/task"), []string{"tasks/a%20b/task"}},
		"beside the folders": {listed("tasks/a%20b/other/x"), []string{"tasks/a%20b/other/x"}},
		"beside all tasks":   {listed("etc/a%20b/task/x"), []string{"etc/a%20b/task/x"}},
		"an unknown task":    {listed("tasks/c/task/x"), []string{"tasks/c/task/x"}},
		"a missing file":     {listed(good), nil},
		"one file twice":     {listed(good), []string{good, good}},
		"one task twice": {Manifest{Format: ArchiveFormat, Version: 1, Tasks: []ArchivedTask{{ID: "a", Dir: "tasks/a"}, {ID: "b", Dir: "tasks/a"}}},
			nil},
		"a newer version": {Manifest{Format: ArchiveFormat, Version: 2}, nil},
		"another format":  {Manifest{Format: "other", Version: 1}, nil},
	} {
		list, c, err := Unpack(packed(t, tt.m, tt.names...))
		if !errors.Is(err, ErrArchive) {
			t.Errorf("%s: got %+v, %v, want errors.Is(err, ErrArchive)", name, list, err)
		}
		if c != nil {
			c.Close()
		}
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{plain: ErrArchive, t.TempDir(): ErrArchive, plain + "x": os.ErrNotExist} {
		if _, _, err := Unpack(path); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want errors.Is(err, want)", path, err)
		}
	}
}
