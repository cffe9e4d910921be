// Package drafts keeps what users have begun to write: one draft for each task of any tool, and one for a new task.
//
// A draft on the disk is a folder of the root, <root>/drafts/<name>: draft.json, and its images as files named by their SHA-256. The
// name is a hash of SOURCE:ID, because ids of other tools may be no file names. A task's own folder holds no draft: it is
// Roo's. A change replaces draft.json whole, under a kernel lock that all processes take: images come before the document
// that names them, and go after it.
//
// The content store of checkpoints was rejected for the images: there a removed image stays until the next collection,
// and a draft is private text that goes at once.
//
// In a database that several servers share, a draft is a row, and so is each of its images. A change compares the revision
// in its own transaction, and an image that no draft names goes in the same one.
package drafts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/store"
)

// Bounds of a draft.
const (
	MaxText   = 1 << 20 // bytes
	MaxImages = 20
	MaxImage  = 5 << 20 // bytes of one image
)

// ErrMoved: the draft is not the one that a change was made for.
var ErrMoved = errors.New("the draft has changed since it was read")

// ErrNoImage: the draft has no image of that name.
var ErrNoImage = errors.New("the draft has no such image")

// Image is an image with its media type.
type Image struct {
	Media string
	Bytes []byte
}

const (
	document = "draft.json"
	named    = "sha256:" // before the hash in the name of an image
	newTask  = "new"     // the folder of the draft of a new task
)

var hexHash = lazyregexp.New(`^[0-9a-f]{64}$`)

// Person separates the task from the account in the name of a person's draft. It is not NUL, which PostgreSQL cannot
// store in a text.
const Person = "\x01"

// Drafts are the drafts of one place. A task is SOURCE:ID; "" is a new task. They are safe for concurrent use.
type Drafts struct {
	in  place
	now func() int64
}

// place is where drafts are kept.
type place interface {
	writer
	image(ctx context.Context, task, name string) ([]byte, error)
	// change calls f while no other process changes the draft of a task.
	change(ctx context.Context, task string, f func(writer) error) error
	// purge removes the drafts of a task, those of all people.
	purge(ctx context.Context, task string) error
}

// writer reads drafts and, inside of a change, writes them.
type writer interface {
	read(ctx context.Context, task string) (api.Draft, error)
	// write replaces a draft, adds its new images, and removes the images that it does not name.
	write(ctx context.Context, d api.Draft, images map[string]Image) error
	remove(ctx context.Context, task string) error
}

// Of returns the drafts of the tasks of a store.
func Of(s *store.Store) Drafts {
	if db := s.Database(); db != nil {
		return InDatabase(db)
	}
	return Drafts{inFolder{s}, s.Now}
}

// Read reads the draft of a task. A draft that does not exist is empty.
func (d Drafts) Read(ctx context.Context, task string) (api.Draft, error) {
	return d.in.read(ctx, task)
}

// Change replaces the draft of a task. images maps names to the images of want that the stored draft does not have. When
// the revision of the stored draft is not base, it fails with ErrMoved and returns that draft; if that draft already equals
// want, it succeeds.
func (d Drafts) Change(ctx context.Context, want api.Draft, base string, images map[string]Image) (out api.Draft, err error) {
	err = d.in.change(ctx, want.Task, func(w writer) error {
		is, err := w.read(ctx, want.Task)
		if err != nil {
			out = is
			return err
		}
		out, err = judged(is, want, base, images)
		switch {
		case err != nil || out.Revision == is.Revision:
			return err
		case out.Revision == "":
			return w.remove(ctx, want.Task)
		}
		out.Changed = api.Date(d.now())
		return w.write(ctx, out, images)
	})
	return out, err
}

// Remove removes the draft of a task if it has a revision; "" removes any, also a damaged one.
func (d Drafts) Remove(ctx context.Context, task, revision string) error {
	if is, err := d.in.read(ctx, task); err == nil && is.Revision == "" {
		return nil // so that a lock is made only where there are drafts
	}
	return d.in.change(ctx, task, func(w writer) error {
		is, err := w.read(ctx, task)
		switch {
		case revision == "" || err == nil && is.Revision == revision:
			return w.remove(ctx, task)
		case err == nil && is.Revision != "":
			return ErrMoved
		}
		return err
	})
}

// Purge removes the drafts of a task, those of all people.
func (d Drafts) Purge(ctx context.Context, task string) error { return d.in.purge(ctx, task) }

// ReadImage reads an image of a task's draft by its name.
func (d Drafts) ReadImage(ctx context.Context, task, name string) (Image, error) {
	is, err := d.in.read(ctx, task)
	if err != nil {
		return Image{}, err
	}
	at := slices.IndexFunc(is.Images, func(i api.DraftImage) bool { return i.Name == name })
	if at < 0 || !IsName(name) {
		return Image{}, fmt.Errorf("%w: %s", ErrNoImage, name)
	}
	data, err := d.in.image(ctx, task, name)
	if err == nil && Name(data) != name {
		err = errors.New("its bytes were changed")
	}
	if err != nil {
		return Image{}, fmt.Errorf("read the image %s of a draft: %w", name, err)
	}
	return Image{Media: is.Images[at].Media, Bytes: data}, nil
}

