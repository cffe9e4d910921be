package roofmt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/roofmt"
)

// The test binary plays two other programs when asked to: a live editor, and a writer of ours that is killed.
func TestMain(m *testing.M) {
	switch os.Getenv("ROOFMT_TEST_ROLE") {
	case "editor":
		os.Exit(editor(os.Getenv("ROOFMT_TEST_DIR")))
	case "writer":
		if err := replaceBoth(os.Getenv("ROOFMT_TEST_DIR"), 3); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func apiList(n int) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(apiRow, i, 1000+i)
	}
	return "[" + strings.Join(rows, ",") + "]"
}

func replaceBoth(dir string, n int) error {
	return roofmt.Replace(context.Background(), dir, []roofmt.Replacement{
		{Name: roofmt.UIName, Bytes: []byte(uiList(n))}, {Name: roofmt.APIName, Bytes: []byte(apiList(n))},
	}, roofmt.Options{})
}

// editor writes as Roo does, under the lock, checking each time that the lock stayed its own, until its input ends.
func editor(dir string) int {
	target := filepath.Join(dir, roofmt.UIName)
	var enough atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		enough.Store(true)
	}()
	saves := 0
	for n := 1; saves < 100 || !enough.Load(); n = n%40 + 1 {
		if err := os.Mkdir(target+".lock", 0o700); err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		info, err := os.Stat(target + ".lock")
		if err != nil {
			fmt.Println("stolen: the lock is gone", err)
			return 1
		}
		ms := time.Now().UnixMilli()
		fresh := filepath.Join(dir, fmt.Sprintf(".%s.new_%d_ab.tmp", roofmt.UIName, ms))
		bak := filepath.Join(dir, fmt.Sprintf(".%s.bak_%d_ab.tmp", roofmt.UIName, ms))
		steps := []func() error{
			func() error { return os.WriteFile(fresh, []byte(uiList(n)), 0o600) },
			func() error { return os.Rename(target, bak) },
			func() error { return os.Rename(fresh, target) },
			func() error { return os.Remove(bak) },
		}
		for i, step := range steps {
			if err := step(); err != nil {
				fmt.Println("step", i, err)
				return 1
			}
		}
		again, err := os.Stat(target + ".lock")
		if err != nil || !os.SameFile(info, again) || !again.ModTime().Equal(info.ModTime()) {
			fmt.Println("stolen: the lock is another one", err)
			return 1
		}
		if err := os.Remove(target + ".lock"); err != nil {
			fmt.Println("unlock", err)
			return 1
		}
		saves++
		time.Sleep(time.Duration(n%4) * time.Millisecond) // an editor thinks between its saves
	}
	fmt.Println("saves", saves)
	return 0
}

func role(name, dir string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "ROOFMT_TEST_ROLE="+name, "ROOFMT_TEST_DIR="+dir), env...)
	return cmd
}

func TestReplaceBesideLiveEditor(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{roofmt.UIName: uiList(1), roofmt.APIName: apiList(1)})
	cmd := role("editor", dir)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var owners sync.WaitGroup
	replaced, refused, reads, recovered := 0, 0, 0, 0
	var some sync.WaitGroup // of our writes and reads
	some.Add(2)
	wrote, looked := sync.OnceFunc(some.Done), sync.OnceFunc(some.Done)
	owners.Go(func() {
		defer wrote()
		for n := 1; ; n = n%40 + 1 {
			select {
			case <-done:
				return
			default:
			}
			err := replaceBoth(dir, n)
			if err != nil && !errors.Is(err, roofmt.ErrLocked) {
				t.Errorf("Replace: %v", err)
				return
			}
			if err == nil {
				replaced++
			} else {
				refused++ // the editor had the lock at each of our looks, and may have it at the next ones
			}
			if replaced+refused == 10 {
				wrote()
			}
			time.Sleep(time.Millisecond)
		}
	})
	owners.Go(func() {
		defer looked()
		for {
			select {
			case <-done:
				return
			default:
			}
			f, err := roofmt.Read(context.Background(), dir)
			if err != nil {
				t.Errorf("Read: %v", err)
				return
			}
			if reads++; reads == 100 {
				looked()
			}
			if f.UI.Recovered() {
				recovered++
			}
			if f.UI.Len() == 0 || f.UI.State != roofmt.Present && !f.UI.Recovered() || f.API.State != roofmt.Present {
				t.Errorf("state %v from %q, API %v, losses %+v", f.UI.State, f.UI.Source, f.API.State, f.Losses)
			}
			_ = f.Close()
		}
	})
	some.Wait()
	_ = in.Close()
	err = cmd.Wait()
	close(done)
	owners.Wait()
	if err != nil {
		t.Fatalf("editor: %v\n%s", err, &out)
	}
	t.Logf("editor %s; %d of our writes and %d refused, %d reads, %d of them in the editor's own gap", strings.TrimSpace(out.String()), replaced, refused, reads, recovered)
	if err := replaceBoth(dir, 7); err != nil {
		t.Errorf("Replace without the editor: %v", err)
	}
	assertClean(t, dir, roofmt.UIName, roofmt.APIName)
}

