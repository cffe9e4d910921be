package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// file is a file, folder or symbolic link of an archive, package or layer.
type file struct {
	Name string      // with slashes, relative
	Mode fs.FileMode // permission bits; with fs.ModeDir for a folder
	Data []byte
	Link string // where a symbolic link leads
	UID  int    // the owner; 0 is root
	GID  int    // the group
}

func plain(name string, data []byte) file   { return file{Name: name, Mode: 0o644, Data: data} }
func program(name string, data []byte) file { return file{Name: name, Mode: 0o755, Data: data} }

// under moves files into a folder.
func under(dir string, files []file) []file {
	out := slices.Clone(files)
	for i := range out {
		out[i].Name = dir + "/" + out[i].Name
	}
	return out
}

// tarOf writes files with their folders in front of them, sorted, all of one time.
func tarOf(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range withFolders(files) {
		h := &tar.Header{
			Name: f.Name, Mode: tarMode(f.Mode), Size: int64(len(f.Data)), ModTime: at, Typeflag: tar.TypeReg,
			Uid: f.UID, Gid: f.GID, Format: tar.FormatPAX,
		}
		switch {
		case f.Mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, f.Name+"/"
		case f.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func tarMode(m fs.FileMode) int64 {
	mode := int64(m.Perm())
	for bit, value := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			mode |= value
		}
	}
	return mode
}

// withFolders sorts the files and adds the folders that are not among them.
func withFolders(files []file) []file {
	all := map[string]file{}
	for _, f := range files {
		all[f.Name] = f
		for i := strings.LastIndexByte(f.Name, '/'); i > 0; i = strings.LastIndexByte(f.Name[:i], '/') {
			if _, known := all[f.Name[:i]]; !known {
				all[f.Name[:i]] = file{Name: f.Name[:i], Mode: fs.ModeDir | 0o755}
			}
		}
	}
	out := make([]file, 0, len(all))
	for _, f := range all {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// zipOf writes files without their folders, sorted, all of one time.
func zipOf(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range withFolders(files) {
		if f.Mode.IsDir() {
			continue
		}
		h := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: at}
		h.SetMode(f.Mode)
		to, err := w.CreateHeader(h)
		if err == nil {
			_, err = to.Write(f.Data)
		}
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// gzipped has no name and no time in its header.
func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data) // a buffer takes all
	_ = w.Close()
	return b.Bytes()
}

// untar reads a tar or tar.gz. A hard link becomes a file of its own; devices and pipes are left out: they are made
// where an image runs.
func untar(data []byte) ([]file, error) {
	var r io.Reader = bytes.NewReader(data)
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = z
	}
	var out []file
	known := map[string][]byte{}
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		f := file{Name: entryName(h.Name), Mode: h.FileInfo().Mode(), UID: h.Uid, GID: h.Gid}
		switch h.Typeflag {
		case tar.TypeReg:
			if f.Data, err = io.ReadAll(t); err != nil {
				return nil, err
			}
			known[f.Name] = f.Data
		case tar.TypeLink:
			f.Data = known[entryName(h.Linkname)]
		case tar.TypeSymlink:
			f.Link = h.Linkname
		case tar.TypeDir:
		default:
			continue
		}
		if f.Name != "" {
			out = append(out, f)
		}
	}
}

// entryName is the name of an entry as a file has it: "./usr/bin/" is usr/bin.
func entryName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }
