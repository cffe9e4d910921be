package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk" // registers the format
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// What all packages say of Roost.
const (
	homepage = "https://" + module
	summary  = "Run the tasks of coding agents, and keep them"
)

// linuxPackages are the deb, rpm and apk of each architecture.
func (r *release) linuxPackages() ([]file, error) {
	var out []file
	for _, t := range r.Targets {
		if t.OS != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm", "apk"} {
			data, err := r.linuxPackage(t, format)
			if err != nil {
				return nil, fmt.Errorf("pack the %s for %s: %w", format, t.Arch, err)
			}
			out = append(out, plain(r.asset(t, "."+format), data))
		}
	}
	return out, nil
}

// installed is what a package puts on a Linux system, below /usr.
func (r *release) installed(t target, format string) ([]file, error) {
	zsh := "usr/share/zsh/site-functions/_roost"
	if format == "deb" {
		zsh = "usr/share/zsh/vendor-completions/_roost"
	}
	notices, err := r.notices(t)
	if err != nil {
		return nil, err
	}
	all := []file{
		program("usr/bin/roost", r.Programs[t]),
		plain("usr/lib/systemd/user/roost.service", r.Unit),
		plain("usr/share/bash-completion/completions/roost", r.Scripts["bash"]),
		plain(zsh, r.Scripts["zsh"]),
		plain("usr/share/fish/vendor_completions.d/roost.fish", r.Scripts["fish"]),
		plain("usr/share/doc/roost/THIRD-PARTY-NOTICES.txt.gz", gzipped(notices)),
	}
	for _, page := range r.Pages {
		all = append(all, plain("usr/share/man/man1/"+page.Name+".gz", gzipped(page.Data)))
	}
	for _, f := range r.Docs {
		name := f.Name
		if name == "LICENSE" && format == "deb" {
			name = "copyright" // where Debian looks for it
		}
		all = append(all, plain("usr/share/doc/roost/"+name, f.Data))
	}
	return all, nil
}

func (r *release) linuxPackage(t target, format string) ([]byte, error) {
	all, err := r.installed(t, format)
	if err != nil {
		return nil, err
	}
	stage := filepath.Join(r.scratch, format+"-"+t.Arch)
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "roost", Version: r.Version, Release: "1", Platform: "linux", Arch: t.Arch, MTime: r.Commit.Time,
		Section: "devel", Priority: "optional", License: "Apache-2.0",
		Maintainer: "The Roost developers <" + homepage + ">", Homepage: homepage,
		Description: summary + "\nRoost starts, continues, finds and serves the tasks of coding agents. A crash\n" +
			"loses nothing, and tasks of Roo Code and its relatives can be continued.",
	})
	info.Umask = 0o022
	// Models are asked over TLS, and git is what an agent uses first: both are wanted, and none is needed to start.
	info.Recommends = []string{"ca-certificates", "git"}
	info.RPM.BuildHost, info.RPM.Summary = "localhost", summary
	for _, f := range all {
		path := filepath.Join(stage, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, f.Data, f.Mode); err != nil {
			return nil, err
		}
		content := &files.Content{
			Source: path, Destination: "/" + f.Name,
			FileInfo: &files.ContentFileInfo{Mode: f.Mode, MTime: r.Commit.Time, Owner: "root", Group: "root"},
		}
		if format == "rpm" && strings.HasPrefix(f.Name, "usr/share/doc/") {
			content.Type = files.TypeRPMDoc
		}
		info.Contents = append(info.Contents, content)
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = packager.Package(info, &b)
	return b.Bytes(), err
}
