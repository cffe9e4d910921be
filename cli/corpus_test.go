package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/clitest"
	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/roofmt"
)

// Every real task folder can be listed, shown in every form and checked. Nothing
// of it reaches a terminal raw, and nothing is changed by looking.
func TestCorpusCommands(t *testing.T) {
	t.Parallel()
	folders := conformance.CorpusFolders(t, roofmt.IsFolder)
	conformance.CorpusTally(t, folders, func(t *testing.T, dir string) {
		root := filepath.Join(t.TempDir(), "root")
		roost := func(want []int, args ...string) []byte {
			t.Helper()
			a, out, errs := clitest.New(t, "ROOST_ROOT="+root, "ROOST_SOURCES="+dir)
			code := Run(context.Background(), a, args)
			if !strings.Contains(strings.Join(args, " "), "--json") {
				for _, text := range []string{out.String(), errs.String()} {
					if strings.ContainsAny(text, "\x1b\a\u009b\u202e\r") || !utf8.ValidString(text) {
						t.Errorf("%v: something that a terminal obeys got out", args)
					}
				}
			}
			for _, c := range want {
				if c == code {
					return out.Bytes()
				}
			}
			t.Fatalf("%v: exit code %d: %s", args, code, errs)
			return nil
		}
		before := sizes(t, dir)
		var list struct{ Items []api.Summary }
		unmarshal(t, roost([]int{failure.ExitDone}, "list", "--empty", "--json"), &list)
		if len(list.Items) != 1 {
			t.Fatalf("%d tasks in one folder", len(list.Items))
		}
		task := list.Items[0]
		name := task.Source + ":" + task.ID
		roost([]int{failure.ExitDone}, "list", "--empty")
		roost([]int{failure.ExitDone}, "show", name)
		roost([]int{failure.ExitDone}, "show", name, "-v", "--api")
		roost([]int{failure.ExitDone}, "show", name, "--usage")
		roost([]int{failure.ExitNotFound}, "show", name, "--journal")
		check := roost([]int{failure.ExitDone, failure.ExitDamaged}, "doctor", "--json")
		var found api.Checkup
		unmarshal(t, check, &found)
		if found.Tasks != 1 || len(found.Damaged) == 0 && len(task.Damaged) > 0 && !task.Empty {
			t.Errorf("doctor says %s; the list says %+v", check, task.Damaged)
		}
		stored(t, dir, "ui_messages.json", task.Messages.UI, roost([]int{failure.ExitDone}, "show", name, "--ui", "--json"))
		stored(t, dir, "api_conversation_history.json", task.Messages.API, roost([]int{failure.ExitDone}, "show", name, "--api", "--json"))
		var tail []json.RawMessage
		unmarshal(t, roost([]int{failure.ExitDone}, "show", name, "--ui", "--json", "--tail", "3"), &tail)
		if want := min(3, task.Messages.UI); len(tail) != want && task.Messages.UI > 0 {
			t.Errorf("%d messages in a tail of 3", len(tail))
		}
		var spent api.Totals
		unmarshal(t, roost([]int{failure.ExitDone}, "usage", "--by", "tool", "--json"), &spent)
		if diff := cmp.Diff(task.Usage, spent.Total.Usage); diff != "" && spent.Total.Requests > 0 {
			t.Errorf("the list and the usage differ: %s", diff)
		}
		var sent []struct{ Role string }
		unmarshal(t, roost([]int{failure.ExitDone}, "show", name, "--effective", "--json"), &sent)
		for i, m := range sent {
			if want := []string{"user", "assistant"}[i%2]; m.Role != want {
				t.Errorf("message %d of %d that would be sent is the %s's", i+1, len(sent), m.Role)
			}
		}
		if diff := cmp.Diff(before, sizes(t, dir)); diff != "" {
			t.Errorf("looking changed the folder: %s", diff)
		}
		if _, err := os.Stat(root); err == nil {
			t.Error("looking made a root")
		}
	})
}

// stored checks that every element is shown as the file has it. A history that was
// made from the other one stands in for a file that is not there.
func stored(t *testing.T, dir, file string, n int, shown []byte) {
	t.Helper()
	var list []json.RawMessage
	unmarshal(t, shown, &list)
	data, err := os.ReadFile(filepath.Join(dir, file))
	standsIn := n == 0 && !json.Valid(data)
	if len(list) != n && !standsIn {
		t.Errorf("%d elements of %s are shown, %d are listed", len(list), file, n)
	}
	for i, raw := range list {
		if standsIn && !bytes.Contains(raw, []byte(`"inferred":true`)) {
			t.Errorf("element %d, which stands in for %s, is not marked", i, file)
		}
	}
	if err != nil || !json.Valid(data) {
		return
	}
	for i, raw := range list {
		if !bytes.Contains(data, raw) {
			t.Errorf("element %d of %s is not shown as it is stored", i, file)
			return
		}
	}
}

func unmarshal(t *testing.T, data []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatalf("no JSON: %v: %.100s", err, data)
	}
}

func sizes(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		out[path] = info.ModTime().UnixNano() ^ info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