// inFolder are drafts in the root of a store.
type inFolder struct{ s *store.Store }

// folder returns the folder of a task's draft.
func (f inFolder) folder(task string) string {
	name := newTask
	if task != "" {
		name = hashOf([]byte(task))
	}
	return filepath.Join(f.s.Root(), "drafts", name)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Name returns the name of an image in drafts and messages.
func Name(image []byte) string { return named + hashOf(image) }

// IsName reports whether a text has the form of an image's name.
func IsName(text string) bool {
	hash, ok := strings.CutPrefix(text, named)
	return ok && hexHash().MatchString(hash)
}

func empty(task string) api.Draft { return api.Draft{Task: task, Images: []api.DraftImage{}} }

func decode(task string, data []byte) (api.Draft, error) {
	d := empty(task)
	err := json.Unmarshal(data, &d)
	d.Task, d.Images = task, append([]api.DraftImage{}, d.Images...)
	d.Revision = revision(d)
	return d, err
}

// revision computes a draft's revision from its content, so that none needs to be stored, and the same change made
// twice gives one revision.
func revision(d api.Draft) string {
	if d.Text == "" && len(d.Images) == 0 {
		return ""
	}
	parts := append([]string{d.Text, d.Key}, api.Each(d.Images, func(i api.DraftImage) string { return i.Name })...)
	data, _ := json.Marshal(parts) // texts
	return hashOf(data)[:32]
}

// judged returns the draft that a change makes of the stored draft is: the same draft, an empty one, or d with what
// is known of its images. The error is ErrMoved or ErrNoImage.
func judged(is, d api.Draft, base string, images map[string]Image) (api.Draft, error) {
	switch want := revision(d); {
	case is.Revision == want:
		return is, nil
	case is.Revision != base:
		return is, ErrMoved
	case want == "":
		return empty(d.Task), nil
	default:
		d.Revision = want
	}
	d.Images = append([]api.DraftImage{}, d.Images...)
	for i, image := range d.Images {
		if at := slices.IndexFunc(is.Images, func(old api.DraftImage) bool { return old.Name == image.Name }); at >= 0 {
			d.Images[i] = is.Images[at]
			continue
		}
		fresh, ok := images[image.Name]
		if !ok {
			return is, fmt.Errorf("%w: %s", ErrNoImage, image.Name)
		}
		d.Images[i] = api.DraftImage{Name: image.Name, Media: fresh.Media, Bytes: len(fresh.Bytes)}
	}
	return d, nil
}

// read implements writer.
func (f inFolder) read(_ context.Context, task string) (api.Draft, error) {
	file := filepath.Join(f.folder(task), document)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return empty(task), nil
	}
	d := empty(task)
	if err == nil {
		d, err = decode(task, data)
	}
	return d, api.Failed(err, "read the draft %s", file)
}

// write implements writer.
func (f inFolder) write(_ context.Context, d api.Draft, images map[string]Image) error {
	dir := f.folder(d.Task)
	if err := f.s.EnsureDir(dir, "cannot be written"); err != nil {
		return err
	}
	for _, image := range d.Images {
		if fresh, ok := images[image.Name]; ok {
			if err := atomicfile.Write(filepath.Join(dir, strings.TrimPrefix(image.Name, named)), fresh.Bytes); err != nil {
				return fmt.Errorf("keep an image of a draft: %w", err)
			}
		}
	}
	data, err := api.Encode(d)
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, document), data)
	}
	if err != nil {
		return fmt.Errorf("keep a draft: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	for _, e := range entries {
		kept := e.Name() == document || slices.ContainsFunc(d.Images, func(i api.DraftImage) bool { return i.Name == named+e.Name() })
		if !kept {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// remove implements writer. It removes the document first: images without it are no draft, and the next change removes them.
func (f inFolder) remove(_ context.Context, task string) error {
	dir := f.folder(task)
	err := os.Remove(filepath.Join(dir, document))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return api.Failed(errors.Join(err, os.RemoveAll(dir)), "remove a draft")
}

// purge implements place. A root has no accounts.
func (f inFolder) purge(ctx context.Context, task string) error {
	if _, err := os.Lstat(f.folder(task)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.change(ctx, task, func(w writer) error { return w.remove(ctx, task) })
}

// image implements place.
func (f inFolder) image(_ context.Context, task, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(f.folder(task), strings.TrimPrefix(name, named)))
}

// pause is how long a process waits before it tries the lock again: a change takes a few syncs of a disk.
const pause = 2 * time.Millisecond

// change implements place. One lock is for all drafts.
func (f inFolder) change(ctx context.Context, _ string, do func(writer) error) (err error) {
	dir := filepath.Join(f.s.Root(), "drafts")
	if err := f.s.EnsureDir(dir, "cannot be written"); err != nil {
		return err
	}
	release, err := filelock.Hold(ctx, filepath.Join(dir, "lock"), pause)
	if err != nil {
		return fmt.Errorf("lock the drafts: %w", err)
	}
	defer func() { err = errors.Join(err, release()) }()
	return do(f)
}
