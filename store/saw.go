package store

import (
	"bytes"
	"fmt"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// saw tells the projector how the files stood when they were taken in: it may
// replace exactly those. A file that says what we would write keeps its bytes,
// however they are spelled, until what it says changes.
func (p *projector) saw(folder *roofmt.Folder, adopted bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var img image
	var ui, api []*task.Message
	p.task.View(func(s *task.State) {
		img, ui, api = imageOf(s, 0), s.UI(), s.API()
	})
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		list, elements := ui, img.ui
		if doc.Kind == roofmt.API {
			list, elements = api, img.api
		}
		have, known := p.mark.Files[doc.Name]
		if known && doc.Print.Exists && have.print() == doc.Print {
			continue
		}
		next := projected{Absent: !doc.Print.Exists, Size: doc.Print.Size, MTime: doc.Print.MTime, Inode: doc.Print.Inode}
		if doc.Source == doc.Name {
			sum, err := doc.SHA256()
			if err != nil {
				return fmt.Errorf("task %s: %w", p.task.Ref.ID, err)
			}
			next.SHA256 = hexOf(sum)
		}
		left := adopted && next.Absent && doc.Source == "" // it was not there: so be it
		if left || stands(doc, list) {
			_, mark, err := render(elements)
			if err != nil {
				return err
			}
			next.Shows = mark.SHA256
		}
		p.mark.Files[doc.Name] = next
	}
	p.base = folder.Item
	if adopted {
		p.sawSmall(roofmt.ItemName, folder.Item, folder.ItemPrint, img.itemKey())
		p.sawSmall(roofmt.MetadataName, folder.Metadata, folder.MetadataPrint, markOf(task.MetadataJSON(img.files)).SHA256)
	}
	p.mark.Writing = nil
	return nil
}

// sawSmall notes a small file that is as the other tool left it.
func (p *projector) sawSmall(name string, data []byte, print roofmt.Fingerprint, key string) {
	if print.Exists && data == nil {
		return // it is damaged: write it anew
	}
	mark := markOf(data)
	mark.Absent, mark.MTime, mark.Inode, mark.Shows = !print.Exists, print.MTime, print.Inode, key
	p.mark.Files[name] = mark
}

// stands reports whether a document says message for message what the list says.
func stands(doc *roofmt.Document, list []*task.Message) bool {
	if !doc.Intact() || doc.Source != doc.Name || doc.Len() != len(list) {
		return false
	}
	for i, m := range list {
		raw, err := doc.Raw(i)
		if err != nil {
			return false
		}
		if ours := m.Raw(); !bytes.Equal(raw, ours) && !esjson.Equal(raw, ours) {
			return false
		}
	}
	return true
}
