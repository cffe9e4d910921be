package projection

import (
	"bytes"
	"fmt"
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
	ui, api []roofmt.Element
	files   []task.FileRecord
	unknown []task.FileRecord // records that a rewind took
	item    []byte            // the item as another tool wrote it
	meta    string            // blob with the task_metadata.json that another tool wrote
	row     usage.Row
	outputs []artifact
	gone    []artifact // outputs of calls that are out of the history
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
		img.api = append(img.api, roofmt.Element{Raw: waiting, Made: true})
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
func elementsOf(s *task.State, list []*task.Message) ([]roofmt.Element, error) {
	raws, err := s.Raws(list)
	if err != nil {
		return nil, err
	}
	out := make([]roofmt.Element, len(list))
	for i, m := range list {
		out[i] = roofmt.Element{Raw: raws[i], Made: !m.Foreign}
	}
	return out, nil
}

// renderItem is the history row. Members of another tool that we do not know
// stay, in their places.
func (img image) renderItem(size int64) []byte {
	rows := make([][]byte, len(img.ui))
	for i, e := range img.ui {
		rows[i] = e.Raw
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

// render makes one file's bytes in memory.
func render(list []roofmt.Element) ([]byte, File, error) {
	var buf bytes.Buffer
	size := 2
	for _, e := range list {
		size += len(e.Raw) + 1
	}
	buf.Grow(size) // what we made may be spelled a little longer
	err := roofmt.WriteArray(&buf, func(yield func(roofmt.Element, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	})
	if err != nil {
		return nil, File{}, fmt.Errorf("render history: %w", err)
	}
	return buf.Bytes(), FileOf(buf.Bytes()), nil
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
