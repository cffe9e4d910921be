//go:build unix

package cli

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

// TestDamagedContentsAreNamed: a byte of each pack flips. Doctor names what is lost, the list
// shows what the journal knows, and a restore leaves the files.
func TestDamagedContentsAreNamed(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	before := strings.Repeat("before\n", 200)
	must(t, os.WriteFile(filepath.Join(s.ws, "a.txt"), []byte(before), 0o600))
	model := s.script(call("read_file", "{path: a.txt}") + call("write_to_file", `{path: a.txt, content: "after\n"}`) + finish("done"))
	r := s.roost("run", "--json", "--provider", "script", "--model", model, "--yes", "go")
	if r.code != 0 {
		t.Fatal(r.err)
	}
	id := regexp.MustCompile(`"task_id":"([^"]+)"`).FindStringSubmatch(r.out)[1]
	if r := s.roost("doctor", "--json"); r.code != 0 || !strings.Contains(r.out, `"contents":2`) {
		t.Fatalf("doctor: exit %d, want 0 and two contents read\n%s", r.code, r.out)
	}
	bundles := must1(filepath.Glob(filepath.Join(s.root, "checkpoints", "*", "bundles", "*.bundle")))
	if len(bundles) == 0 {
		t.Fatal("there is no bundle")
	}
	for _, p := range bundles {
		data := must1(os.ReadFile(p))
		index := len(data) - 20 - 57*int(binary.LittleEndian.Uint64(data[len(data)-20:]))
		for i := 16; i < index; i += 24 { // behind the head, before the index
			data[i] ^= 1
		}
		must(t, os.Chmod(p, 0o600))
		must(t, os.WriteFile(p, data, 0o600))
	}

	for _, args := range [][]string{{"doctor"}, {"doctor", id}, {"doctor", "--repair", "--json"}} {
		if r := s.roost(args...); r.code != failure.ExitDamaged || !strings.Contains(r.out, "a.txt") {
			t.Errorf("roost %s: exit %d, want %d, and the file named\n%s%s", strings.Join(args, " "), r.code, failure.ExitDamaged, r.out, r.err)
		}
	}
	if r := s.roost("checkpoint", "list", id); r.code != 0 || !strings.Contains(r.out, "c1") || !strings.Contains(r.out+r.err, "damaged") {
		t.Errorf("checkpoint list: exit %d, want the list of the journal and what is damaged\n%s%s", r.code, r.out, r.err)
	}
	if r := s.roost("checkpoint", "restore", id, "0", "--yes"); r.code != failure.ExitDamaged || !strings.Contains(r.err, "roost doctor") {
		t.Errorf("checkpoint restore: exit %d, want %d and a way on\n%s%s", r.code, failure.ExitDamaged, r.out, r.err)
	}
	if got := string(must1(os.ReadFile(filepath.Join(s.ws, "a.txt")))); got != "after\n" {
		t.Errorf("the file holds %.20q, want what stood there", got)
	}

	// The bytes come back: a repair keeps them again, and the restore works.
	must(t, os.WriteFile(filepath.Join(s.ws, "a.txt"), []byte(before), 0o600))
	if r := s.roost("doctor", "--repair"); !strings.Contains(r.out, "repaired") {
		t.Errorf("doctor --repair: nothing repaired\n%s%s", r.out, r.err)
	}
	must(t, os.WriteFile(filepath.Join(s.ws, "a.txt"), []byte("after\n"), 0o600))
	s.roost("doctor", "--repair")
	if r := s.roost("doctor"); r.code != 0 {
		t.Errorf("doctor at the end: exit %d\n%s", r.code, r.out)
	}
	if r := s.roost("checkpoint", "restore", id, "0", "--yes"); r.code != 0 || string(must1(os.ReadFile(filepath.Join(s.ws, "a.txt")))) != before {
		t.Errorf("checkpoint restore: exit %d\n%s%s", r.code, r.out, r.err)
	}
}
