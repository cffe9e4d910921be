package filetool

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/workspace"
)

func TestRefusalInWords(t *testing.T) {
	res := denied("secret/key")
	want := `{"status":"error","type":"access_denied","message":"Access blocked by .rooignore","path":"secret/key","suggestion":"Go on without this file, or ask the user to change .rooignore."}`
	if res.Text != want || !res.IsError || len(res.Files) > 0 {
		t.Errorf("got %+v, want res.Text = %v and res.IsError and len(res.Files) <= 0", res, want)
	}
}

func TestFileErrorsInWords(t *testing.T) {
	p := workspace.Path{Readable: "src/a.go"}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fs.ErrNotExist, "src/a.go does not exist. Use list_files to see what is there."},
		{fmt.Errorf("open: %w", fs.ErrPermission), "src/a.go may not be opened: permission denied."},
		{workspace.ErrNotRegular, "src/a.go is not a file. If it is a folder, use list_files."},
		{&workspace.TooLargeError{Path: "src/a.go", Size: 9, Limit: 5}, "src/a.go is too large: 9 bytes, the limit is 5"},
		{workspace.ErrChanged, "src/a.go cannot be read: file has changed in the meantime"},
	} {
		if got := explain(p, tt.err); got != refusal(tt.want) {
			t.Errorf("%v: got %v, want got = refusal(tt.want)", tt.err, got)
		}
	}
	for _, ours := range []error{context.Canceled, context.DeadlineExceeded} {
		if got := explain(p, ours); got != ours {
			t.Errorf("%v is told to the model: %v", ours, got)
		}
	}
}

func TestAFolderThatCannotBeReadHidesOnlyItself(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read every folder")
	}
	env, root := sandbox(t, "a/f", "needle\n", "locked/f", "needle\n", "z/f", "needle\n", "unread", "needle\n")
	for name, mode := range map[string]fs.FileMode{"locked": 0, "unread": 0} {
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Chmod(filepath.Join(root, name), 0o700) }()
	}
	if d := cmp.Diff([]string{"unread", "a/", "a/f", "locked/", "z/", "z/f"}, listText(t, env, ".", true)); d != "" {
		t.Error(d)
	}
	if got := searchText(t, env, "path", ".", "regex", "needle"); strings.Count(got, "\n# ") != 2 {
		t.Errorf("found %q", got)
	}
	if _, res := run(t, env, ReadFile(), call("path", "unread")); res.Text != "File: unread\nError: unread may not be opened: permission denied." {
		t.Errorf("got %q, want res.Text = \"File: unread\\nError: unread may not be opened: permission denied.\"",
			res.Text)
	}
}
