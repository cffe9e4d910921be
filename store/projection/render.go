package projection

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// image is what the projections of a state are made from, taken while no commit
// could change it. Rendering it needs no lock.
type image struct {
	seq     uint64
	ui, api []element
	files   []task.FileRecord
	unknown []task.FileRecord // records that a rewind took
	item    []byte            // the item as another tool wrote it
	meta    string            // blob with the task_metadata.json that another tool wrote
	row     usage.Row
	outputs []artifact
	gone    []artifact // outputs of calls that are out of the history
}

type element struct {
	raw     []byte
	foreign bool
}

// artifact is a command's full output, projected to command-output/.
type artifact struct {
	name, blob string
	size       int64
}

func imageOf(s *task.State, now int64) (image, error) {
	img := image{seq: s.Seq, files: slices.Clone(s.Files), row: HistoryRow(s)}
	img.row.Now = now
	known := map[FileKey]bool{}
	for _, r := range img.files {
		known[KeyOf(r)] = true
	}
	for _, r := range s.FilesEver() {
		if !known[KeyOf(r)] {
			img.unknown = append(img.unknown, r)
		}
	}
	if s.Adopted != nil {
		img.item = s.Adopted.Item
	}
	img.meta = MetadataBlob(s)
	var err error
	if img.ui, err = elementsOf(s, s.UI()); err != nil {
		return img, err
	}
	if img.api, err = elementsOf(s, s.API()); err != nil {
		return img, err
	}
	waiting, err := s.ResultsSoFar()
	if err != nil {
		return img, err
	}
	if waiting != nil {
		img.api = append(img.api, element{raw: waiting})
	}
	for _, c := range s.Calls() {
		if c.Finished != nil && c.Finished.Output != "" && c.Finished.Artifact != "" {
			a := artifact{name: c.Finished.Artifact, blob: c.Finished.Output, size: c.Finished.Size}
			if m := s.Message(c.Message); m != nil && m.Hidden != "" {
				img.gone = append(img.gone, a)
				continue
			}
			img.outputs = append(img.outputs, a)
		}
	}
	return img, nil
}

// MetadataBlob is the blob with the task_metadata.json that another tool wrote, "" when
// there is none.
func MetadataBlob(s *task.State) string {
	if s.Adopted != nil {
		for _, f := range s.Adopted.Files {
			if f.Name == roofmt.MetadataName {
				return f.Blob
			}
		}
	}
	if s.Fork != nil {
		return s.Fork.Metadata
	}
	return ""
}

// elementsOf reads messages. One that cannot be read fails all: a hole must not
// get into a file that looks whole.
func elementsOf(s *task.State, list []*task.Message) ([]element, error) {
	raws, err := s.Raws(list)
	if err != nil {
		return nil, err
	}
	out := make([]element, len(list))
	for i, m := range list {
		out[i] = element{raw: raws[i], foreign: m.Foreign}
	}
	return out, nil
}

// writeArray renders one history as Roo writes it.
func writeArray(w io.Writer, list []element) error {
	return roofmt.WriteArray(w, func(yield func(roofmt.Element, error) bool) {
		for _, e := range list {
			if !yield(roofmt.Element{Raw: e.raw, Made: !e.foreign}, nil) {
				return
			}
		}
	})
}

// renderItem is the history row. Members of another tool that we do not know
// stay, in their places.
func (img image) renderItem(size int64) []byte {
	rows := make([][]byte, len(img.ui))
	for i, e := range img.ui {
		rows[i] = e.raw
	}
	row := img.row
	row.Size = size
	item := usage.HistoryItem(rows, row)
	if len(img.item) == 0 {
		return item
	}
	out := OverItem(img.item, item)
	compact, err := esjson.Compact(nil, out)
	if err != nil {
		return item
	}
	return compact
}

// itemKey is the digest of what the item says apart from the clock.
func (img image) itemKey() string {
	img.row.Now, img.item = 0, nil
	return FileOf(img.renderItem(0)).SHA256
}

// hashing counts and digests what passes through it.
type hashing struct {
	w    io.Writer
	hash interface {
		io.Writer
		Sum([]byte) []byte
	}
	size int64
}

func newHashing(w io.Writer) *hashing { return &hashing{w: w, hash: sha256.New()} }

func (h *hashing) Write(p []byte) (int, error) {
	n, err := h.w.Write(p)
	_, _ = h.hash.Write(p[:n]) // a hash never fails
	h.size += int64(n)
	return n, err
}

func (h *hashing) projected() File {
	return File{SHA256: hex.EncodeToString(h.hash.Sum(nil)), Size: h.size}
}

// render makes one file's bytes in memory.
func render(list []element) ([]byte, File, error) {
	var buf bytes.Buffer
	size := 2
	for _, e := range list {
		size += len(e.raw) + 1
	}
	buf.Grow(size) // what we made may be spelled a little longer
	h := newHashing(&buf)
	if err := writeArray(h, list); err != nil {
		return nil, File{}, fmt.Errorf("render history: %w", err)
	}
	return buf.Bytes(), h.projected(), nil
}

// RenderItem is the history item that Roost would write for a task. size is the size of the task's files in bytes.
func RenderItem(s *task.State, now, size int64) ([]byte, error) {
	img, err := imageOf(s, now)
	if err != nil {
		return nil, err
	}
	return img.renderItem(size), nil
}

// metadata is task_metadata.json of an image: base without the records that a rewind took away, and with those that
// count.
func (img image) metadata(base []byte) []byte {
	if len(img.unknown) > 0 {
		base = WithoutRecords(base, img.unknown)
	}
	return MergeFiles(base, img.files)
}
