//go:build linux

package shell

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/process"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// TestFindAndEndAfterTheEngineDied kills a process that runs a command, and then
// finds and ends the command from here, as a resume does.
func TestFindAndEndAfterTheEngineDied(t *testing.T) {
	for _, line := range []string{
		"sleep 300",
		"setsid sleep 300 & exec sleep 0.1",
		"sleep 300 & trap '' TERM; while :; do sleep 1; done",
		"env -i sleep 300 & exec sleep 300",
	} {
		t.Run(line, func(t *testing.T) {
			p := engine(t, line, NewMark(), false)
			fixture.Eventually(t, "the command that lives on is found", func() bool { return Find(p) })
			wrong := map[string]Process{"start time": p, "boot": p, "number": p, "no start time": p, "no boot": p, "init": p}
			for what, w := range wrong {
				switch what {
				case "start time":
					w.Started, w.Mark = p.Started+1, "x"
				case "boot":
					w.Boot = "another"
				case "number":
					w.PGID, w.Mark = os.Getpid(), "x"
				case "no start time":
					w.Started = 0
				case "no boot":
					w.Boot = ""
				case "init":
					w.PGID = 1
				}
				if Find(w) {
					t.Errorf("%s: Find(%+v) took another process for the command", what, w)
				}
				if err := End(t.Context(), w); err != nil {
					t.Errorf("%s: End: %v", what, err)
				}
			}
			if !Find(p) {
				t.Fatal("an end of something else ended it")
			}
			if err := End(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if Find(p) || len(members(p)) > 0 {
				t.Error("still there after End")
			}
			if err := End(t.Context(), p); err != nil {
				t.Errorf("second End: %v", err)
			}
		})
	}
}

// When the leader is gone, its number may lead a stranger's group: only what
// carries the mark is ours then.
func TestReusedNumber(t *testing.T) {
	pid := start(t, []string{"A=b"}, "/bin/sleep", "300")
	s, ok := readStat(pid)
	if !ok {
		t.Fatal("no such process")
	}
	before := Process{PGID: pid, Started: s.started - 1, Boot: process.Boot(), Mark: NewMark()}
	if len(members(before)) == 0 {
		t.Fatal("the stranger has not the number that this test is about")
	}
	if Find(before) {
		t.Error("a stranger was taken for the command")
	}
	if err := End(t.Context(), before); err != nil {
		t.Error(err)
	}
	if now, ok := readStat(pid); !ok || now.dead() {
		t.Error("a stranger was ended")
	}
}

// A member that was seen and whose number now belongs to somebody else gets no
// signal.
func TestSignalAsksAgainWhoItIs(t *testing.T) {
	pid := start(t, nil, "/bin/sleep", "300")
	s, _ := readStat(pid)
	kill(Process{}, []Member{{PID: pid, started: s.started - 1}})
	if now, ok := readStat(pid); !ok || now.dead() {
		t.Fatal("the wrong process was killed")
	}
	kill(Process{}, []Member{{PID: pid, started: s.started}})
	fixture.Eventually(t, "the right one is killed", func() bool { now, ok := readStat(pid); return !ok || now.dead() })
}

func TestParseStat(t *testing.T) {
	line := "12 (a) R 1 (b) S 1 34 56 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0"
	s, ok := parseStat([]byte(line))
	want := stat{name: "a) R 1 (b", state: 'S', parent: 1, group: 34, session: 56, started: 777, threads: 1}
	if !ok || s != want {
		t.Errorf("got %+v %v", s, ok)
	}
	for _, bad := range []string{"", "12", "12 (a)", "12 )a( S", "12 (a) S x y z", strings.Replace(line, "S", "\x00", 1), strings.Replace(line, "34", "x", 1), strings.Replace(line, "777", "x", 1)} {
		if _, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q was taken", bad)
		}
	}
	own, ok := readStat(os.Getpid())
	if !ok || own.started == 0 || own.parent != os.Getppid() || own.dead() {
		t.Errorf("own stat: %+v %v", own, ok)
	}
	if _, ok := readStat(1 << 30); ok {
		t.Error("a process that cannot exist was read")
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (a) R 1 (b) S 1 34 56 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := parseStat(b); ok && s.state == 0 {
			t.Errorf("%q gives %+v", b, s)
		}
	})
}

