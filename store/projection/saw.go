package projection

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// Saw tells the projector how the files stood when they were taken in: it may
// replace exactly those. A file that says what we would write keeps its bytes,
// however they are spelled, until what it says changes.
func (p *Projector) Saw(folder *roofmt.Folder, adopted bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var img image
	var err error
	p.task.View(func(s *task.State) { img, err = imageOf(s, 0) })
	if err != nil {
		return fmt.Errorf("task %s: %w", p.task.ID, err)
	}
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		elements := img.ui
		if doc.Kind == roofmt.API {
			elements = img.api
		}
		have, known := p.mark.Files[doc.Name]
		if known && doc.Print.Exists && have.Print() == doc.Print {
			continue
		}
		next := File{Absent: !doc.Print.Exists, Size: doc.Print.Size, MTime: doc.Print.MTime, Inode: doc.Print.Inode}
		if doc.Source == doc.Name {
			sum, err := doc.SHA256()
			if err != nil {
				return fmt.Errorf("task %s: %w", p.task.ID, err)
			}
			next.SHA256 = hex.EncodeToString(sum[:])
		}
		left := adopted && next.Absent && doc.Source == "" // it was not there: so be it
		if left || stands(doc, elements) {
			_, mark, err := render(elements)
			if err != nil {
				return err
			}
			next.Shows = mark.SHA256
		}
		p.mark.Files[doc.Name] = next
	}
	p.base, p.meta, p.known = folder.Item, folder.Metadata, true
	p.sawSmall(roofmt.ItemName, folder.Item, folder.ItemPrint, img.itemKey(), adopted)
	// The record is never spelled anew without a reason: what stands is what we
	// would write, until a record of ours has to go into it.
	merged := FileOf(img.metadata(folder.Metadata)).SHA256
	p.sawSmall(roofmt.MetadataName, folder.Metadata, folder.MetadataPrint, merged, adopted)
	p.mark.Writing = nil
	return nil
}

// sawSmall notes how a small file stands. After an adoption it says what we would
// write.
func (p *Projector) sawSmall(name string, data []byte, print roofmt.Fingerprint, key string, adopted bool) {
	have, known := p.mark.Files[name]
	if known && print.Exists && have.Print() == print {
		return
	}
	damaged := print.Exists && data == nil
	if !print.Exists && !adopted {
		delete(p.mark.Files, name) // it is gone: write it anew
		return
	}
	mark := FileOf(data)
	mark.Absent, mark.Size, mark.MTime, mark.Inode = !print.Exists, print.Size, print.MTime, print.Inode
	if damaged {
		mark.SHA256 = "damaged"
	} else if adopted {
		mark.Shows = key
	}
	p.mark.Files[name] = mark
}

// stands reports whether a document says message for message what the list says.
func stands(doc *roofmt.Document, list []roofmt.Element) bool {
	if !doc.Intact() || doc.Source != doc.Name || doc.Len() != len(list) {
		return false
	}
	for i, m := range list {
		raw, err := doc.Raw(i)
		if err != nil {
			return false
		}
		if !bytes.Equal(raw, m.Raw) && !esjson.Equal(raw, m.Raw) {
			return false
		}
	}
	return true
}

// ReadUnchanged reads the two small files as they are and checks that the histories can be opened. It is false when a file
// cannot be read.
func (p *Projector) ReadUnchanged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range []string{roofmt.UIName, roofmt.APIName} {
		f, err := roofmt.OpenFile(p.task.Dir, name)
		if err != nil || f.Close() != nil {
			return false
		}
	}
	for name, to := range map[string]*[]byte{roofmt.ItemName: &p.base, roofmt.MetadataName: &p.meta} {
		f, err := roofmt.OpenFile(p.task.Dir, name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false
		}
		data, err := io.ReadAll(f)
		err = errors.Join(err, f.Close())
		if err != nil || esjson.TypeOf(data) != esjson.TypeObject || !esjson.Valid(data) {
			return false
		}
		*to = data
	}
	return true
}
