package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// rootFolders name, by architecture, the folder or tar that the image for tasks begins with.
type rootFolders map[string]string

func (r rootFolders) String() string { return fmt.Sprint(map[string]string(r)) }

// Set takes ARCH=PATH.
func (r rootFolders) Set(value string) error {
	arch, path, found := strings.Cut(value, "=")
	if !found || path == "" || arch != "amd64" && arch != "arm64" {
		return fmt.Errorf("%q is not amd64=PATH or arm64=PATH", value)
	}
	r[arch] = path
	return nil
}

// userID owns /data and /work, and runs the program in an image.
const userID = 65532

// images are two, each for all architectures that were built: one with the program alone, which serves, lists and
// searches, and one that begins with the files of a system, with sh and git, and so can run tasks. Without a network no
// such system can be pulled; a -rootfs flag names it.
func (r *release) images(ctx context.Context) ([]file, error) {
	var small, tasks v1.ImageIndex = emptyIndex(), emptyIndex()
	var smallest, system int
	for _, t := range r.Targets {
		if t.OS != "linux" {
			continue
		}
		own, err := r.ownLayer(t)
		if err != nil {
			return nil, err
		}
		if small, err = r.addImage(small, t, append(own, identities()...)); err != nil {
			return nil, err
		}
		smallest++
		if r.Roots[t.Arch] == "" {
			continue
		}
		base, err := baseFiles(ctx, r.Roots[t.Arch], t.Arch)
		if err != nil {
			return nil, fmt.Errorf("make the image that runs tasks on %s: %w", t.Arch, err)
		}
		if tasks, err = r.addImage(tasks, t, base, ownWithin(own, base)); err != nil {
			return nil, err
		}
		system++
	}
	var out []file
	for _, image := range []struct {
		name, tag, needs string
		index            v1.ImageIndex
		parts            int
	}{
		{"image", "roost", "it needs a target on Linux", small, smallest},
		{"image-tasks", "roost-tasks", "it needs a target on Linux and its system: -rootfs ARCH=PATH", tasks, system},
	} {
		if image.parts == 0 {
			fmt.Fprintf(r.Log, "left out: roost_%s_%s.tar: %s\n", r.Version, image.name, image.needs)
			continue
		}
		data, err := r.layoutTar(image.index, image.name, "localhost/"+image.tag+":"+r.Version)
		if err != nil {
			return nil, err
		}
		out = append(out, plain("roost_"+r.Version+"_"+image.name+".tar", data))
	}
	return out, nil
}

func emptyIndex() v1.ImageIndex { return mutate.IndexMediaType(empty.Index, types.OCIImageIndex) }

