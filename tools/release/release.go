package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// release is a version of Roost while it is built.
type release struct {
	Version       string
	Commit        commit
	Targets       []target
	Roots         rootFolders
	Key, Password string // of the signature; without a key there is none
	Log           io.Writer

	Programs map[target][]byte
	Docs     []file            // README, licences, changelog
	Pages    []file            // man pages, NAME.1
	Scripts  map[string][]byte // completions by shell
	Unit     []byte            // the systemd unit of a package
	Modules  map[string]string // the folders of modules by PATH@VERSION

	src, scratch string
}

// newRelease builds the programs, and asks that of this machine for its pages.
func newRelease(ctx context.Context, src, scratch string, targets []target) (*release, error) {
	changelog, err := os.ReadFile(filepath.Join(src, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	r := &release{Targets: targets, Programs: map[target][]byte{}, src: src, scratch: scratch}
	if r.Version, err = versionOf(string(changelog)); err != nil {
		return nil, err
	}
	if r.Commit, err = commitOf(ctx, src); err != nil {
		return nil, err
	}
	for _, t := range append(slices.Clone(targets), host) {
		if r.Programs[t] != nil {
			continue
		}
		dir := filepath.Join(scratch, t.OS+"-"+t.Arch)
		if err := build(ctx, src, t, stampOf(r.Version, r.Commit), dir); err != nil {
			return nil, err
		}
		if r.Programs[t], err = os.ReadFile(filepath.Join(dir, t.exe())); err != nil {
			return nil, err
		}
	}
	roost := asking(ctx, filepath.Join(scratch, host.OS+"-"+host.Arch, host.exe()), filepath.Join(scratch, "home"))
	if r.Pages, err = manPages(roost, *r); err != nil {
		return nil, err
	}
	if r.Scripts, err = completions(roost); err != nil {
		return nil, err
	}
	if r.Modules, err = moduleFolders(ctx, src); err != nil {
		return nil, err
	}
	unit, err := os.ReadFile(filepath.Join(src, "contrib", "roost.service"))
	if err != nil {
		return nil, err
	}
	if r.Unit, err = packagedUnit(unit); err != nil {
		return nil, err
	}
	for _, name := range []string{"README.md", "LICENSE", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(src, name))
		if err != nil {
			return nil, err
		}
		r.Docs = append(r.Docs, plain(name, data))
	}
	return r, nil
}

// write replaces the folder by all that people install.
func (r *release) write(ctx context.Context, dir string) error {
	makers := []func() ([]file, error){r.archives, r.linuxPackages, r.npmPackages,
		func() ([]file, error) { return r.images(ctx) }, r.boms}
	made, errs := make([][]file, len(makers)), make([]error, len(makers))
	var group sync.WaitGroup
	for i, maker := range makers {
		group.Go(func() { made[i], errs[i] = maker() })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	all := slices.Concat(made...)
	// They name the archives with their checksums.
	all = append(all, r.formula(all)...)
	all = append(all, r.scoop(all)...)
	signed, err := r.sign(all)
	if err != nil {
		return err
	}
	if err := clearFolder(dir); err != nil {
		return err
	}
	for _, f := range append(all, signed...) {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(r.Log, "%7.1f MB  %s\n", float64(len(f.Data))/1e6, f.Name)
	}
	if r.Key == "" {
		fmt.Fprintf(r.Log, "not signed: %s holds no key\n", keyVariable)
	}
	if r.Commit.Modified {
		fmt.Fprintln(r.Log, "not reproducible: the tree holds more than commit", r.Commit.Hash)
	}
	return nil
}

// clearFolder empties the folder, which must be new, empty, or that of an earlier release.
func clearFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	earlier := func(e fs.DirEntry) bool { return e.Name() == sumsName }
	if len(entries) > 0 && !slices.ContainsFunc(entries, earlier) {
		return fmt.Errorf("replace %s: it holds files but no %s, so it is no release: name another folder", dir, sumsName)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}

// asset is the name of a file for a target.
func (r *release) asset(t target, end string) string {
	return fmt.Sprintf("roost_%s_%s_%s%s", r.Version, t.OS, t.Arch, end)
}

// archives hold the program, its manual, completions and licences.
func (r *release) archives() ([]file, error) {
	var out []file
	for _, t := range r.Targets {
		files := append([]file{program(t.exe(), r.Programs[t])}, r.Docs...)
		notices, err := r.notices(t)
		if err != nil {
			return nil, err
		}
		files = append(files, plain("THIRD-PARTY-NOTICES.txt", notices),
			plain("completions/roost.ps1", r.Scripts["powershell"]))
		pack, end := zipOf, ".zip"
		if t.OS != "windows" {
			files = append(files, plain("completions/roost.bash", r.Scripts["bash"]),
				plain("completions/_roost", r.Scripts["zsh"]), plain("completions/roost.fish", r.Scripts["fish"]))
			files = append(files, under("man/man1", r.Pages)...)
			pack, end = func(files []file, at time.Time) ([]byte, error) {
				data, err := tarOf(files, at)
				return gzipped(data), err
			}, ".tar.gz"
		}
		if t.OS == "linux" {
			unit, err := os.ReadFile(filepath.Join(r.src, "contrib", "roost.service"))
			if err != nil {
				return nil, err
			}
			files = append(files, plain("roost.service", unit))
		}
		name := r.asset(t, end)
		data, err := pack(under(strings.TrimSuffix(name, end), files), r.Commit.Time)
		if err != nil {
			return nil, err
		}
		out = append(out, plain(name, data))
	}
	return out, nil
}

// packagedUnit is the unit for hand installs with the program where packages put it, and without the lines on copying.
func packagedUnit(unit []byte) ([]byte, error) {
	const start, copying = "ExecStart=", "#   mkdir -p "
	var out bytes.Buffer
	found := 0
	for line := range bytes.Lines(unit) {
		switch {
		case bytes.HasPrefix(line, []byte(start)):
			_, flags, ok := strings.Cut(strings.TrimRight(string(line), "'\n"), "exec roost ")
			if !ok {
				return nil, fmt.Errorf("make the unit of the packages: %q does not start \"exec roost\"", line)
			}
			found++
			out.WriteString(start + "/usr/bin/roost " + flags + "\n")
		case bytes.HasPrefix(line, []byte(copying)):
		case bytes.HasPrefix(line, []byte("# The shell ")):
		default:
			out.Write(line)
		}
	}
	if found != 1 {
		return nil, fmt.Errorf("make the unit of the packages: contrib/roost.service has %d lines %q, not one", found, start)
	}
	return out.Bytes(), nil
}
