package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/mcptest"
)

// A key that is typed is not shown, and the terminal is as it was afterwards, also
// when the person thinks better of it.
func TestAKeyIsTypedUnseen(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	kept := filepath.Join(s.dir, "home", ".config", "roost", "auth.toml")
	echoes := func(x *terminal) bool {
		state, err := unix.IoctlGetTermios(int(x.Device().Fd()), unix.TCGETS)
		must(t, err)
		return state.Lflag&unix.ECHO != 0
	}
	quiet := func(x *terminal) { // the prompt comes before the echo goes
		for limit := time.Now().Add(time.Minute); echoes(x); time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatal("the terminal still shows what is typed")
			}
		}
	}
	x := s.onTerminal("auth", "set", "anthropic")
	x.expect("key for anthropic (not shown): ")
	quiet(x)
	x.press("sk-ant-typed-0123456789\n")
	x.expect("is kept in")
	screen := x.exits(failure.ExitDone)
	if strings.Contains(screen, "0123456789") || !echoes(x) {
		t.Errorf("the key is on the screen, or the terminal stays silent:\n%s", screen)
	}
	data, err := os.ReadFile(kept)
	if err != nil || string(data) != "anthropic = \"sk-ant-typed-0123456789\"\n" {
		t.Errorf("kept: %v %q", err, data)
	}

	x = s.onTerminal("auth", "set", "openai")
	x.expect("(not shown): ")
	quiet(x)
	must(t, x.cmd.Process.Signal(syscall.SIGINT))
	x.expect("nothing was changed")
	x.exits(failure.ExitInterrupt)
	if !echoes(x) {
		t.Error("the terminal stays silent")
	}
	x = s.onTerminal("auth", "set", "openai")
	x.expect("(not shown): ")
	quiet(x)
	x.press("\x04") // Ctrl-D
	x.expect("there is no key")
	x.exits(failure.ExitUsage)
	x = s.onTerminal("auth", "set", "openai", "--no-input")
	x.expect("stdin is a terminal")
	x.exits(failure.ExitInput)
	if again, err := os.ReadFile(kept); err != nil || string(again) != string(data) {
		t.Errorf("the file changed: %v %q", err, again)
	}
}

// named makes a task of another tool that names a profile.
func (s *sandbox) named(id, profile string) {
	s.t.Helper()
	s.foreign(id, "tidy the shed", 1776100000000)
	name := filepath.Join(s.store, "tasks", id, "history_item.json")
	data, err := json.Marshal(map[string]any{"id": id, "number": 1, "ts": 1776100000000, "task": "tidy the shed", "workspace": s.ws, "apiConfigName": profile})
	must(s.t, err)
	must(s.t, os.WriteFile(name, data, 0o600))
	must(s.t, os.Chtimes(name, yesterday, yesterday))
}

