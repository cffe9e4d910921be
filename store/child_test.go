package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// child is what a second process of the tests does. It prints "ready", and waits
// for its standard input to end.
func child(role string) int {
	ctx := context.Background()
	fail := func(err error) int {
		fmt.Println("error:", err)
		return 1
	}
	if role == "editor" {
		if err := editorSaves(os.Getenv("STORE_TEST_TASK"), os.Getenv("STORE_TEST_FROM")); err != nil {
			return fail(err)
		}
		return 0
	}
	if role == "window" {
		if err := holdsLock(os.Getenv("STORE_TEST_FROM") + ".lock"); err != nil {
			return fail(err)
		}
		return 0
	}
	s, err := Open(Options{Root: os.Getenv("STORE_TEST_ROOT"), Sources: strings.Fields(os.Getenv("STORE_TEST_SOURCES")), Program: "second process"})
	if err != nil {
		return fail(err)
	}
	switch role {
	case "create":
		for i := range 6 {
			if err := createAndClose(ctx, s, fmt.Sprintf("%s-%d", os.Getenv("STORE_TEST_TASK"), i)); err != nil {
				return fail(err)
			}
		}
		return 0
	case "look":
		return lookOnly(ctx, s)
	}
	ref, err := s.Find(ctx, os.Getenv("STORE_TEST_TASK"))
	if err != nil {
		return fail(err)
	}
	o, err := s.Own(ctx, ref)
	if err != nil {
		return fail(err)
	}
	switch role {
	case "hold":
		fmt.Println("ready")
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return fail(err)
		}
	case "commit":
		event := task.MessageAdded{History: task.UI, Message: o.Task.State().NextMessage(), Body: task.Body{Raw: []byte(uiRow(50, "by a child"))}}
		if err := o.Task.Commit(ctx, event); err != nil {
			return fail(err)
		}
	}
	if err := o.Task.Close(ctx); err != nil {
		return fail(err)
	}
	return 0
}

func createAndClose(ctx context.Context, s *Store, id string) error {
	k, err := s.Create(ctx, task.Created{Task: id, Number: 1, CreatedAt: ts0},
		task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: []byte(uiRow(1, id))}})
	if err != nil {
		return err
	}
	return k.Close(ctx)
}

// lookOnly is what somebody does who may only read: every task can be listed and
// shown, and taking one over says which check failed.
func lookOnly(ctx context.Context, s *Store) int {
	l, err := s.List(ctx, Filter{})
	if err != nil {
		fmt.Println("list:", err)
		return 1
	}
	for _, item := range l.Items {
		ref, err := s.Find(ctx, item.Source+":"+item.ID)
		if err != nil {
			fmt.Println("find:", err)
			return 1
		}
		v, err := s.Read(ctx, ref)
		if err != nil {
			fmt.Println("read:", err)
			return 1
		}
		fmt.Println("row:", len(v.State.UI()), v.Summary.Title, len(v.Summary.Damaged))
		if err := v.Close(); err != nil {
			fmt.Println("close:", err)
		}
		_, err = s.Own(ctx, ref)
		fmt.Println("own:", err)
	}
	_, err = s.Create(ctx, task.Created{Task: "new-one"})
	fmt.Println("create:", err)
	return 0
}

// editorSaves writes a window's memory as Roo does: whole files, first the UI's,
// each under its lock, with the old file renamed away in between.
func editorSaves(dir, from string) error {
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		target := filepath.Join(dir, name)
		for try := 0; os.Mkdir(target+".lock", 0o755) != nil; try++ {
			if try == 6000 { // a minute: only a lock that stays is wrong
				return fmt.Errorf("locked out of %s", target)
			}
			time.Sleep(10 * time.Millisecond)
		}
		fresh := filepath.Join(dir, "."+name+".new_1_a.tmp")
		backup := filepath.Join(dir, "."+name+".bak_1_a.tmp")
		if err := os.WriteFile(fresh, data, 0o644); err != nil {
			return err
		}
		if err := os.Rename(target, backup); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.Rename(fresh, target); err != nil {
			return err
		}
		if err := os.Remove(backup); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.Remove(target + ".lock"); err != nil {
			return err
		}
	}
	return nil
}

// holdsLock holds a lock as a window of Roo does, until its standard input ends.
func holdsLock(lock string) error {
	if err := os.Mkdir(lock, 0o755); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, os.Remove(lock))
}

// process starts this test binary again.
func process(t testing.TB, role string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	fixture.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), append(env, "STORE_TEST_ROLE="+role, failpoint.Env+"=")...)
	for _, e := range env {
		if len(e) > len(failpoint.Env) && e[:len(failpoint.Env)] == failpoint.Env {
			cmd.Env = append(cmd.Env, e)
		}
	}
	return cmd
}

// editor lets a second process save these files into a task folder.
func editor(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	from := t.TempDir()
	for name, text := range files {
		write(t, from, name, text)
	}
	out, err := process(t, "editor", "STORE_TEST_TASK="+dir, "STORE_TEST_FROM="+from).CombinedOutput()
	if err != nil {
		t.Fatalf("editor: %v\n%s", err, out)
	}
}
