//go:build unix

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/cli/failure"
)

// huge puts a task of some megabytes into the storage, of rows that take a while to set.
func (s *sandbox) huge(id string, rows int) {
	s.t.Helper()
	s.foreign(id, "words", 1_776_200_000_000)
	var ui bytes.Buffer
	words := strings.Repeat("so **many** words, `code` and more of them; ", 40)
	ui.WriteString(`[{"ts":1776200000000,"type":"say","say":"text","text":"go"}`)
	for range rows {
		ui.WriteString(`,{"ts":1776200000001,"type":"say","say":"text","text":"` + words + `"}`)
	}
	ui.WriteString("]")
	name := filepath.Join(s.store, "tasks", id, "ui_messages.json")
	must(s.t, os.WriteFile(name, ui.Bytes(), 0o600))
	must(s.t, os.Chtimes(name, yesterday, yesterday))
}

// exporting starts an export into a folder that holds an older one, and waits until it
// writes.
func (s *sandbox) exporting(dir string, flags ...string) *background {
	s.t.Helper()
	b := &background{s: s, cmd: s.command(append(flags, "export", "huge", "--format", "html", "-o", filepath.Join(dir, "page.html"))...)}
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.err
	must(s.t, b.cmd.Start())
	s.t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	s.within(time.Minute, "an export that writes", func() bool {
		names, err := filepath.Glob(filepath.Join(dir, ".roost-export-*"))
		must(s.t, err)
		for _, name := range names {
			if info, err := os.Stat(name); err == nil && info.Size() > 0 {
				return true
			}
		}
		return false
	})
	return b
}

func (s *sandbox) files(dir string) (out []string) {
	s.t.Helper()
	list, err := os.ReadDir(dir)
	must(s.t, err)
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// A signal in the middle of an export ends it with its code, leaves the older page as it
// is, and nothing beside it.
func TestSignalsDuringAnExportLeaveNothing(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.huge("huge", 12_000)
	for _, tt := range []struct {
		sig  syscall.Signal
		exit int
	}{{syscall.SIGINT, failure.ExitInterrupt}, {syscall.SIGTERM, failure.ExitTerminated}} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "page.html"), []byte("old"), 0o600))
		b := s.exporting(dir)
		must(t, b.cmd.Process.Signal(tt.sig))
		if got := b.ends(time.Minute); got != tt.exit {
			t.Errorf("%v: exit code %d, want %d:\n%s", tt.sig, got, tt.exit, &b.err)
		}
		if d := cmp.Diff([]string{"page.html"}, s.files(dir)); d != "" {
			t.Errorf("%v: got %s, want d = \"\"", tt.sig, d)
		}
		if page, err := os.ReadFile(filepath.Join(dir, "page.html")); err != nil || string(page) != "old" {
			t.Errorf("%v: the page is %.20q, %v", tt.sig, page, err)
		}
		for _, want := range []string{"export huge", "it was interrupted; what was not finished is removed", "try: roost export huge"} {
			if !strings.Contains(b.err.String(), want) {
				t.Errorf("%v: stderr lacks %q:\n%s", tt.sig, want, &b.err)
			}
		}
	}
}

// A killed export leaves one unfinished file, which the next export into that folder
// removes.
func TestAKilledExportIsSweptByTheNext(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.huge("huge", 12_000)
	s.foreign("small", "words", 1_776_200_000_000)
	dir := t.TempDir()
	b := s.exporting(dir)
	must(t, b.cmd.Process.Kill())
	b.ends(time.Minute)
	if got := s.files(dir); len(got) != 1 || !strings.HasPrefix(got[0], ".roost-export-") {
		t.Fatalf("after the kill: %v", got)
	}
	if r := s.roost("export", "small", "--format", "md", "-o", filepath.Join(dir, "small.md")); r.code != failure.ExitDone {
		t.Fatalf("got %+v, want r.code = failure.ExitDone", r)
	}
	if d := cmp.Diff([]string{"small.md"}, s.files(dir)); d != "" {
		t.Error(d)
	}
}
