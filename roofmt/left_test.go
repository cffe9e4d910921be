package roofmt

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// What interrupted writes left is named, and whose it is; what may be in use is not.
// Ours are what Sweep takes away.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	temp := func(s self, name string) string {
		return ourPrefix + "tmp_" + s.Domain + "_" + strconv.Itoa(s.PID) + "_" + s.Start + "_abcdef_" + name
	}
	for name, age := range map[string]time.Duration{
		UIName: 0, "notes.txt": time.Hour, ourPrefix + "import.json": time.Hour,
		temp(deadSelf(), UIName): 0, temp(me(), UIName): time.Hour,
		".ui_messages.json.new_1_a.tmp": 2 * time.Minute, ".ui_messages.json.bak_2_a.tmp": 2 * time.Minute, ".ui_messages.json.new_3_a.tmp": 0,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Unix(0, now.UnixMilli()*int64(time.Millisecond)+77)
	dead := deadSelf()
	lockFile(t, filepath.Join(dir, UIName), at, &owner{dead, at.UnixNano()})
	lockFile(t, filepath.Join(dir, ItemName), now.Add(-time.Minute), nil)
	lockFile(t, filepath.Join(dir, MetadataName), now, nil)
	record := ownerPath(filepath.Join(dir, APIName))
	if err := os.WriteFile(record, []byte(`{"domain":"`+dead.Domain+`","pid":`+strconv.Itoa(dead.PID)+`,"start":"1","mtime":5}`), 0o600); err != nil {
		t.Fatal(err)
	}
	listed := func() (ours, others []string) {
		list, err := Leftovers(dir, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			if l.What == "" {
				t.Errorf("%s: no word for it", l.Name)
			}
			if l.Ours {
				ours = append(ours, l.Name)
			} else {
				others = append(others, l.Name)
			}
		}
		slices.Sort(ours)
		slices.Sort(others)
		return ours, others
	}
	wantOurs := []string{filepath.Base(record), temp(deadSelf(), UIName), UIName + ".lock"}
	wantOthers := []string{".ui_messages.json.bak_2_a.tmp", ".ui_messages.json.new_1_a.tmp", ItemName + ".lock"}
	slices.Sort(wantOurs)
	ours, others := listed()
	if !slices.Equal(ours, wantOurs) || !slices.Equal(others, wantOthers) {
		t.Errorf("ours %q, want %q\nothers %q, want %q", ours, wantOurs, others, wantOthers)
	}
	if err := Sweep(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	if ours, others = listed(); len(ours) != 0 || !slices.Equal(others, wantOthers) {
		t.Errorf("after a sweep: ours %q, others %q", ours, others)
	}
	if list, err := Leftovers(filepath.Join(dir, "none"), now); err != nil || len(list) != 0 {
		t.Errorf("a folder that is not there: %v, %v", list, err)
	}
}

// A file that was removed after its folder was read is no leftover.
func TestALeftoverThatGoes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, UIName+".lock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("got %v, %v, want one entry", entries, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if l, ok := leftOf(dir, entries[0], time.Now()); ok {
		t.Errorf("got the leftover %+v, want none", l)
	}
}