// Who answers in place of a profile that is not known is asked once for a source.
func TestAnUnknownProfileIsAskedForOnce(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.named("one", "deepseek")
	s.named("two", "deepseek")
	for key, value := range map[string]string{"profiles.play.provider": "script", "profiles.play.model": s.script(finish("the shed is tidy"))} {
		if r := s.roost("config", "set", key, value); r.code != 0 {
			t.Fatal(r.err)
		}
	}
	x := s.onTerminal("resume", "one", "go on")
	x.expect(`profile "deepseek" is known only to its editor`)
	x.expect("1. profile play: script")
	x.expect("a number (q stops) > ")
	x.press("\n")
	x.expect("Enter alone is not an answer")
	x.press("7\n")
	x.expect("one of the numbers")
	x.press("q\n")
	x.expect("config set source_profiles.store-")
	x.exits(failure.ExitConfig)
	if _, err := os.Stat(filepath.Join(s.root, "adopted")); err == nil {
		t.Error("a task that nobody answers was taken over")
	}

	x = s.onTerminal("resume", "one", "go on")
	x.expect("a number (q stops) > ")
	x.press("1\n")
	x.expect("remembered; roost config set source_profiles.store-")
	x.expect(`"deepseek" is not known here: play is used in its place`)
	x.expect("the shed is tidy")
	x.exits(failure.ExitDone)

	r := s.roost("resume", "two", "go on") // nobody is asked again, with a terminal or without
	if r.code != failure.ExitDone || !strings.Contains(r.err, "play is used in its place") {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
	item, err := os.ReadFile(filepath.Join(s.store, "tasks", "two", "history_item.json"))
	if err != nil || !strings.Contains(string(item), `"apiConfigName":"deepseek"`) {
		t.Errorf("the task's own profile is lost: %v %s", err, item)
	}
}

// Who only looks at what would be sent need not choose who answers: somebody known here is
// assumed, and that is said. Nothing is remembered of it.
func TestContextOfAnUnknownProfile(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.named("one", "deepseek")
	if r := s.roost("show", "one", "--context"); r.code != failure.ExitConfig || !strings.Contains(r.err, `the profile "deepseek"`) {
		t.Errorf("with nobody: exit %d\n%s", r.code, r.err)
	}
	for key, value := range map[string]string{"profiles.play.provider": "script", "profiles.play.model": s.script(finish("the shed is tidy"))} {
		if r := s.roost("config", "set", key, value); r.code != 0 {
			t.Fatal(r.err)
		}
	}
	r := s.roost("show", "one", "--context")
	if r.code != failure.ExitDone || !strings.Contains(r.out, "the next request has about") || !strings.Contains(r.err, `profile "deepseek" is not known here; this is as if play answered`) {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if r := s.roost("resume", "one", "go on"); r.code != failure.ExitConfig {
		t.Errorf("what was assumed for looking holds for running: exit %d\n%s", r.code, r.err)
	}
}

// A key of a profile goes to that profile's server, and to no other.
func TestAProfilesKeyGoesToItsServer(t *testing.T) {
	t.Parallel()
	here, seenHere := provider(t, 401, "authentication_error")
	there, seenThere := provider(t, 401, "authentication_error")
	s := newSandbox(t)
	s.env("ANTHROPIC_API_KEY=sk-general-0123456789", "ANTHROPIC_BASE_URL="+here)
	for key, value := range map[string]string{"profiles.work.provider": "anthropic", "profiles.work.model": "claude-opus-4-1", "profiles.work.base_url": there} {
		if r := s.roost("config", "set", key, value); r.code != 0 {
			t.Fatal(r.err)
		}
	}
	cmd := s.command("auth", "set", "--profile", "work")
	cmd.Stdin = strings.NewReader("sk-of-work-0123456789")
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "0123456789") {
		t.Fatalf("got %v %s, want no error and not strings.Contains(string(out), \"0123456789\")", err, out)
	}
	r := s.roost("run", "--profile", "work", "hello")
	if got := seenThere(); len(got) == 0 || got[0] != (asked{"sk-of-work-0123456789", "claude-opus-4-1", "/v1/messages"}) {
		t.Errorf("the profile's server was asked with %+v\n%s", got, r.err)
	}
	s.roost("run", "hello")
	if got := seenHere(); len(got) == 0 || got[0].key != "sk-general-0123456789" {
		t.Errorf("the provider's server was asked with %+v", got)
	}
	for _, a := range append(seenHere(), seenThere()...) {
		if (a.key == "sk-of-work-0123456789") != (a.model == "claude-opus-4-1") {
			t.Errorf("a key went astray: %+v", a)
		}
	}
	// The key is gone: no other takes its place.
	if r := s.roost("auth", "remove", "--profile", "work"); r.code != failure.ExitDone {
		t.Fatal(r.err)
	}
	before := len(seenThere())
	id := ""
	var list struct{ Items []struct{ ID, Model string } }
	must(t, json.Unmarshal([]byte(s.roost("list", "--json").out), &list))
	for _, i := range list.Items {
		if i.Model == "claude-opus-4-1" {
			id = i.ID
		}
	}
	if r := s.roost("resume", id, "go on"); r.code != failure.ExitConfig || !strings.Contains(r.err, "auth set --profile work") || len(seenThere()) != before {
		t.Errorf("exit %d, %d requests more\n%s", r.code, len(seenThere())-before, r.err)
	}
}

// On a terminal the browser is opened only after a y; Enter prints the page alone.
func TestMCPLoginOpensABrowserOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	server := mcptest.New("")
	o := mcptest.NewOAuth(server)
	t.Cleanup(func() { mcptest.Hangup(server); o.Close() })
	s := newSandbox(t)
	bin, opened := filepath.Join(s.dir, "bin"), filepath.Join(s.dir, "opened")
	must(t, os.MkdirAll(bin, 0o700))
	must(t, os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\necho \"$1\" >"+opened+".part && mv "+opened+".part "+opened+"\n"), 0o700))
	s.env("PATH=" + bin + ":" + os.Getenv("PATH"))
	if r := s.roost("mcp", "add", "web", "--url", o.URL+"/mcp"); r.code != 0 {
		t.Fatalf("got exit %d, want 0\n%s", r.code, r.err)
	}
	x := s.onTerminal("mcp", "login", "web")
	x.expect("wants you to log in at " + o.URL)
	x.expect("open it in your browser?")
	x.press("\n")
	x.expect("waiting for the browser")
	must(t, x.cmd.Process.Signal(os.Interrupt))
	x.expect("nothing was kept")
	x.exits(failure.ExitInterrupt)
	if _, err := os.Stat(opened); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want no browser after Enter", err)
	}
	x = s.onTerminal("mcp", "login", "web")
	x.expect("open it in your browser?")
	x.press("y\n")
	x.expect("waiting for the browser")
	page, err := os.ReadFile(opened)
	must(t, err)
	res, err := http.Get(strings.TrimSpace(string(page))) //nolint:noctx // the person's browser
	must(t, err)
	must(t, res.Body.Close())
	x.expect("logged in: web")
	x.exits(failure.ExitDone)
}
