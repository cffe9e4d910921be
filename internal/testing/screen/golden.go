package screen

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Limit is how long a test waits for a condition before it fails. Nothing is measured by it.
const Limit = time.Minute

// ROOST_GOLDEN=rewrite go test ./package makes Golden write its files. With ROOST_PICTURES=FOLDER it also draws each
// picture there, as FOLDER/NAME.svg: those of README and docs come from there.
const rewrite, pictures = "ROOST_GOLDEN", "ROOST_PICTURES"

// On starts a program on a terminal of a test. It is skipped where there are no pseudo-terminals.
func On(t testing.TB, cmd *exec.Cmd, o Options) *Terminal {
	t.Helper()
	x, err := Start(cmd, o)
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

// See waits until each of the texts is seen, and none of those after "!".
func See(t testing.TB, x *Terminal, texts ...string) *Picture {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	defer cancel()
	p, err := x.WaitFor(ctx, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Press types keys, named as in a script.
func Press(t testing.TB, x *Terminal, names string) {
	t.Helper()
	list, err := keys(names)
	for _, key := range list {
		err = errors.Join(err, x.Type(key))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Golden waits until the text of the screen is that of a file of testdata. steady replaces what differs from run to
// run (folders, ids) by something of the same width; nil changes nothing. With ROOST_GOLDEN=rewrite it writes the file
// from the screen as it is once nothing has changed for a second.
func Golden(t testing.TB, x *Terminal, name string, steady func(string) string) {
	t.Helper()
	if steady == nil {
		steady = func(s string) string { return s }
	}
	path := filepath.Join("testdata", name+".txt")
	if os.Getenv(rewrite) == "rewrite" {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(steady(x.settled(t.Context()).Text())), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	defer cancel()
	p, err := x.Wait(ctx, func(p *Picture) bool { return steady(p.Text()) == string(want) })
	if err != nil {
		t.Fatalf("the screen is not %s (-want +got):\n%s", path, cmp.Diff(string(want), steady(p.Text())))
	}
	if dir := os.Getenv(pictures); dir != "" {
		var b bytes.Buffer
		file := filepath.Join(dir, name+".svg")
		err := errors.Join(SVG(&b, []Frame{{Picture: p.with(steady)}}), os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, b.Bytes(), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// with is the picture with another text of the same width.
func (p *Picture) with(steady func(string) string) *Picture {
	out := *p
	out.Cells = slices.Clone(p.Cells)
	for y, line := range strings.Split(strings.TrimSuffix(steady(p.Text()), "\n"), "\n") {
		before, after := []rune(p.Line(y)), []rune(line)
		if len(before) != len(after) {
			continue
		}
		out.Cells[y] = slices.Clone(p.Cells[y])
		for x, at := 0, 0; x < len(out.Cells[y]) && at < len(after); x++ {
			if n := len([]rune(out.Cells[y][x].Text)); n > 0 {
				out.Cells[y][x].Text = string(after[at:min(at+n, len(after))])
				at += n
			}
		}
	}
	return &out
}

// settled is the screen once it has not changed for a second.
func (t *Terminal) settled(ctx context.Context) *Picture {
	for {
		p := t.Picture()
		soon, cancel := context.WithTimeout(ctx, time.Second)
		_, err := t.Wait(soon, func(now *Picture) bool { return !same(now, p) })
		cancel()
		if err != nil {
			return p
		}
	}
}
