package tasks

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/export"
)

func base(path string) string { return filepath.Base(path) }

func join(dir, name string) string { return filepath.Join(dir, name) }

// aim decides, before anything is read, where to write: into one file, into a folder, or
// to stdout.
func (x *exporter) aim() error {
	f, many := x.flags, len(x.refs) > 1
	name := "roost export --format " + f.format
	if f.output == "-" {
		switch {
		case f.format == "roo":
			return failure.Usage(name, "it writes a folder", name+" -o DIR "+x.refs[0].ID)
		case f.format == "archive" && x.OutTTY:
			return failure.Usage(name, "an archive cannot be printed on a terminal", name+" -o tasks.zip "+x.refs[0].ID)
		case f.format != "archive" && many:
			return failure.Usage(name, "several tasks make several files", name+" -o DIR ID...")
		}
		return nil
	}
	if f.output == "" {
		return failure.Usage(name+" -o", "the file name is empty", name+" -o FILE "+x.refs[0].ID)
	}
	path := x.Abs(f.output)
	info, err := os.Stat(path)
	isDir := err == nil && info.IsDir()
	wantsDir := f.format == "roo" || many && f.format != "archive" ||
		strings.HasSuffix(f.output, string(filepath.Separator)) || strings.HasSuffix(f.output, "/")
	if err == nil && !isDir && wantsDir {
		return failure.Usage(name+" -o "+f.output, "it is a file, and a folder is needed", name+" -o DIR ID...")
	}
	if err := x.outside(path); err != nil {
		return err
	}
	if !wantsDir && !isDir {
		x.file = path
		return nil
	}
	x.folder = path
	if f.format == "roo" {
		for _, ref := range x.refs {
			if err := x.outside(filepath.Join(path, export.FileName(ref.ID))); err != nil {
				return err
			}
		}
	}
	return os.MkdirAll(path, 0o700)
}

// place names a task's file or folder in the folder. Two sources may have one id.
func (x *exporter) place(id string, ts int64, taken map[string]bool) string {
	name, ext := export.FileName(id), "."+x.flags.format
	switch {
	case x.flags.format == "roo":
		ext = ""
	case x.flags.format == "md" && len(x.refs) == 1:
		name = strings.TrimSuffix(export.MarkdownName(ts, time.Local), ext)
	}
	full := name + ext
	for n := 2; taken[strings.ToLower(full)] || x.flags.format == "html" && full == "index.html"; n++ {
		full = name + "~" + strconv.Itoa(n) + ext
	}
	taken[strings.ToLower(full)] = true
	return filepath.Join(x.folder, full)
}

func archiveName(refs []chosen) string {
	if len(refs) == 1 {
		return export.FileName(refs[0].ID) + ".zip"
	}
	return "roost-tasks.zip"
}

// outside refuses a place within a task's own folder: exporting must not write to what
// it reads, or to any other task.
func (x *exporter) outside(path string) error {
	above := map[string][]os.FileInfo{}
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			for at := real; ; at = filepath.Dir(at) {
				if info, err := os.Stat(at); err == nil {
					above[filepath.Base(at)] = append(above[filepath.Base(at)], info)
				}
				if at == filepath.Dir(at) {
					break
				}
			}
			break
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for _, task := range x.known {
		id, dir := task[0], task[1]
		for _, info := range above[filepath.Base(dir)] {
			if own, err := os.Stat(dir); err == nil && os.SameFile(own, info) {
				return failure.Usage("export to "+path, "it is in the folder of task "+id+", which exporting must not change",
					"roost export ID -o another place")
			}
		}
	}
	return nil
}

// untilSignal returns a context that the first signal ends, so that no unfinished file
// remains. The second signal ends the process. done returns the exit code of the
// signal, 0 without one.
func untilSignal(ctx context.Context) (_ context.Context, done func() int) {
	ctx, cancel := context.WithCancel(ctx)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	code, quit, gone := 0, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case sig := <-ch:
			signal.Stop(ch)
			code = app.SignalExit(sig)
			cancel()
		case <-quit:
			signal.Stop(ch)
		}
	}()
	return ctx, func() int {
		close(quit)
		<-gone
		cancel()
		return code
	}
}
