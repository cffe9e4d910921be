package journal

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A checked line is read as an unchecked one, only without looking at its checksum again;
// what cannot be a commit is damage and no panic.
func TestDecodeChecked(t *testing.T) {
	line, err := EncodeCommit(Commit{Seq: 7, Epoch: 2, At: 5, By: "me", Events: []Event{Event(`{"type":"a","text":"1234567\"8\\9 0123456789"}`), Event(`{"type":"b"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	want, err := DecodeCommit(line)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeChecked(line)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v: got %s, want no error and d = \"\"", err, d)
	}
	for _, wrong := range []string{"", "\n", "{}", `{"seq":0,"epoch":1` + strings.Repeat(" ", 40), string(line[:len(line)/2]), string(bytes.Replace(line, []byte(`"events":[`), []byte(`"events":{`), 1)), string(bytes.Replace(line, []byte(`},{`), []byte(`},3,{`), 1))} {
		var damage *DamageError
		if _, err := DecodeChecked([]byte(wrong)); !errors.As(err, &damage) {
			t.Errorf("%q: got %v, want errors.As(err, &damage)", wrong, err)
		}
	}
}
