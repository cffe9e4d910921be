package catalog

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// TestPutUntilKilled is no test: the process that TestKilledWriters kills.
func TestPutUntilKilled(t *testing.T) {
	dir := os.Getenv("CATALOG_TEST_DIR")
	if dir == "" {
		t.Skip("only as a child")
	}
	db, err := Open(context.Background(), dir)
	fixture.NoError(t, err)
	for i := 0; ; i++ {
		texts := make([]string, 30)
		for j := range texts {
			texts[j] = strings.Repeat(fmt.Sprintf("round %d of the killed writer ", i), 50)
		}
		put(t, db, fmt.Sprint("task", i%5), texts...)
		fmt.Println("\nput", i)
	}
}

// Writers that are killed in the middle of a write leave whole tasks, in the old or
// the new state, and others go on.
func TestKilledWriters(t *testing.T) {
	dir := t.TempDir()
	for round := range 4 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPutUntilKilled$", "-test.v")
		cmd.Env = append(os.Environ(), "CATALOG_TEST_DIR="+dir)
		out, err := cmd.StdoutPipe()
		fixture.NoError(t, err)
		fixture.NoError(t, cmd.Start())
		lines, seen := bufio.NewScanner(out), 0
		for seen < 3+round && lines.Scan() {
			if strings.HasPrefix(lines.Text(), "put ") {
				seen++
			}
		}
		fixture.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		if seen < 3+round {
			t.Fatal("the writer did not get on")
		}
		db := opened(t, dir)
		got := found(t, db, "killed writer")
		if len(got) == 0 || len(got)%30 != 0 {
			t.Errorf("round %d: %d messages: a task is there in part", round, len(got))
		}
		put(t, db, "mine", "words of the survivor")
		if len(found(t, db, "survivor")) != 1 {
			t.Errorf("round %d: the next writer does not get on", round)
		}
	}
}
