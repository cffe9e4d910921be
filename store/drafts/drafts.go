// Package drafts keeps what users have begun to write: one draft for each task of any tool, and one for a new task.
//
// A draft is a folder of the root, <root>/drafts/<name>: draft.json, and its images as files named by their SHA-256. The
// name is a hash of SOURCE:ID, because ids of other tools may be no file names. A task's own folder holds no draft: it is
// Roo's. A change replaces draft.json whole, under a kernel lock that all processes take: images come before the document
// that names them, and go after it.
//
// The content store of checkpoints was rejected for the images: there a removed image stays until the next collection,
// and a draft is private text that goes at once.
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
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/filelock"
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

var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// folder is the folder of a task's draft; "" is the new task.
func folder(s *store.Store, task string) string {
	name := newTask
	if task != "" {
		name = hashOf([]byte(task))
	}
	return filepath.Join(s.Root(), "drafts", name)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Name is the name of an image in drafts and messages.
func Name(image []byte) string { return named + hashOf(image) }

// IsName reports whether a text has the form of an image's name.
func IsName(text string) bool {
	hash, ok := strings.CutPrefix(text, named)
	return ok && hexHash.MatchString(hash)
}

// Read reads the draft of a task, SOURCE:ID; "" is that of a new task. A draft that does not exist is empty.
func Read(s *store.Store, task string) (api.Draft, error) {
	d := api.Draft{Task: task, Images: []api.DraftImage{}}
	file := filepath.Join(folder(s, task), document)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err != nil {
		return d, fmt.Errorf("read the draft %s: %w", file, err)
	}
	d.Task, d.Images = task, append([]api.DraftImage{}, d.Images...)
	d.Revision = revision(d)
	return d, nil
}

// revision follows from what a draft holds, so that none needs to be stored, and the same change made twice is one.
func revision(d api.Draft) string {
	if d.Text == "" && len(d.Images) == 0 {
		return ""
	}
	parts := []string{d.Text, d.Key}
	for _, i := range d.Images {
		parts = append(parts, i.Name)
	}
	data, _ := json.Marshal(parts) // texts
	return hashOf(data)[:32]
}

// Change replaces the draft of a task. images are those that d names, by their names, as far as the draft does not have
// them. It fails with ErrMoved, and returns the draft as it is, when its revision is not base; a draft that is already
// as d is no failure.
func Change(ctx context.Context, s *store.Store, d api.Draft, base string, images map[string]Image) (out api.Draft, err error) {
	err = locked(ctx, s, func() error {
		if out, err = Read(s, d.Task); err != nil {
			return err
		}
		switch want := revision(d); {
		case out.Revision == want:
			return nil
		case out.Revision != base:
			return ErrMoved
		case want == "":
			out = api.Draft{Task: d.Task, Images: []api.DraftImage{}}
			return remove(s, d.Task)
		}
		for i, image := range d.Images {
			if at := slices.IndexFunc(out.Images, func(old api.DraftImage) bool { return old.Name == image.Name }); at >= 0 {
				d.Images[i] = out.Images[at]
				continue
			}
			fresh, ok := images[image.Name]
			if !ok {
				return fmt.Errorf("%w: %s", ErrNoImage, image.Name)
			}
			d.Images[i] = api.DraftImage{Name: image.Name, Media: fresh.Media, Bytes: len(fresh.Bytes)}
		}
		out, err = write(s, d, images)
		return err
	})
	return out, err
}

// write writes a draft with its new images, and removes the images that it does not name. The caller holds the lock.
func write(s *store.Store, d api.Draft, images map[string]Image) (api.Draft, error) {
	dir := folder(s, d.Task)
	if err := s.EnsureDir(dir, "cannot be written"); err != nil {
		return d, err
	}
	for _, image := range d.Images {
		if fresh, ok := images[image.Name]; ok {
			if err := atomicfile.Write(filepath.Join(dir, strings.TrimPrefix(image.Name, named)), fresh.Bytes); err != nil {
				return d, fmt.Errorf("keep an image of a draft: %w", err)
			}
		}
	}
	d.Images = append([]api.DraftImage{}, d.Images...)
	d.Changed, d.Revision = store.Timestamp(s.Now()), revision(d)
	data, err := api.Encode(d)
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, document), data)
	}
	if err != nil {
		return d, fmt.Errorf("keep a draft: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return d, fmt.Errorf("list %s: %w", dir, err)
	}
	for _, e := range entries {
		kept := e.Name() == document || slices.ContainsFunc(d.Images, func(i api.DraftImage) bool { return i.Name == named+e.Name() })
		if !kept {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return d, err
}

// Remove removes the draft of a task if it has a revision; "" removes any.
func Remove(ctx context.Context, s *store.Store, task, revision string) error {
	if _, err := os.Lstat(folder(s, task)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return locked(ctx, s, func() error {
		d, err := Read(s, task)
		switch {
		case revision == "" || err == nil && d.Revision == revision:
			return remove(s, task)
		case err == nil && d.Revision != "":
			return ErrMoved
		}
		return err
	})
}

// remove removes the document first: images without it are no draft, and the next change removes them. The caller holds
// the lock.
func remove(s *store.Store, task string) error {
	dir := folder(s, task)
	err := os.Remove(filepath.Join(dir, document))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return fmt.Errorf("remove a draft: %w", err)
	}
	return nil
}

// ReadImage reads an image of a task's draft by its name.
func ReadImage(s *store.Store, task, name string) (Image, error) {
	d, err := Read(s, task)
	if err != nil {
		return Image{}, err
	}
	for _, i := range d.Images {
		if i.Name != name || !IsName(name) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder(s, task), strings.TrimPrefix(name, named)))
		if err == nil && Name(data) != name {
			err = errors.New("its bytes were changed")
		}
		if err != nil {
			return Image{}, fmt.Errorf("read the image %s of a draft: %w", name, err)
		}
		return Image{Media: i.Media, Bytes: data}, nil
	}
	return Image{}, fmt.Errorf("%w: %s", ErrNoImage, name)
}

// pause is how long a process waits before it tries the lock again: a change takes a few syncs of a disk.
const pause = 2 * time.Millisecond

// locked calls do while no other change of a draft happens.
func locked(ctx context.Context, s *store.Store, do func() error) (err error) {
	dir := filepath.Join(s.Root(), "drafts")
	if err := s.EnsureDir(dir, "cannot be written"); err != nil {
		return err
	}
	release, err := filelock.Hold(ctx, filepath.Join(dir, "lock"), pause)
	if err != nil {
		return fmt.Errorf("lock the drafts: %w", err)
	}
	defer func() { err = errors.Join(err, release()) }()
	return do()
}
