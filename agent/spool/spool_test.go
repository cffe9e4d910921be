package spool_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/agent/spool"
)

// child makes a folder below the named one, says which, and waits to be killed.
func TestMain(m *testing.M) {
	dir := os.Getenv("SPOOL_TEST_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	path, err := spool.Make(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(path)
	time.Sleep(time.Minute) // the test kills it before
}

// other starts a process that holds a folder below dir.
func other(t *testing.T, dir string) (path string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SPOOL_TEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}
	}
	t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the child made no folder")
	}
	return lines.Text(), kill
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func make1(t *testing.T, dir string) string {
	t.Helper()
	path, err := spool.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spool.Remove(path) })
	return path
}

// What a killed process left goes with the next start; what a living one holds stays.
func TestDeadFoldersGo(t *testing.T) {
	dir := t.TempDir()
	dead, kill := other(t, dir)
	if err := os.WriteFile(filepath.Join(dead, "out"), []byte("much"), 0o600); err != nil {
		t.Fatal(err)
	}
	alive, _ := other(t, dir)
	mine := make1(t, dir)
	if !exists(dead) || !exists(alive) {
		t.Fatal("a folder in use was removed")
	}
	kill()
	second := make1(t, dir)
	if exists(dead) {
		t.Error("the folder of the killed process is still there")
	}
	for _, path := range []string{alive, mine, second} {
		if !exists(path) {
			t.Errorf("%s is in use and was removed", path)
		}
	}
}

func TestMakeAndRemove(t *testing.T) {
	dir := t.TempDir()
	path := make1(t, dir)
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Fatalf("got %v, %v, want no error and (runtime.GOOS = \"windows\" or info.Mode().Perm() = 0o700)",
			info, err)
	}
	if err := os.WriteFile(filepath.Join(path, "out"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // removing twice is no error
		if err := spool.Remove(path); err != nil || exists(path) {
			t.Fatalf("still there: %t, %v", exists(path), err)
		}
	}
	if err := spool.Remove(""); err != nil {
		t.Error(err)
	}
	if _, err := spool.Make(filepath.Join(dir, "missing")); err == nil {
		t.Error("a folder was made below one that does not exist")
	}
}

// Nothing else is touched: other names, files, links out, and folders that hold
// something and have no lock, unless they are old. Empty ones go: whoever is about to
// lock one makes another.
func TestOnlyOursGo(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	keep := []string{"roost-spool", "other-roost-spool-1", "roost-spool-file", "roost-spool-link", "roost-spool-new"}
	for _, name := range []string{keep[0], keep[1], keep[4], "roost-spool-old", "roost-spool-empty"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if name == "roost-spool-empty" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name, "out"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, keep[2]), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, keep[3])); err != nil {
		t.Skip(err)
	}
	old := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{"roost-spool-old", keep[0], keep[1]} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	make1(t, dir)
	for _, name := range keep {
		if !exists(filepath.Join(dir, name)) {
			t.Errorf("%s was removed", name)
		}
	}
	if !exists(filepath.Join(outside, "lock")) {
		t.Error("a file behind a link was removed")
	}
	for _, name := range []string{"roost-spool-old", "roost-spool-empty"} {
		if exists(filepath.Join(dir, name)) {
			t.Errorf("%s never got its lock and stays for ever", name)
		}
	}
}

// A lock file that is a link is not followed: it could be any file that somebody
// holds, or does not.
func TestALinkedLockIsLeftAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	dir := t.TempDir()
	victim := filepath.Join(dir, "roost-spool-x")
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(victim, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(victim, "lock")); err != nil {
		t.Fatal(err)
	}
	make1(t, dir)
	if !exists(victim) {
		t.Error("it was removed")
	}
}

// Processes that sweep all the time take nobody's folder, whenever it is made.
func TestMakingWhileOthersSweep(t *testing.T) {
	dir := t.TempDir()
	quit := make(chan struct{})
	var sweepers sync.WaitGroup
	for range 2 {
		sweepers.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				if path, err := spool.Make(dir); err != nil {
					t.Error(err)
				} else if err := spool.Remove(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		path, err := spool.Make(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "out"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := spool.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	close(quit)
	sweepers.Wait()
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// Many runs of one process begin at once, and sweep at once: none loses its folder.
func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	dead, kill := other(t, dir)
	kill()
	var mu sync.Mutex
	paths := map[string]bool{}
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			path, err := spool.Make(dir)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			paths[path] = true
		})
	}
	wait.Wait()
	if len(paths) != 16 || exists(dead) {
		t.Errorf("%d folders, the dead one is there: %t", len(paths), exists(dead))
	}
	for path := range paths {
		if !exists(path) {
			t.Errorf("%s is gone", path)
		}
		if err := spool.Remove(path); err != nil || exists(path) {
			t.Errorf("%s: got %v, want no error and not exists(path)", path, err)
		}
	}
}
