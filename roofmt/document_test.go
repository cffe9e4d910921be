package roofmt_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

// An open document is a copy that stands still: what other programs do to the
// folder meanwhile does not reach its reader.
func TestADocumentStandsStill(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{roofmt.UIName: uiList(4)})
	f := read(t, dir)
	before := elements(t, f.UI)
	for _, then := range []func(){
		func() {
			fresh := filepath.Join(dir, "fresh")
			write(t, dir, map[string]string{"fresh": uiList(1)})
			if err := os.Rename(fresh, filepath.Join(dir, roofmt.UIName)); err != nil {
				t.Fatal(err)
			}
		},
		func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		},
	} {
		then()
		if d := cmp.Diff(before, elements(t, f.UI)); d != "" {
			t.Fatal(d)
		}
		var all bytes.Buffer
		if n, err := f.UI.WriteTo(&all); err != nil || all.String() != uiList(4) || n != int64(all.Len()) {
			t.Errorf("%d bytes: %s (%v)", n, &all, err)
		}
		if sum, err := f.UI.SHA256(); err != nil || sum != sha256.Sum256([]byte(uiList(4))) {
			t.Errorf("got %x (%v), want no error and sum = sha256.Sum256([]byte(uiList(4)))", sum, err)
		}
	}
}

func TestAClosedDocumentSaysSo(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{roofmt.UIName: uiList(2)})
	f, err := roofmt.Read(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	for _, d := range []*roofmt.Document{f.UI, f.API} {
		if _, err := d.WriteTo(io.Discard); !errors.Is(err, roofmt.ErrClosed) {
			t.Errorf("%s: WriteTo: %v", d.Name, err)
		}
		if _, err := d.SHA256(); !errors.Is(err, roofmt.ErrClosed) {
			t.Errorf("%s: SHA256: %v", d.Name, err)
		}
	}
	if _, err := f.UI.Raw(1); !errors.Is(err, roofmt.ErrClosed) || !strings.Contains(err.Error(), roofmt.UIName) {
		t.Errorf("Raw: %v", err)
	}
	looked := 0
	for _, err := range f.UI.All() {
		if looked++; !errors.Is(err, roofmt.ErrClosed) {
			t.Errorf("All: %v", err)
		}
	}
	if looked != 1 {
		t.Errorf("it went on for %d messages after the error", looked)
	}
}

// A file that is emptied in place while it is open gives errors, not garbage.
func TestADocumentCutInPlace(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{roofmt.UIName: uiList(3)})
	f := read(t, dir)
	if err := os.Truncate(filepath.Join(dir, roofmt.UIName), 10); err != nil {
		t.Fatal(err)
	}
	if _, err := f.UI.Raw(2); !errors.Is(err, io.EOF) {
		t.Errorf("Raw: %v", err)
	}
	for range f.UI.All() {
	}
}

// What is read and written elsewhere is the same bytes; what was pretty becomes
// compact with the same messages; and that is where it stays.
func TestRoundTripOfAnyMessages(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(genMessage), 0, 8).Draw(r, "messages")
		spelled := "[" + strings.Join(rows, ",") + "]"
		if rapid.Bool().Draw(r, "pretty") {
			spelled = "[\n  " + strings.Join(rows, " ,\r\n\t") + "\n]\n"
		}
		dir, err := os.MkdirTemp("", "roofmt-round-")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		text := spelled
		for round := range 2 {
			if err := os.WriteFile(filepath.Join(dir, roofmt.APIName), []byte(text), 0o600); err != nil {
				r.Fatal(err)
			}
			f, err := roofmt.Read(context.Background(), dir)
			if err != nil {
				r.Fatal(err)
			}
			if f.API.State != roofmt.Present || damaged(f) || f.API.Len() != len(rows) {
				r.Fatalf("%v, %d messages, %+v of %s", f.API.State, f.API.Len(), f.Losses, text)
			}
			var copied, written bytes.Buffer
			if _, err := f.API.WriteTo(&copied); err != nil || copied.String() != text {
				r.Fatalf("copied %s (%v)", &copied, err)
			}
			err = roofmt.WriteArray(&written, func(yield func(roofmt.Element, error) bool) {
				for raw, err := range f.API.All() {
					if !yield(roofmt.Element{Raw: raw}, err) {
						return
					}
				}
			})
			if err != nil {
				r.Fatal(err)
			}
			if round == 1 && written.String() != text {
				r.Fatalf("compact %s became %s", text, &written)
			}
			if !esjson.Equal(written.Bytes(), []byte(spelled)) {
				r.Fatalf("%s says something else than %s", &written, spelled)
			}
			text = written.String()
			if err := f.Close(); err != nil {
				r.Fatal(err)
			}
		}
	})
}

// genMessage is any JSON object, in any spelling.
func genMessage(t *rapid.T) string {
	member := rapid.Custom(func(t *rapid.T) string {
		key := rapid.SampledFrom([]string{"ts", "text", "role", "x", "", "é", `a\u0062`, "1"}).Draw(t, "key")
		val := rapid.SampledFrom([]string{
			"1", "-0", "1.50", "1E5", "123456789012345678901234567890", `""`, `"\u00e9\/"`, `"\ud800"`, "\"\u2028\"", "true", "null", "[]", "{}", "[1,[2,{\"a\":[]}]]", `{"b":{"c":"]"}}`,
		}).Draw(t, "value")
		return fmt.Sprintf("\"%s\":%s", key, val)
	})
	return "{" + strings.Join(rapid.SliceOfN(member, 0, 5).Draw(t, "members"), ",") + "}"
}

