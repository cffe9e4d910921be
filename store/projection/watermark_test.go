package projection_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
)

// four are the rows of a history.
var four = storetest.Array(storetest.UIRow(1, "one"), storetest.UIRow(2, "two"), storetest.UIRow(3, "three"), storetest.UIRow(4, "four"))

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Whose bytes a file holds is judged by its content; its times only make that
// cheap.
func TestWhoseBytes(t *testing.T) {
	ours, theirs := four, storetest.Array(storetest.UIRow(1, "one"), storetest.UIRow(2, "two"), storetest.UIRow(3, "three"))
	same := strings.Replace(ours, "four", "FOUR", 1) // as long as ours
	for name, c := range map[string]struct {
		text string
		mark func(print roofmt.Fingerprint) projection.Watermark
		want bool
	}{
		"written last":                {ours, func(roofmt.Fingerprint) projection.Watermark { return markWith(ours, nil) }, true},
		"written by somebody":         {theirs, func(roofmt.Fingerprint) projection.Watermark { return markWith(ours, nil) }, false},
		"as long as ours, and not it": {same, func(roofmt.Fingerprint) projection.Watermark { return markWith(ours, nil) }, false},
		"about to be written at the kill": {ours, func(roofmt.Fingerprint) projection.Watermark {
			return markWith(theirs, map[string]projection.File{roofmt.UIName: {SHA256: digest(ours), Size: int64(len(ours))}})
		}, true},
		"only about to be written": {ours, func(roofmt.Fingerprint) projection.Watermark {
			return projection.Watermark{Writing: map[string]projection.File{roofmt.UIName: {SHA256: digest(ours), Size: int64(len(ours))}}}
		}, true},
		"nothing is known": {ours, func(roofmt.Fingerprint) projection.Watermark { return projection.Watermark{} }, false},
		"by its times": {theirs, func(p roofmt.Fingerprint) projection.Watermark {
			return projection.Watermark{Files: map[string]projection.File{roofmt.UIName: {SHA256: digest(ours), Size: p.Size, MTime: p.MTime, Inode: p.Inode}}}
		}, true},
	} {
		dir := t.TempDir()
		storetest.Write(t, dir, roofmt.UIName, c.text)
		f := storetest.Must[*roofmt.Folder](t)(roofmt.Read(context.Background(), dir))
		if got := c.mark(f.UI.Print).Wrote(f.UI); got != c.want {
			t.Errorf("%s: got %v, want got = %v", name, got, c.want)
		}
		storetest.Check(t, f.Close())
	}
	// A leftover of another program's write is never ours, whatever it says.
	dir := t.TempDir()
	storetest.Write(t, dir, ".ui_messages.json.new_1_a.tmp", ours)
	f := storetest.Must[*roofmt.Folder](t)(roofmt.Read(context.Background(), dir))
	if f.UI.Len() != 4 || markWith(ours, nil).Wrote(f.UI) {
		t.Errorf("%d rows of a leftover count as ours", f.UI.Len())
	}
	storetest.Check(t, f.Close())
}

func markWith(text string, writing map[string]projection.File) projection.Watermark {
	return projection.Watermark{Files: map[string]projection.File{roofmt.UIName: {SHA256: digest(text), Size: int64(len(text))}}, Writing: writing}
}

func TestTheRecordIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	first := projection.Watermark{Seq: 5, Files: map[string]projection.File{"a": {SHA256: "x", Size: 3, Absent: true}}}
	storetest.Check(t, first.Save(dir))
	if d := cmp.Diff(first, projection.Read(dir)); d != "" {
		t.Error(d)
	}
	if err := first.Save(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "watermark") {
		t.Errorf("a folder that is not there: %v", err)
	}
	if got := storetest.Must[[]os.DirEntry](t)(os.ReadDir(dir)); len(got) != 1 || got[0].Name() != projection.Name {
		t.Errorf("left: %v", got)
	}
	info := storetest.Must[os.FileInfo](t)(os.Stat(filepath.Join(dir, projection.Name)))
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}
