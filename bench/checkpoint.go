package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// checkpoints measures what keeping files costs in a workspace of many: a checkpoint
// after an edit of one file, the look at all files before and after a command that
// changes one, against find, which reads all times as well; and the bytes that edits of
// small files leave in the store, against the bytes that they changed.
func checkpoints(ctx context.Context, o options) ([]row, error) {
	folders, each, rounds, edits := 200, 100, 15, 200
	if o.quick {
		folders, each, rounds, edits = 10, 20, 2, 5
	}
	root := filepath.Join(o.dir, "kept")
	if err := sourceTree(root, folders, each); err != nil {
		return nil, err
	}
	if !o.quick {
		time.Sleep(3 * time.Second) // times of files that were written just now are not believed
	}
	ws, err := workspace.Open(root)
	if err != nil {
		return nil, err
	}
	k, err := checkpoint.Open(checkpoint.Place{Dir: filepath.Join(o.dir, "data", "checkpoints")}, ws, checkpoint.Options{})
	if err != nil {
		return nil, err
	}
	l := &keeping{k: k, root: root, files: map[string]api.FileVersion{}}
	rows, err := l.measure(ctx, fmt.Sprintf("%d files", folders*each), rounds, edits)
	if err = errors.Join(err, k.Close()); err != nil || !o.full {
		return rows, err
	}
	large, err := largeWorkspace(ctx, filepath.Join(o.dir, "large"), 2000, 1<<20, edits)
	return append(rows, large), err
}

