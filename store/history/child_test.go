package history_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/history"
)

func TestMain(m *testing.M) {
	if os.Getenv("HISTORY_TEST_ROOT") == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := child(context.Background()); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child changes the history of a task in a process that a failpoint kills.
func child(ctx context.Context) error {
	s, err := store.Open(store.Options{Root: os.Getenv("HISTORY_TEST_ROOT"), Program: "second process"})
	if err != nil {
		return err
	}
	ref, err := s.Find(ctx, "mine")
	if err != nil {
		return err
	}
	finish := func(context.Context) error { return nil }
	switch os.Getenv("HISTORY_TEST_DO") {
	case "rewind":
		_, finish, err = history.Rewind(ctx, s, ref, history.RewindOptions{To: "~2"})
	case "undo":
		_, _, err = actions.Undo(ctx, s, "mine", actions.Options{})
	case "switch":
		_, finish, err = history.Switch(ctx, s, ref, os.Getenv("HISTORY_TEST_BRANCH"))
	case "fork":
		_, finish, err = history.Fork(ctx, s, ref, history.ForkOptions{At: "#3"})
	}
	return errors.Join(err, finish(ctx))
}

// killed runs child in a process of its own and fails the test when the failpoint does not kill it.
func killed(t *testing.T, root, do, branch, failpoint string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "HISTORY_TEST_ROOT="+root, "HISTORY_TEST_DO="+do, "HISTORY_TEST_BRANCH="+branch, "ROOST_FAILPOINT="+failpoint)
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Fatalf("not killed: %s", out)
	}
}
