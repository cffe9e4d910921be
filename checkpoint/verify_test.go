package checkpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
)

// spoil changes one byte in the first content of each bundle.
func (l *bench) spoil() {
	l.Helper()
	bundles, err := filepath.Glob(filepath.Join(l.k.dir, "bundles", "*.bundle"))
	l.must(err)
	if len(bundles) == 0 {
		l.Fatal("there is no bundle")
	}
	for _, p := range bundles {
		data, err := os.ReadFile(p)
		l.must(err)
		data[len("roost bundle 1\n")+9] ^= 0x10
		l.must(os.Chmod(p, 0o600))
		l.must(os.WriteFile(p, data, 0o600))
	}
}

// A content that was damaged on the disk is written again when the same bytes are kept again,
// and the checkpoint that had it is whole.
func TestADamagedContentIsHealed(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("a.txt", strings.Repeat("what stood there\n", 100))
	held, err := l.k.Hold(context.Background(), []string{"a.txt"})
	l.must(err)
	v := held["a.txt"]
	verify := func() error {
		t.Helper()
		check := NewVerifier(Place{Dir: filepath.Dir(l.k.dir)})
		defer check.Close()
		return check.Verify(context.Background(), l.k.name, v)
	}
	if err := verify(); err != nil {
		t.Fatalf("whole: %v", err)
	}
	l.spoil()
	if err := verify(); !errors.Is(err, ErrDamaged) {
		t.Fatalf("spoiled: %v, want that it is damaged", err)
	}
	// Another process keeps the same bytes.
	next := l.open(Options{Git: "none"})
	again, err := next.Hold(context.Background(), []string{"a.txt"})
	l.must(err)
	if again["a.txt"].Blob != v.Blob {
		t.Fatalf("kept as %s, want %s", again["a.txt"].Blob, v.Blob)
	}
	if err := verify(); err != nil {
		t.Errorf("kept again: %v", err)
	}
	if data, err := next.Content(context.Background(), v, 0); err != nil || !strings.HasPrefix(string(data), "what stood there\n") {
		t.Errorf("content %.20q, %v", data, err)
	}
}

func TestVerifyTellsWhatIsMissing(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	check := NewVerifier(Place{Dir: filepath.Dir(l.k.dir)})
	defer check.Close()
	if err := check.Verify(context.Background(), l.k.name, api.FileVersion{Kind: api.KindFile, Blob: strings.Repeat("ab", 20), Hash: strings.Repeat("cd", 32)}); !errors.Is(err, ErrUnkept) {
		t.Errorf("%v, want that it is not kept", err)
	}
	if err := check.Verify(context.Background(), l.k.name, api.FileVersion{Kind: api.KindGone}); err != nil {
		t.Errorf("a version without content: %v", err)
	}
	if err := check.Verify(context.Background(), "../evil", api.FileVersion{Kind: api.KindFile, Blob: "b"}); err == nil {
		t.Error("a name that leads elsewhere was taken")
	}
}
