package search

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// maxFolder bounds how many names of one folder are taken: sorting them needs them
// all in memory, and a folder with more is no folder that people look into.
const maxFolder = 200_000

// readFolder is os.ReadDir that can be stopped and takes no more than maxFolder
// names.
func readFolder(ctx context.Context, name string) ([]fs.DirEntry, error) {
	// Stat first: opening a pipe would wait for a writer.
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "list", Path: name, Err: syscall.ENOTDIR}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []fs.DirEntry
	for len(all) < maxFolder {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		some, err := f.ReadDir(2048)
		all = append(all, some...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}
