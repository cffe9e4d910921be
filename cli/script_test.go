package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/roost-dev/roost/config"
)

// exits CODE COMMAND ARG...: the command must end with exactly that exit code.
// Its output goes into the files out and err of the work folder.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir = ts.Getenv("WORK")
	names := []string{"GORACE", "PATH", "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "NO_COLOR", "TMPDIR", "ROOST_CONFIG", "ROOST_FAILPOINT", "TEMPL_DEV_MODE", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
	for _, k := range config.Keys {
		names = append(names, k.Env)
	}
	for _, name := range names {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%s: got %v, want no error or errors.As(err, &exit)", args[1], err)
	}
	ts.Logf("[stdout]\n%s[stderr]\n%s", out.String(), errs.String())
	write(ts, "out", out.Bytes())
	write(ts, "err", errs.Bytes())
	if got := cmd.ProcessState.ExitCode(); got != code(ts, args[0]) {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// matches FILE PATH REGEXP: the value at a path of a JSON document matches. The
// last line is taken of NDJSON. A path is keys and indexes joined by dots; len is
// how many elements there are.
func matches(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: matches FILE PATH REGEXP")
	}
	text := strings.TrimSpace(ts.ReadFile(args[0]))
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		text = text[strings.LastIndex(text, "\n")+1:]
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			ts.Fatalf("%s: got %v, want no error", args[0], err)
		}
	}
	for _, key := range strings.Split(args[1], ".") {
		switch in := v.(type) {
		case map[string]any:
			member, ok := in[key]
			if !ok {
				ts.Fatalf("%s: no member %q of %s", args[0], key, args[1])
			}
			v = member
		case []any:
			if key == "len" {
				v = len(in)
				break
			}
			if i := code(ts, key); i < len(in) {
				v = in[i]
			} else {
				ts.Fatalf("%s: no element %s of %s", args[0], key, args[1])
			}
		default:
			ts.Fatalf("%s: %s ends before %q", args[0], args[1], key)
		}
	}
	got, err := json.Marshal(v)
	ts.Check(err)
	if regexp.MustCompile(args[2]).Match(got) == neg {
		ts.Fatalf("%s: %s is %s, want (neg=%v) %s", args[0], args[1], got, neg, args[2])
	}
}