func assertClean(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(want) {
		t.Errorf("something was left: %v", entries)
	}
}

func TestKilledWriterLeavesWholeFiles(t *testing.T) {
	for point, replaced := range map[string]bool{"project.temp": false, "project.renamed": true} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{roofmt.UIName: uiList(1), roofmt.APIName: apiList(1)})
			out, err := role("writer", dir, failpoint.Env+"="+point).CombinedOutput()
			if err == nil {
				t.Fatalf("the writer was not killed: %s", out)
			}
			f := read(t, dir)
			if f.UI.State != roofmt.Present || f.API.State != roofmt.Present || damaged(f) {
				t.Fatalf("UI %v, API %v, %+v", f.UI.State, f.API.State, f.Losses)
			}
			// Locks and renames go by name: the API list comes first.
			if (f.API.Len() == 3) != replaced || f.UI.Len() != 1 {
				t.Errorf("API %d, UI %d messages", f.API.Len(), f.UI.Len())
			}
			if entries, _ := os.ReadDir(dir); len(entries) <= 2 {
				t.Fatal("the kill left nothing to clean, so this test shows nothing")
			}
			// Our next write neither waits for the dead locks nor keeps the leftovers.
			start := time.Now()
			if err := replaceBoth(dir, 5); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > 15*time.Second { // half of what makes a lock stale
				t.Errorf("the next write took %v", took)
			}
			assertClean(t, dir, roofmt.UIName, roofmt.APIName)
		})
	}
}

func TestReplaceExpect(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{roofmt.UIName: uiList(1)})
	f := read(t, dir)
	expect, absent := f.UI.Print, roofmt.Fingerprint{}
	var after roofmt.Fingerprint
	err := roofmt.Replace(context.Background(), dir, []roofmt.Replacement{
		{Name: roofmt.UIName, Bytes: []byte(uiList(2)), Expect: &expect, Done: &after},
		{Name: roofmt.APIName, Bytes: []byte(`[]`), Expect: &absent},
	}, roofmt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir).UI; got.Print != after || got.Len() != 2 {
		t.Errorf("the file is %v, Done says %v", got.Print, after)
	}
	// Both expectations are now wrong; nothing may be replaced, not even a file without one.
	for _, bad := range []roofmt.Replacement{
		{Name: roofmt.UIName, Bytes: []byte(`[]`), Expect: &expect},
		{Name: roofmt.UIName, Bytes: []byte(`[]`), Expect: &absent},
	} {
		before := listing(t, dir)
		err := roofmt.Replace(context.Background(), dir, []roofmt.Replacement{{Name: roofmt.APIName, Bytes: []byte(`[1]`)}, bad}, roofmt.Options{})
		if !errors.Is(err, roofmt.ErrChanged) || !strings.Contains(err.Error(), roofmt.UIName) {
			t.Errorf("error %v", err)
		}
		if got := listing(t, dir); got != before {
			t.Errorf("it changed:\n%s\n%s", before, got)
		}
	}
}