// States have names that a person can read in a report.
func TestStatesInWords(t *testing.T) {
	for got, want := range map[string]string{
		roofmt.Missing.String(): "missing", roofmt.Damaged.String(): "damaged", roofmt.NotArray.String(): "not an array", roofmt.Unreadable.String(): "unreadable",
		roofmt.UI.String(): "ui", roofmt.API.String(): "api", roofmt.TaskFolder.String(): "task folder", roofmt.NoTasks.String(): "no tasks",
		(roofmt.Fingerprint{}).String():                                          "absent",
		(roofmt.Fingerprint{Exists: true, Size: 3, MTime: 5, Inode: 7}).String(): "3 bytes, mtime 5, inode 7",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Losses say where, what and how much came back.
func TestLossesInWords(t *testing.T) {
	const bak = ".ui_messages.json.bak_200_abc.tmp"
	for _, c := range []struct {
		name      string
		files     map[string]string
		problem   string
		recovered string
	}{
		{"cut in a message", map[string]string{roofmt.UIName: uiList(3)[:130]}, "cut at byte 130, inside the message that begins near byte", "1 whole message"},
		{"cut between two", map[string]string{roofmt.UIName: uiList(1)[:len(uiList(1))-1] + ","}, "cut at byte", "1 whole message"},
		{"empty", map[string]string{roofmt.UIName: ""}, "empty (0 bytes)", "nothing"},
		{"NULs", map[string]string{roofmt.UIName: "\x00\x00\x00\x00"}, "no text in its 4 bytes", "nothing"},
		{"no list", map[string]string{roofmt.UIName: `"x"`}, "no list of messages in it", "nothing"},
		{"a hole", map[string]string{roofmt.UIName: strings.Replace(uiList(4), `"ts":1001,`, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 1)}, "2 messages follow that", "3 whole messages"},
		{"something behind", map[string]string{roofmt.UIName: uiList(2) + "junk"}, "something else follows the list at byte", "2 whole messages"},
		{"something before", map[string]string{roofmt.UIName: "\x00\x00" + uiList(2)}, "2 foreign bytes before the list", "2 whole messages"},
		{"from a backup", map[string]string{roofmt.UIName: "", bak: uiList(2)}, "empty (0 bytes)", "2 whole messages from " + bak},
		{"from a torn backup", map[string]string{bak: uiList(3)[:130]}, "missing; a write was interrupted", "1 whole message from " + bak + " (cut at byte 130"},
	} {
		dir := t.TempDir()
		write(t, dir, c.files)
		f := read(t, dir)
		if len(f.Losses) != 1 || f.Losses[0].File != roofmt.UIName || !strings.Contains(f.Losses[0].Problem, c.problem) || !strings.HasPrefix(f.Losses[0].Recovered, c.recovered) {
			t.Errorf("%s: %+v", c.name, f.Losses)
		}
	}
}

// A fingerprint tells a file that was replaced by one of the same size and time.
func TestFingerprintsTellReplacements(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{roofmt.UIName: uiList(1), roofmt.ItemName: `{}`})
	before := read(t, dir)
	all, err := roofmt.Prints(dir)
	if err != nil || all[roofmt.UIName] != before.UI.Print || all[roofmt.ItemName] != before.ItemPrint || all[roofmt.APIName].Exists {
		t.Errorf("got %+v (%v), want no error and all[roofmt.UIName] = before.UI.Print and all[roofmt.ItemName] = before.ItemPrint and not all[roofmt.APIName].Exists",
			all, err)
	}
	path := filepath.Join(dir, roofmt.UIName)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"next": strings.Replace(uiList(1), "row", "ROW", 1)})
	if err := os.Chtimes(filepath.Join(dir, "next"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "next"), path); err != nil {
		t.Fatal(err)
	}
	if now := read(t, dir).UI.Print; now == before.UI.Print || now.Size != before.UI.Print.Size || now.MTime != before.UI.Print.MTime {
		t.Errorf("%v and %v", before.UI.Print, now)
	}
}

// Pipes, folders and devices under a file's name neither block nor get read.
func TestOddFilesUnderKnownNames(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, roofmt.UIName), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, roofmt.APIName)); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(dir, roofmt.ItemName), 0o700); err != nil {
		t.Fatal(err)
	}
	f := read(t, dir)
	if f.UI.State != roofmt.Unreadable || f.API.State != roofmt.Unreadable || f.Item != nil || len(f.Losses) != 3 {
		t.Errorf("UI %v, API %v, item %q, %+v", f.UI.State, f.API.State, f.Item, f.Losses)
	}
	if f.Empty() {
		t.Error("what cannot be read is not empty")
	}
	err := roofmt.Replace(context.Background(), dir, []roofmt.Replacement{{Name: roofmt.APIName, Bytes: []byte("[]")}}, roofmt.Options{})
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a link was replaced: %v", err)
	}
}

// ReadAt reads the bytes of the file, and returns io.EOF behind its end.
func TestReadAt(t *testing.T) {
	dir, text := t.TempDir(), uiList(3)
	write(t, dir, map[string]string{roofmt.UIName: text})
	d := read(t, dir).UI
	for _, c := range []struct {
		off, size, want int
		err             error
	}{{0, len(text), len(text), nil}, {7, 5, 5, nil}, {len(text) - 3, 5, 3, io.EOF}, {len(text), 1, 0, io.EOF}} {
		buf := make([]byte, c.size)
		n, err := d.ReadAt(buf, int64(c.off))
		if n != c.want || !errors.Is(err, c.err) || string(buf[:n]) != text[c.off:c.off+n] {
			t.Errorf("%d bytes at %d: got %d, %v, want %d, %v", c.size, c.off, n, err, c.want, c.err)
		}
	}
}