// largeWorkspace is what edits of small files, and a command before them, store in a
// workspace of so many large files whose bytes nothing can make smaller. It takes the
// files away again.
func largeWorkspace(ctx context.Context, dir string, files int, size int64, edits int) (r row, err error) {
	root := filepath.Join(dir, "ws")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := sourceTree(root, 10, 20); err != nil {
		return r, err
	}
	for i := range files {
		if err := noise(ctx, filepath.Join(root, fmt.Sprintf("assets/%02d/large%04d.bin", i%50, i)), size); err != nil {
			return r, err
		}
	}
	ws, err := workspace.Open(root)
	if err != nil {
		return r, err
	}
	k, err := checkpoint.Open(checkpoint.Place{Dir: filepath.Join(dir, "data", "checkpoints")}, ws, checkpoint.Options{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	l := &keeping{k: k, root: root, files: map[string]api.FileVersion{}}
	for i := range edits {
		if _, err := l.edit(ctx, i); err != nil {
			return r, err
		}
	}
	stored, err := k.Size(ctx)
	if err != nil {
		return r, err
	}
	s, err := k.Survey(ctx)
	if err != nil {
		return r, err
	}
	s.Close()
	looked, err := k.Size(ctx)
	what := fmt.Sprintf("k stored for %d edits of small files, workspace of %.1f GB", edits, float64(int64(files)*size)/1e9)
	return row{
		what: what, got: kb(stored) + "; with a look before a command " + kb(looked), floor: "changed " + kb(l.bytes),
		ratio: over(stored, l.bytes), bar: "< 2.00x",
	}, err
}

// noise makes a file of random bytes.
func noise(ctx context.Context, path string, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make a large workspace: %w", err)
	}
	f, err := os.Create(path)
	if err == nil {
		_, err = io.CopyN(f, rand.Reader, size)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("make a large workspace: %w", err)
	}
	return nil
}

// keeping is one task's checkpoints as the agent takes them.
type keeping struct {
	k      *checkpoint.Keeper
	root   string
	files  map[string]api.FileVersion
	number int
	parent string
	bytes  int64 // of the files that were written
}

func (l *keeping) measure(ctx context.Context, files string, rounds, edits int) ([]row, error) {
	var cold, edit, before, after, find, kept times
	for i := range rounds + 1 {
		begun := time.Now()
		s, err := l.k.Survey(ctx)
		if err != nil {
			return nil, err
		}
		looked := time.Now()
		if err := l.write(i, "by a command"); err != nil {
			return nil, err
		}
		written := time.Now()
		changed, err := s.Changes(ctx)
		if err != nil {
			return nil, err
		}
		if len(changed) != 1 {
			return nil, fmt.Errorf("a command changed a file, and %d are seen", len(changed))
		}
		if i == 0 { // nothing is known before the first one
			cold = append(cold, looked.Sub(begun))
			continue
		}
		before, after = append(before, looked.Sub(begun)), append(after, time.Since(written))
		begun = time.Now()
		if s, err = l.k.SurveyFor(ctx, "bench", fmt.Sprint(i)); err != nil {
			return nil, err
		}
		kept = append(kept, time.Since(begun))
		s.Done()
		if _, err := exec.LookPath("find"); err == nil {
			took, err := command(ctx, l.root, []string{"find", ".", "-type", "f", "-printf", "%T@\n"}, false)
			if err != nil {
				return nil, err
			}
			find = append(find, took)
		}
	}
	l.bytes = 0
	start, err := l.k.Size(ctx)
	if err != nil {
		return nil, err
	}
	for i := range edits {
		took, err := l.edit(ctx, i)
		if err != nil {
			return nil, err
		}
		edit = append(edit, took)
	}
	end, err := l.k.Size(ctx)
	if err != nil {
		return nil, err
	}
	look := func(what string, t times) row {
		return row{what: "k " + what + ", " + files, got: ms(t.median()) + ", p99 " + ms(t.p99()), floor: "find " + ms(find.median()), ratio: over(t.median(), find.median())}
	}
	stored := end - start
	return []row{
		{what: "k checkpoint of a one-file edit, " + files, got: ms(edit.median()) + ", p99 " + ms(edit.p99()), bar: "< 100 ms"},
		look("first look before a command", cold), look("look before a command", before), look("look after it, one file changed", after),
		{what: fmt.Sprintf("k stored for %d edits of small files", edits), got: kb(stored), floor: "changed " + kb(l.bytes), ratio: over(stored, l.bytes), bar: "< 2.00x"},
		look("look before a command that outlives a kill and a power cut", kept),
	}, nil
}

func kb(bytes int64) string { return fmt.Sprintf("%.1f KB", float64(bytes)/1e3) }

func (l *keeping) path(i int) string {
	return fmt.Sprintf("pkg%02d/part%03d/file%03d.go", i%10, i%10, i/10%20)
}

// write changes a file as an editor or a command does.
func (l *keeping) write(i int, words string) error {
	path := filepath.Join(l.root, filepath.FromSlash(l.path(i)))
	text, err := os.ReadFile(path)
	if err == nil {
		line := fmt.Sprintf("// %s %d\n", words, i)
		if at := strings.IndexByte(string(text), '\n') + 1; at > 0 {
			text = append([]byte(line), text[at:]...)
		}
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("change a file: %w", err)
	}
	l.bytes += int64(len(text))
	return nil
}

// edit is one edit of a file with the checkpoints before and after it, and gives how
// long those took.
func (l *keeping) edit(ctx context.Context, i int) (time.Duration, error) {
	took, err := l.save(ctx, i)
	if err != nil {
		return 0, err
	}
	if err := l.write(i, "by an edit"); err != nil {
		return 0, err
	}
	more, err := l.save(ctx, i)
	return took + more, err
}

func (l *keeping) save(ctx context.Context, i int) (time.Duration, error) {
	begun := time.Now()
	held, err := l.k.Hold(ctx, []string{l.path(i)})
	if err != nil {
		return 0, err
	}
	var changed []task.CheckpointFile
	for path, v := range held {
		if l.files[path].Same(v) {
			return time.Since(begun), nil
		}
		l.files[path] = v
		changed = append(changed, task.CheckpointFile{Path: path, Now: v})
	}
	l.number++
	l.parent, err = l.k.Save(ctx, checkpoint.Snapshot{Task: "bench", Number: l.number, Title: l.path(i), Parent: l.parent, Files: l.files, Changed: changed})
	return time.Since(begun), err
}