func TestReplaceLocked(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{roofmt.UIName: uiList(1)})
	lock := filepath.Join(dir, roofmt.UIName+".lock")
	if err := os.Mkdir(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	err := roofmt.Replace(context.Background(), dir, []roofmt.Replacement{{Name: roofmt.UIName, Bytes: []byte(`[]`)}}, roofmt.Options{})
	if !errors.Is(err, roofmt.ErrLocked) {
		t.Errorf("a live lock: %v", err)
	}
	assertClean(t, dir, roofmt.UIName, lock)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err = roofmt.Replace(ctx, dir, []roofmt.Replacement{{Name: roofmt.UIName, Bytes: []byte(`[]`)}}, roofmt.Options{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the context ends the wait: %v", err)
	}
	old := time.Now().Add(-32 * time.Second)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	if err := roofmt.Replace(context.Background(), dir, []roofmt.Replacement{{Name: roofmt.UIName, Bytes: []byte(`[]`)}}, roofmt.Options{}); err != nil {
		t.Errorf("a stale lock: %v", err)
	}
	assertClean(t, dir, roofmt.UIName)
}

func TestReplaceFailures(t *testing.T) {
	dir := t.TempDir()
	boom := errors.New("boom")
	put := func(list ...roofmt.Replacement) error {
		return roofmt.Replace(context.Background(), dir, list, roofmt.Options{})
	}
	if err := put(roofmt.Replacement{Name: roofmt.UIName, Write: func(io.Writer) error { return boom }}); !errors.Is(err, boom) {
		t.Errorf("Write's error: %v", err)
	}
	for _, name := range []string{"", ".", "..", "../x", "a/b", ".hidden", "a\\b", "x.lock"} {
		if err := put(roofmt.Replacement{Name: name}); err == nil {
			t.Errorf("the name %q was taken", name)
		}
	}
	if err := put(roofmt.Replacement{Name: "a"}, roofmt.Replacement{Name: "a"}); err == nil {
		t.Error("one file twice")
	}
	assertClean(t, dir)
	missing := filepath.Join(dir, "new")
	if err := roofmt.Replace(context.Background(), missing, []roofmt.Replacement{{Name: "a"}}, roofmt.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	if err := roofmt.Replace(context.Background(), missing, []roofmt.Replacement{{Name: "a"}}, roofmt.Options{Create: true}); err != nil {
		t.Error(err)
	}
}

func TestReplaceConcurrently(t *testing.T) {
	dir := t.TempDir()
	var owners sync.WaitGroup
	for w := range 4 {
		owners.Go(func() {
			for i := range 10 {
				if err := replaceBoth(dir, 1+w*10+i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	owners.Wait()
	// Both files are renamed under one hold of the folder, so they are of the same writer.
	f := read(t, dir)
	if damaged(f) || f.UI.Len() != f.API.Len() {
		t.Errorf("UI %d, API %d, %+v", f.UI.Len(), f.API.Len(), f.Losses)
	}
	assertClean(t, dir, roofmt.UIName, roofmt.APIName)
}

// Whoever writes the file in place right after us, with as many bytes and in the same tick of the clock, is noticed: no
// write has a time as old as ours.
func TestAWriteInTheSameTickIsNotTakenForOurs(t *testing.T) {
	dir := t.TempDir()
	var print roofmt.Fingerprint
	tick := time.Now().Add(-20 * time.Millisecond) // the kernel's clock may be that late
	replace := func(text string, expect *roofmt.Fingerprint) error {
		return roofmt.Replace(t.Context(), dir, []roofmt.Replacement{{Name: roofmt.UIName, Bytes: []byte(text), Expect: expect, Done: &print}}, roofmt.Options{})
	}
	if err := replace("[1]", nil); err != nil {
		t.Fatal(err)
	}
	ours, file := print, filepath.Join(dir, roofmt.UIName)
	if now, err := roofmt.Prints(dir); err != nil || now[roofmt.UIName] != ours {
		t.Fatalf("it stands as %v (%v), and we were told %v", now[roofmt.UIName], err, ours)
	}
	if err := os.WriteFile(file, []byte("[2]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil {
		t.Fatal(err)
	} else if info.ModTime().After(tick) { // the earliest that it may have
		if err := os.Chtimes(file, tick, tick); err != nil {
			t.Fatal(err)
		}
	}
	if ours.MTime >= tick.UnixNano() {
		t.Errorf("ours is of %v, and a write before the next tick may be of %v", time.Unix(0, ours.MTime), tick)
	}
	if err := replace("[3]", &ours); !errors.Is(err, roofmt.ErrChanged) {
		t.Errorf("what another program wrote was replaced: %v", err)
	}
}

func TestWriteArray(t *testing.T) {
	var b strings.Builder
	err := roofmt.WriteArray(&b, func(yield func(roofmt.Element, error) bool) {
		_ = yield(roofmt.Element{Raw: []byte("{ \"a\" : 1.0 }")}, nil) &&
			yield(roofmt.Element{Raw: []byte(`{ "a" : 1.0, "b":"\u0041" }`), Made: true}, nil)
	})
	if want := `[{"a":1.0},{"a":1,"b":"A"}]`; err != nil || b.String() != want || !json.Valid([]byte(b.String())) {
		t.Errorf("%s (%v), want %s", &b, err, want)
	}
	if err := roofmt.WriteArray(io.Discard, func(yield func(roofmt.Element, error) bool) {
		yield(roofmt.Element{Raw: []byte(`{`)}, nil)
	}); err == nil {
		t.Error("a broken element was written")
	}
}
