package checkpoint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// The survey on disk saves work and decides nothing: whatever becomes of it, changes are
// seen.
func TestADamagedSurvey(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("a", "1")
	l.survey().Close()
	name := filepath.Join(l.data, l.k.Name(), cacheName)
	whole, err := os.ReadFile(name)
	l.must(err)
	for what, damage := range map[string]func() error{
		"gone":     func() error { return os.Remove(name) },
		"empty":    func() error { return os.WriteFile(name, nil, 0o600) },
		"cut":      func() error { return os.WriteFile(name, whole[:len(whole)-7], 0o600) },
		"other":    func() error { return os.WriteFile(name, []byte("something else"), 0o600) },
		"a folder": func() error { return errors.Join(os.RemoveAll(name), os.Mkdir(name, 0o700)) },
	} {
		t.Run(what, func(t *testing.T) {
			l.must(damage())
			l.k = l.open(Options{Git: "none"})
			l.write("a", "1")
			l.wantChange(l.during(func() { l.write("a", "2") }), "a", "1", "2")
		})
	}
	for i := range whole {
		broken := bytes.Clone(whole)
		broken[i] ^= 0x10
		if _, ok := decodeCache(broken); ok {
			t.Fatalf("a wrong byte at %d is not noticed", i)
		}
	}
}

// The survey on disk is the newest, also after another process, and not the first that
// there ever was: what it relies on is what a collection spares.
func TestTheNewestSurveyIsRemembered(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	for round := range 3 {
		name := fmt.Sprint("f", round)
		l.write(name, fmt.Sprint("content ", round))
		l.survey().Close()
		l.write(name, fmt.Sprint("and another ", round))
		s := l.survey()
		data, err := os.ReadFile(filepath.Join(l.data, l.k.Name(), cacheName))
		l.must(err)
		if list, ok := decodeCache(data); !ok || !reflect.DeepEqual(list, s.base.list) {
			t.Errorf("round %d: remembered %+v\nseen: %+v", round, list, s.base.list)
		}
		s.Close()
		l.must(l.k.Close())
		l.k = l.open(Options{Git: "none"})
	}
	did, err := l.k.Collect(t.Context(), false, true)
	l.must(err)
	if did.Removed != 3 || did.Kept != 3 { // the contents of before are nobody's
		t.Errorf("collected: %+v", did)
	}
}

// The next process reads no file again that looks as it did.
func TestTheSurveyIsRemembered(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.write("a", "1")
	l.must(os.Chtimes(l.at("a"), farPast, farPast))
	s := l.survey()
	k := l.open(Options{Git: "none"})
	k.load()
	if !reflect.DeepEqual(k.last.list, s.base.list) || len(k.last.list) != 1 {
		t.Errorf("remembered: %+v\nseen: %+v", k.last.list, s.base.list)
	}
	info, err := os.Stat(filepath.Join(l.data, l.k.Name(), cacheName))
	l.must(err)
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read the names of the user's files: %v", info.Mode())
	}
}

func TestWhenAStatIsBelieved(t *testing.T) {
	const second = int64(time.Second)
	for _, c := range []struct {
		name         string
		mtime, ctime int64
		want         bool
	}{
		{"long ago", 10, 10, true},
		{"a moment ago", 99 * second, 99 * second, false},
		{"now", 100 * second, 100 * second, false},
		{"set back a moment ago", 10, 99 * second, false},
		{"set to the future long ago", 1000 * second, 10, true},
		{"a system without change times", 10, 0, true},
		{"the same, a moment ago", 99 * second, 0, false},
	} {
		if got := (stat{mtime: c.mtime, ctime: c.ctime}).settled(100 * second); got != c.want {
			t.Errorf("%s: got %v, want got = %v", c.name, got, c.want)
		}
	}
}

// What a killed process left goes when it is old.
func TestLeftoversOfTheSurvey(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	dir := filepath.Join(l.data, l.k.Name())
	l.must(os.MkdirAll(dir, 0o700))
	for _, n := range []string{"survey-0.tmp", "survey-1.tmp", "surveyor.tmp"} {
		l.must(os.WriteFile(filepath.Join(dir, n), nil, 0o600))
		if n != "survey-1.tmp" {
			l.must(os.Chtimes(filepath.Join(dir, n), farPast, farPast))
		}
	}
	l.survey().Close()
	left, err := filepath.Glob(filepath.Join(dir, "survey*.tmp"))
	l.must(err)
	if len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}

func FuzzDecodeCache(f *testing.F) {
	e := entry{path: "a/b", stat: stat{mode: 0o644, size: 3, mtime: 1, ctime: -2, inode: 7}, named: true, held: theirs, read: 9, size: 3}
	f.Add(encodeCache([]entry{e}))
	f.Add(encodeCache(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, ok := decodeCache(data)
		if !ok {
			return
		}
		again, ok := decodeCache(encodeCache(list))
		if !ok || len(again) != len(list) || len(list) > 0 && !reflect.DeepEqual(again, list) {
			t.Errorf("%+v became %+v", list, again)
		}
	})
}

// What git says is not trusted to be well formed.
func FuzzStream(f *testing.F) {
	id := strings.Repeat("ab", 20)
	f.Add([]byte(id+" blob 3\nabc\n"+id+" missing\n"+id+" tree 0\n\n"), 3)
	f.Add([]byte(id+" blob 99999999999\nabc\n"), 0)
	f.Add([]byte("fatal: nonsense\n"), 1)
	f.Fuzz(func(t *testing.T, data []byte, take int) {
		err := stream(bufio.NewReader(bytes.NewReader(data)), func(_ [20]byte, size int64, r io.Reader) error {
			n, _ := io.CopyN(io.Discard, r, int64(take))
			if n > size {
				t.Errorf("%d bytes of %d", n, size)
			}
			return nil
		})
		var mine takeError
		if err == nil || errors.As(err, &mine) {
			t.Errorf("it ended with %v", err) // at least with io.EOF
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	for _, n := range []string{"a", "b", "c", "d"} {
		l.write(n, n)
	}
	var wg sync.WaitGroup
	for i := range 6 {
		k := l.k
		if i%2 == 1 {
			k = l.open(Options{Git: "none"})
		}
		wg.Go(func() {
			for range 3 {
				s, err := k.Survey(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				v, err := k.Hold(t.Context(), []string{"a", "b"})
				if err != nil {
					t.Error(err)
					return
				}
				if list, err := s.Changes(t.Context()); err != nil || len(list) != 0 {
					t.Errorf("changes %v, %v", list, err)
				}
				if _, err := k.Save(t.Context(), Snapshot{Task: "t", Number: 1, Files: v}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
