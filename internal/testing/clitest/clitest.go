package clitest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/app"
)

// New is an App without a terminal, and what it writes.
func New(t *testing.T, env ...string) (a *app.App, out, errs *bytes.Buffer) {
	t.Helper()
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	vars := map[string]string{"HOME": t.TempDir(), "ROOST_SOURCES": "none"}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		vars[name] = value
	}
	now := time.Date(2026, 4, 20, 12, 0, 0, 0, time.UTC)
	return &app.App{
		In: strings.NewReader(""), Out: out, Err: errs, Env: func(name string) string { return vars[name] }, Dir: t.TempDir(),
		Now: func() time.Time { return now },
	}, out, errs
}
