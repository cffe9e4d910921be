package historytool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// outputFolder is where Roo keeps the whole outputs of commands, in the task's folder.
const outputFolder = "command-output"

// ForeignOutputs finds the outputs that another program kept in a task's folder, by artifact name, for tool.Env.Kept.
// It does not search for a name that is none; a link, or anything but a plain file, counts as missing. It opens the
// file for each read: no caller reports that a call is done with it, and Roo removes these files when its window
// closes the task.
func ForeignOutputs(taskFolder string) func(artifact string) (io.ReaderAt, int64, bool) {
	return func(artifact string) (io.ReaderAt, int64, bool) {
		if taskFolder == "" || !artifactID.MatchString(artifact) {
			return nil, 0, false
		}
		f := foreignFile{taskFolder, path.Join(outputFolder, artifact)}
		file, info, err := f.open()
		if err != nil {
			return nil, 0, false
		}
		file.Close()
		return f, info.Size(), true
	}
}

type foreignFile struct{ folder, name string }

var errNoOutput = errors.New("not a file of its own")

// open stays within the folder, wherever its names lead.
func (f foreignFile) open() (*os.File, os.FileInfo, error) {
	root, err := os.OpenRoot(f.folder)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	for _, name := range []string{path.Dir(f.name), f.name} { // before it is opened: a pipe would wait for a writer
		info, err := root.Lstat(name)
		if err != nil {
			return nil, nil, err
		}
		if mode := info.Mode(); !mode.IsRegular() && !mode.IsDir() {
			return nil, nil, fmt.Errorf("%s: %w", name, errNoOutput)
		}
	}
	file, err := root.Open(f.name)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", f.name, errNoOutput)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func (f foreignFile) ReadAt(p []byte, off int64) (int, error) {
	file, _, err := f.open()
	if err != nil {
		return 0, fmt.Errorf("read the kept output: %w", err)
	}
	defer file.Close()
	return file.ReadAt(p, off)
}
