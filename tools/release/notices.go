package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var noticeName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|authors)([-.].*)?$`)

// notices are the licences of what a program was linked of: each asks that its words go along. A module without one
// is an error: it may not be handed on.
func (r *release) notices(t target) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(r.Programs[t]))
	if err != nil {
		return nil, fmt.Errorf("read the build information for %s: %w", t, err)
	}
	var b bytes.Buffer
	b.WriteString("Roost is linked of the modules below. Their licences follow.\n")
	standard := filepath.Join(r.Modules["std"], "LICENSE")
	if text, err := os.ReadFile(standard); err == nil {
		writeNotice(&b, "The Go standard library "+info.GoVersion, text)
	} else {
		return nil, fmt.Errorf("read the licence of Go: %w", err)
	}
	for _, m := range linked(info) {
		dir := r.Modules[m.Path+"@"+m.Version]
		if dir == "" {
			return nil, fmt.Errorf("collect licences: the folder of %s %s is not known", m.Path, m.Version)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("collect licences: %w", err)
		}
		found := false
		for _, e := range entries {
			if e.IsDir() || !noticeName.MatchString(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, fmt.Errorf("collect licences: %w", err)
			}
			found = true
			writeNotice(&b, m.Path+" "+m.Version+": "+e.Name(), text)
		}
		if !found {
			return nil, fmt.Errorf("collect licences: %s %s has none in %s", m.Path, m.Version, dir)
		}
	}
	return b.Bytes(), nil
}

func writeNotice(b *bytes.Buffer, title string, text []byte) {
	fmt.Fprintf(b, "\n%s\n%s\n\n%s\n", title, strings.Repeat("-", len(title)), bytes.TrimSpace(text))
}

// moduleFolders says where the module cache keeps the modules that the program is made of on any system, and where Go
// ("std") lies. The list of all modules would need files of some that nothing here uses.
func moduleFolders(ctx context.Context, src string) (map[string]string, error) {
	root, err := goTool(ctx, src, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{"std": strings.TrimSpace(string(root))}
	for _, system := range []string{"linux", "darwin", "windows"} {
		out, err := goToolFor(ctx, src, system, "list", "-deps", "-json=Module", "./cmd/roost")
		if err != nil {
			return nil, err
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var of struct {
				Module *struct{ Path, Version, Dir string }
			}
			if err := d.Decode(&of); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("list the modules: %w", err)
			}
			if m := of.Module; m != nil {
				dirs[m.Path+"@"+m.Version] = m.Dir
			}
		}
	}
	return dirs, nil
}

func goTool(ctx context.Context, src string, args ...string) ([]byte, error) {
	return goToolFor(ctx, src, "", args...)
}

// goToolFor runs go as for another system; "" is this one.
func goToolFor(ctx context.Context, src, system string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = src, os.Stderr
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off", "GOTOOLCHAIN=local")
	if system != "" {
		cmd.Env = append(cmd.Env, "GOOS="+system)
	}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w", args[0], src, err)
	}
	return out, nil
}
