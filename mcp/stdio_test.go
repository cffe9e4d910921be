package mcp

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// endless is a line without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func TestAMessageWithoutAnEnd(t *testing.T) {
	from := &endless{}
	_, err := newLines(io.NopCloser(from), &tail{}, &atomic.Bool{}).Read(make([]byte, 10))
	if !errors.Is(err, errLong) || from.read > maxMessage+1<<20 {
		t.Errorf("%v after %d bytes", err, from.read)
	}
}

// Among any other output, a server's messages come through, each on a line of its
// own, and the rest is kept for error texts.
func TestMessagesAmongJunk(t *testing.T) {
	junk := &tail{}
	one, two, last := `{"jsonrpc":"2.0","method":"a"}`, `{"id":2,"result":{},"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":4,"error":"x"}`
	batch := "[" + one + "]"
	in := "hello\n\n" + one + "\n  " + two + "\r\n{broken}\n" + batch + "\n[]\n[3]\n" + `{"level":"info","msg":"started"}` + "\n\x1b[31mred\x1b[0m\n" + last
	out, err := io.ReadAll(newLines(io.NopCloser(strings.NewReader(in)), junk, &atomic.Bool{}))
	if want := strings.Join([]string{one, two, batch, last, ""}, "\n"); err != nil || string(out) != want {
		t.Errorf("got %q, %v, want no error and string(out) = %v", out, err, want)
	}
	if got, want := junk.lastLines(), "{broken}\n[]\n[3]\n"+`{"level":"info","msg":"started"}`+"\nred"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	rapid.Check(t, func(r *rapid.T) {
		var in, want strings.Builder
		for _, line := range rapid.SliceOf(rapid.SampledFrom([]string{one, `{"jsonrpc":"2.0","b":"` + strings.Repeat("long ", 20_000) + `"}`, "log", "", "{", "}{", "{}"})).Draw(r, "lines") {
			in.WriteString(line + "\n")
			if len(line) > 2 && line[0] == '{' {
				want.WriteString(line + "\n")
			}
		}
		out, err := io.ReadAll(newLines(io.NopCloser(strings.NewReader(in.String())), &tail{}, &atomic.Bool{}))
		if err != nil || string(out) != want.String() {
			r.Fatalf("%d bytes, want %d, %v", len(out), want.Len(), err)
		}
	})
}

func TestTheLastWords(t *testing.T) {
	errs := &tail{}
	if errs.lastLines() != "" {
		t.Error(errs.lastLines())
	}
	for _, part := range []string{"one\ntw", "o\nthree\nfour\nfive\n", "six\r\n", "sev\xffen"} {
		_, _ = errs.Write([]byte(part))
	}
	if got := errs.lastLines(); got != "three\nfour\nfive\nsix\nsev\ufffden" {
		t.Errorf("got %q, want got = \"three\\nfour\\nfive\\nsix\\nsev\\ufffden\"", got)
	}
	_, _ = errs.Write([]byte(strings.Repeat("y", 3*tailBytes)))
	if got := errs.lastLines(); len(got) > 300 || len(errs.data) > tailBytes {
		t.Errorf("%d bytes are shown, %d kept", len(got), len(errs.data))
	}
}