// ownLayer is what Roost adds to an image. The authorities are those that Go's developers take from Mozilla; roots that
// Mozilla trusts only in part are left out.
func (r *release) ownLayer(t target) ([]file, error) {
	var authorities bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// A buffer takes all.
			_ = pem.Encode(&authorities, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	notices, err := r.notices(t)
	return []file{
		program("usr/bin/roost", r.Programs[t]),
		plain("etc/ssl/certs/ca-certificates.crt", authorities.Bytes()),
		plain("usr/share/doc/roost/THIRD-PARTY-NOTICES.txt", notices),
		{Name: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{Name: "data", Mode: fs.ModeDir | 0o700, UID: userID, GID: userID},
		{Name: "work", Mode: fs.ModeDir | 0o755, UID: userID, GID: userID},
	}, err
}

// identities name the user where no system does.
func identities() []file {
	users := fmt.Appendf(nil, "root:x:0:0:root:/:/bin/sh\nroost:x:%d:%d:Roost:/data:/bin/sh\n", userID, userID)
	return []file{
		plain("etc/passwd", users),
		plain("etc/group", fmt.Appendf(nil, "root:x:0:\nroost:x:%d:\n", userID)),
	}
}

// ownWithin leaves out folders that the system has in its own way, and goes through its links: a /usr/bin that is a
// link must stay one.
func ownWithin(own, base []file) []file {
	has, links := map[string]bool{}, map[string]string{}
	for _, f := range base {
		has[f.Name] = true
		if f.Link != "" {
			links[f.Name] = strings.TrimPrefix(f.Link, "/")
		}
	}
	if !has["etc/passwd"] {
		own = append(own, identities()...)
	}
	var out []file
	for _, f := range own {
		if f.Mode.IsDir() && has[f.Name] {
			continue
		}
		if first, rest, ok := strings.Cut(f.Name, "/"); ok && links[first] != "" {
			f.Name = links[first] + "/" + rest
		}
		out = append(out, f)
	}
	return out
}

// addImage adds the image of an architecture, with a layer for each list of files.
func (r *release) addImage(index v1.ImageIndex, t target, layers ...[]file) (v1.ImageIndex, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range layers {
		data, err := tarOf(files, r.Commit.Time)
		if err != nil {
			return nil, err
		}
		packed := gzipped(data)
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
		layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: v1.Time{Time: r.Commit.Time}, CreatedBy: "tools/release"}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: history}); err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = t.OS, t.Arch, v1.Time{Time: r.Commit.Time}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", userID, userID), WorkingDir: "/work", StopSignal: "SIGTERM",
		Entrypoint: []string{"/usr/bin/roost"}, Cmd: []string{"serve"},
		Env: []string{
			"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/data", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
		},
		Volumes: map[string]struct{}{"/data": {}, "/work": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "roost",
			"org.opencontainers.image.version":  r.Version,
			"org.opencontainers.image.source":   homepage,
			"org.opencontainers.image.revision": r.Commit.Hash,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
		MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: t.OS, Architecture: t.Arch},
	}}), nil
}

// layoutTar writes an OCI image layout whose one entry is the index, under a name that loading gives it, as a tar.
func (r *release) layoutTar(index v1.ImageIndex, name, tag string) ([]byte, error) {
	dir := filepath.Join(r.scratch, name)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return nil, fmt.Errorf("write the %s: %w", name, err)
	}
	names := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name": tag, "org.opencontainers.image.ref.name": r.Version,
	})
	if err := path.AppendIndex(index, names); err != nil {
		return nil, fmt.Errorf("write the %s: %w", name, err)
	}
	files, err := folderFiles(dir)
	if err != nil {
		return nil, err
	}
	for i := range files { // how this machine masks modes is no part of a release
		files[i].Mode = files[i].Mode.Type() | 0o644
		if files[i].Mode.IsDir() {
			files[i].Mode |= 0o755
		}
	}
	return tarOf(files, r.Commit.Time)
}

// baseFiles reads the system of an image: of this machine, a folder, or a tar.
func baseFiles(ctx context.Context, path, arch string) ([]file, error) {
	if path == "host" {
		if host != (target{"linux", arch}) {
			return nil, fmt.Errorf("this machine is %s, so its files do not run there: name a folder or tar: -rootfs %s=PATH",
				host, arch)
		}
		return hostFiles(ctx)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var files []file
	if info.IsDir() {
		files, err = folderFiles(path)
	} else {
		var data []byte
		if data, err = os.ReadFile(path); err == nil {
			files, err = untar(data)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the system in %s: %w", path, err)
	}
	for _, needed := range []string{"sh", "git"} {
		if !hasProgram(files, needed) {
			return nil, fmt.Errorf("read the system in %s: it has no %s in bin or usr/bin", path, needed)
		}
	}
	return files, nil
}

func hasProgram(files []file, name string) bool {
	for _, f := range files {
		if f.Name == "bin/"+name || f.Name == "usr/bin/"+name {
			return true
		}
	}
	return false
}

// folderFiles reads a folder whole. All belongs to root: who owns it here says nothing of an image.
func folderFiles(dir string) ([]file, error) {
	var out []file
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f := file{Name: filepath.ToSlash(name), Mode: info.Mode()}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			f.Link, err = os.Readlink(path)
		case info.Mode().IsRegular():
			f.Data, err = os.ReadFile(path)
		case !info.IsDir():
			return nil // devices and sockets are made where an image runs
		}
		out = append(out, f)
		return err
	})
	return out, err
}
