package idempotency

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
)

// What a kill leaves of a key's file is an intent, or an answer that was given to nobody:
// the repeat does what is left to do, and an answer is kept for a day.
func TestWhatAKeysFileHolds(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := New(filepath.Join(t.TempDir(), "keys"), func() time.Time { return now }, nil)
	begin := func(print string) (*Request, *Answer, error) {
		return d.Begin(t.Context(), "k", "POST /x", print)
	}
	one, done, err := begin("a")
	if err != nil || done != nil || one.Again {
		t.Fatal(one, done, err)
	}
	file := one.taken.(takenFile).file.Name()
	if err := one.Leave(); err != nil { // as a kill does
		t.Fatal(err)
	}
	if _, _, err := begin("b"); !errors.Is(err, ErrOther) {
		t.Errorf("another request under the key of an intent: %v", err)
	}
	if one, done, err = begin("a"); err != nil || done != nil || !one.Again {
		t.Fatal(one, done, err)
	}
	want := Answer{Status: 201, Head: map[string]string{"Location": "/x/1"}, Body: "{\"a\":\"é\\n\"}\n", Follow: &service.Follow{Task: "t", Run: "r", From: "1.2-3"}}
	if err := one.Finish(want); err != nil {
		t.Fatal(err)
	}
	whole := fixture.Must[[]byte](t)(os.ReadFile(file))
	intentEnd := strings.IndexByte(string(whole), '\n') + 1
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(file, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		one, done, err := begin("a")
		switch {
		case err != nil:
			t.Fatalf("cut at %d: %v", cut, err)
		case cut == len(whole):
			if got := fixture.Must[[]byte](t)(json.Marshal(done)); string(got) != string(fixture.Must[[]byte](t)(json.Marshal(want))) {
				t.Fatalf("got %s, want string(got) = string(fixture.Must[[]byte](t)(json.Marshal(want)))", got)
			}
		case done != nil || one.Again != (cut >= intentEnd):
			t.Fatalf("cut at %d: %+v %+v", cut, one, done)
		}
		if one != nil {
			if err := one.Finish(Answer{Status: 200}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A line that says nothing is no answer.
	if err := os.WriteFile(file, append(whole[:intentEnd:intentEnd], "{}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if one, done, err = begin("a"); err != nil || done != nil || !one.Again {
		t.Fatal(one, done, err)
	}
	if err := one.Leave(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(keptFor + time.Second)
	if one, done, err = begin("b"); err != nil || done != nil || one.Again {
		t.Errorf("behind a day: %+v %+v %v", one, done, err)
	}
	if err := one.Forget(); err != nil {
		t.Fatal(err)
	}
	if one, done, err = begin("c"); err != nil || done != nil || one.Again {
		t.Errorf("a forgotten one: %+v %+v %v", one, done, err)
	}
	if err := one.Leave(); err != nil {
		t.Fatal(err)
	}
	old := now.Add(-keptFor - time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	now = now.Add(cleanedEvery + time.Second)
	if one, _, err = d.Begin(t.Context(), "other", "POST /x", "a"); err != nil {
		t.Fatal(err)
	}
	defer one.Leave()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file of a key from long ago stays: %v", err)
	}
}