func TestEnviron(t *testing.T) {
	base := []string{"A=1", "OPENAI_API_KEY=k", "roost_x=2", "PAGER=less", "ROOST_COMMAND=m", "anthropic_api_key=k", "GITHUB_TOKEN=t", "TERM=xterm", "EMPTY=", "odd"}
	kept := slices.Clone(base)
	got := Environ(base)
	if d := cmp.Diff(kept, base); d != "" {
		t.Errorf("the input was changed: %s", d)
	}
	want := append([]string{"A=1", "GITHUB_TOKEN=t", "EMPTY=", "odd"}, plainVars...)
	want = append(want, "GIT_CONFIG_KEY_0=safe.bareRepository", "GIT_CONFIG_VALUE_0=explicit", "GIT_CONFIG_KEY_1=core.fsmonitor", "GIT_CONFIG_VALUE_1=false", "GIT_CONFIG_COUNT=2")
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(got, Environ(got)); d != "" {
		t.Errorf("not the same when done again: %s", d)
	}
}

// Settings of git's that the user's environment holds stay, but for those that ours replace.
func TestGitSettingsComeBehindTheUsers(t *testing.T) {
	base := []string{"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=true", "GIT_CONFIG_KEY_1=user.name", "GIT_CONFIG_VALUE_1=Me"}
	got := Environ(base)
	for _, want := range append(base[1:], "GIT_CONFIG_KEY_2=safe.bareRepository", "GIT_CONFIG_KEY_3=core.fsmonitor", "GIT_CONFIG_VALUE_3=false", "GIT_CONFIG_COUNT=4") {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if d := cmp.Diff(got, Environ(got)); d != "" {
		t.Error(d)
	}
}

func TestSetReplacesEveryOccurrence(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		env := rapid.SliceOf(rapid.SampledFrom([]string{"A=1", "A=2", "AB=3", "A", "B=A=1", ""})).Draw(r, "env")
		out := set(slices.Clone(env), "A=new")
		if out[len(out)-1] != "A=new" {
			r.Fatalf("%q lacks the new value at its end", out)
		}
		var rest []string
		for _, kv := range env {
			if kv != "A" && !strings.HasPrefix(kv, "A=") {
				rest = append(rest, kv)
			}
		}
		if !slices.Equal(out[:len(out)-1], rest) {
			r.Fatalf("%q of %q", out, env)
		}
	})
}

func TestKeysOfProvidersDoNotReachCommands(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "secret-1")
	t.Setenv("ROOST_ROOT", "secret-2")
	t.Setenv("GITHUB_TOKEN", "kept")
	_, out := run(t, t.Context(), Command{Line: "env; echo $TERM $PAGER $GIT_PAGER"})
	if strings.Contains(out, "secret-") || !strings.Contains(out, "GITHUB_TOKEN=kept") || !strings.HasSuffix(out, "dumb cat cat\n") {
		t.Errorf("environment:\n%s", out)
	}
	given := []string{"ONLY=this", "PATH=" + os.Getenv("PATH")}
	if _, out = run(t, t.Context(), Command{Line: "env", Env: given}); strings.Contains(out, "GITHUB") || !strings.Contains(out, "ONLY=this") {
		t.Errorf("a given environment became:\n%s", out)
	}
	if len(given) != 2 {
		t.Errorf("the caller's slice became %q", given)
	}
}

// Who is dead and only waits to be asked for its exit code is not there any more:
// otherwise an end would be waited for that nobody can bring about.
func TestTheDeadAreNotMembers(t *testing.T) {
	mark := NewMark()
	pid := start(t, []string{markVar + "=" + mark}, "/bin/sleep", "300")
	s, ok := readStat(pid)
	if !ok || len(FindMarked(mark)) != 1 {
		t.Fatal("it is not there to begin with")
	}
	kill(Process{PGID: pid}, []Member{{PID: pid, started: s.started}})
	fixture.Eventually(t, "it is a zombie", func() bool { now, ok := readStat(pid); return ok && now.dead() })
	p := Process{PGID: pid, Started: s.started, Boot: process.Boot(), Mark: mark}
	if Find(p) || len(members(p)) > 0 || FindMarked(mark) != nil {
		t.Errorf("the dead are listed: %v", members(p))
	}
}
