package config

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/mcp"
)

// changerEnv makes this test program a child that changes the files of a settings folder: "NUMBER FOLDER".
const changerEnv = "CONFIG_TEST_CHANGE"

func TestMain(m *testing.M) {
	var number int
	var dir string
	if n, _ := fmt.Sscan(os.Getenv(changerEnv), &number, &dir); n == 2 {
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent lets all children begin
		if err := changeAll(placeIn(dir), number); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func placeIn(dir string) Place {
	file := filepath.Join(dir, "config.toml")
	return Place{Dir: dir, Env: func(name string) string { return map[string]string{"ROOST_CONFIG": file, "HOME": dir}[name] }}
}

const (
	changers = 4
	rounds   = 10
)

// changeAll is what one child does: each of its changes is of a line that no other child changes.
func changeAll(p Place, number int) error {
	ctx := context.Background()
	own := mcp.Server{Scope: mcp.Own, File: filepath.Join(p.Dir, "mcp.json")}
	for round := range rounds {
		name := fmt.Sprintf("c%dr%d", number, round)
		_, err := p.SetKey(ctx, "profiles."+name, name, "new-"+name, false)
		err = errors.Join(err, p.Change(ctx, map[string][]string{ModeProfiles + "." + name: {"new"}}, []string{SourceProfiles + "." + name}))
		err = errors.Join(err, p.RemoveKey(ctx, "profiles.old-"+name, name))
		_, defined := p.AddServer(ctx, own, api.NewMCPServer{Name: name, Command: "new"})
		gone := own
		gone.Name = "old-" + name
		err = errors.Join(err, defined, p.RemoveServer(ctx, gone, mcp.Logins{}, p.Dir, nil))
		_, _, added := p.AddSource(ctx, filepath.Join(p.Dir, name))
		err = errors.Join(err, added, p.RemoveSource(ctx, filepath.Join(p.Dir, "old-"+name)))
		if err != nil {
			return fmt.Errorf("child %d, round %d: %w", number, round, err)
		}
	}
	return nil
}

// Processes that change the files of one user at the same moment lose nothing of each other, and keep every other byte.
func TestProcessesThatChangeAtOnceLoseNothing(t *testing.T) {
	dir := t.TempDir()
	var settings, wantSettings, keys, wantKeys strings.Builder
	var sources, wantSources []string
	servers, wantServers := map[string]any{}, map[string]any{}
	settings.WriteString("# mine\nmodel   = 'm' # why\n\n[mode_profiles]\n")
	keys.WriteString("# my keys\n")
	wantSettings.WriteString(settings.String())
	wantKeys.WriteString(keys.String())
	for number := range changers {
		for round := range rounds {
			name := fmt.Sprintf("c%dr%d", number, round)
			fmt.Fprintf(&settings, "  %s = \"old\"  # %s\n", name, name)
			fmt.Fprintf(&wantSettings, "  %s = \"new\"  # %s\n", name, name)
			fmt.Fprintf(&keys, "profiles.%s = \"old\" # it stays\nprofiles.old-%s = \"old\"\n", name, name)
			fmt.Fprintf(&wantKeys, "profiles.%s = \"new-%s\" # it stays\n", name, name)
			sources = append(sources, filepath.Join(dir, "old-"+name))
			wantSources = append(wantSources, filepath.Join(dir, name))
			servers["old-"+name] = map[string]any{"command": "old"}
			wantServers[name] = map[string]any{"command": "new"}
			if err := os.MkdirAll(filepath.Join(dir, name, "tasks"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, b := range []*strings.Builder{&settings, &wantSettings} {
		b.WriteString("\n[source_profiles]\n")
	}
	for number := range changers {
		for round := range rounds {
			fmt.Fprintf(&settings, "c%dr%d = \"old\"\n", number, round)
		}
	}
	for _, b := range []*strings.Builder{&settings, &wantSettings} {
		b.WriteString("# the end")
	}
	defined, err := json.Marshal(map[string]any{"mcpServers": servers, "other": "kept"})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config.toml": "sources = \"" + strings.Join(sources, ",") + "\"\n" + settings.String(),
		SecretFile:    keys.String(),
		"mcp.json":    string(defined),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	changeInChildren(t, dir)

	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first, rest, _ := strings.Cut(read("config.toml"), "\n")
	got := List(strings.Trim(strings.TrimPrefix(first, "sources = "), `"`))
	slices.Sort(got)
	slices.Sort(wantSources)
	if diff := cmp.Diff(wantSources, got); diff != "" {
		t.Errorf("sources: %s", diff)
	}
	if diff := cmp.Diff(wantSettings.String(), rest); diff != "" {
		t.Errorf("settings: %s", diff)
	}
	if diff := cmp.Diff(wantKeys.String(), read(SecretFile)); diff != "" {
		t.Errorf("keys: %s", diff)
	}
	var now map[string]any
	if err := json.Unmarshal([]byte(read("mcp.json")), &now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"mcpServers": wantServers, "other": "kept"}, now); diff != "" {
		t.Errorf("servers: %s", diff)
	}
}

// changeInChildren runs the children, which begin at one moment, and waits for them.
func changeInChildren(t *testing.T, dir string) {
	t.Helper()
	var begin []io.Closer
	var children []*exec.Cmd
	for number := range changers {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", changerEnv, number, dir))
		child.Stderr = t.Output()
		in, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = child.Process.Kill(), child.Wait() })
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("a child says %q, %v, want ready", line, err)
		}
		begin, children = append(begin, in), append(children, child)
	}
	for _, in := range begin {
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, child := range children {
		if err := child.Wait(); err != nil {
			t.Errorf("a child failed: %v", err)
		}
	}
}

// While another process holds the lock, a change waits for a bounded time; its error names the next step, and it changes
// nothing. Readers do not wait.
func TestAChangeThatIsKeptOutEnds(t *testing.T) {
	p, file := placeOf(t)
	const was = "model = \"a\"\n"
	if err := os.WriteFile(file, []byte(was), 0o600); err != nil {
		t.Fatal(err)
	}
	wait := lockWait
	t.Cleanup(func() { lockWait = wait })
	own := mcp.Server{Scope: mcp.Own, File: filepath.Join(p.Dir, "mcp.json"), Name: "docs"}
	source := filepath.Join(p.Dir, "storage")
	if err := os.MkdirAll(filepath.Join(source, "tasks"), 0o700); err != nil {
		t.Fatal(err)
	}
	changes := map[string]func(context.Context) error{
		"Set":    func(ctx context.Context) error { return p.Set(ctx, "model", []string{"b"}) },
		"Change": func(ctx context.Context) error { return p.Change(ctx, nil, []string{"model"}) },
		"SetKey": func(ctx context.Context) error {
			_, err := p.SetKey(ctx, "openai", "openai", "sk-new", false)
			return err
		},
		"RemoveKey": func(ctx context.Context) error { return p.RemoveKey(ctx, "openai", "openai") },
		"AddSource": func(ctx context.Context) error {
			_, _, err := p.AddSource(ctx, source)
			return err
		},
		"RemoveSource": func(ctx context.Context) error { return p.RemoveSource(ctx, source) },
		"AddServer": func(ctx context.Context) error {
			_, err := p.AddServer(ctx, own, api.NewMCPServer{Name: "docs", Command: "docs-server"})
			return err
		},
		"RemoveServer": func(ctx context.Context) error { return p.RemoveServer(ctx, own, mcp.Logins{}, p.Dir, nil) },
	}
	if err := p.Locked(t.Context(), func() error {
		for name, change := range changes {
			lockWait = time.Millisecond
			err := change(t.Context())
			e, is := errors.AsType[*Error](err)
			if !is || e.Kind != Broken || !strings.Contains(e.Why, "another process") || !strings.Contains(e.Why, filepath.Join(p.Dir, lockFile)) {
				t.Errorf("%s: got %v, want that another process holds the lock file", name, err)
			}
			lockWait = wait
			stopped, stop := context.WithCancel(t.Context())
			stop()
			if err := change(stopped); !errors.Is(err, context.Canceled) && name != "AddSource" { // which looks into the folder first
				t.Errorf("%s, stopped by its caller: got %v, want context.Canceled", name, err)
			}
		}
		s, err := p.Read()
		if err != nil || s.Text("model") != "a" {
			t.Errorf("a reader got %v, %v, want the model a", s, err)
		}
		_, err = p.Secrets()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); string(got) != was || err != nil {
		t.Errorf("the file is %q, %v, want %q", got, err, was)
	}
	for _, name := range []string{SecretFile, "mcp.json"} {
		if _, err := os.Stat(filepath.Join(p.Dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %v, want that it was not made", name, err)
		}
	}
	if err := changes["Set"](t.Context()); err != nil {
		t.Errorf("once the lock is free: %v", err)
	}
}

// When no lock can be taken, the error names the folder. The error of the change itself reaches the caller.
func TestLockedSaysWhatFailed(t *testing.T) {
	p, file := placeOf(t)
	cause := errors.New("the change failed")
	if err := p.Locked(t.Context(), func() error { return cause }); err != cause { //nolint:errorlint // the same one
		t.Errorf("got %v, want the error of the change", err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(file, "roost")
	in := placeIn(below)
	err := in.Locked(t.Context(), func() error {
		t.Error("the change was made without a lock")
		return nil
	})
	if e, is := errors.AsType[*Error](err); !is || e.Kind != Broken || !strings.Contains(e.What, below) {
		t.Errorf("got %v, want an error that names %s", err, below)
	}
}

// Reading makes neither files nor folders.
func TestReadingTakesNoLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	p := placeIn(dir)
	s, err := p.Read()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Secrets(); err != nil {
		t.Error(err)
	}
	if _, err := p.Engine(s); err != nil {
		t.Error(err)
	}
	if _, err := p.NamedSources(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that reading makes no folder", err)
	}
}
