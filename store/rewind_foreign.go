package store

import (
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// rewoundElsewhere reports whether another program took both histories back, and
// nothing else: the person's side is a beginning of ours, and of the model's side just
// that is gone which goes with the rest, as Roo cuts it. That is one step, which can be
// undone like one of ours. A window that wrote an older state from its memory leaves the
// other file as it was, or adds rows: that is no rewind, and is refused as ever.
func rewoundElsewhere(s *task.State, folder *roofmt.Folder, w watermark) (Intake, bool) {
	ui, api := folder.UI, folder.API
	if !w.knows(ui.Name) || w.wrote(ui) || w.wrote(api) || !whole(ui) || ui.Recovered() || !whole(api) || api.Recovered() {
		return Intake{}, false
	}
	left, ok := elementsIn(ui)
	if !ok || len(left) == 0 || len(left) >= len(s.UI()) {
		return Intake{}, false
	}
	m := task.MatchForeign(s.UI(), task.UI, left)
	if len(m.Added)+len(m.Changed) > 0 || !prefixOf(m, s.UI()) {
		return Intake{}, false
	}
	gone, ok := goneOf(s.API(), api)
	if !ok || len(gone) == 0 { // with the person's side alone it may be a window's memory
		return Intake{}, false
	}
	e, err := s.CutAs(len(left), gone, toolOf(folder))
	if err != nil {
		return Intake{}, false
	}
	return Intake{File: ui.Name, Rewound: &e, Lacking: len(s.UI()) - len(left) + len(gone)}, true
}

func elementsIn(doc *roofmt.Document) ([][]byte, bool) {
	out := make([][]byte, 0, doc.Len())
	for raw, err := range doc.All() {
		if err != nil {
			return nil, false
		}
		out = append(out, raw)
	}
	return out, true
}

// goneOf are the messages of the model's side that a file lacks, when it has the others
// as they are, tags aside.
func goneOf(ours []*task.Message, doc *roofmt.Document) ([]*task.Message, bool) {
	left, ok := elementsIn(doc)
	if !ok {
		return nil, false
	}
	m := task.MatchForeign(ours, task.API, left)
	if len(m.Added) > 0 {
		return nil, false
	}
	byID := map[uint64]*task.Message{}
	for _, o := range ours {
		byID[o.ID] = o
	}
	for _, i := range m.Changed {
		if !esjson.Equal(untagged(left[i]), untagged(byID[m.Rows[i].Message].Raw())) {
			return nil, false
		}
	}
	return m.Lacking, true
}

func untagged(raw []byte) []byte {
	return esjson.Remove(esjson.Remove(raw, "condenseParent"), "truncationParent")
}

// toolOf names the program that writes a folder.
func toolOf(folder *roofmt.Folder) string {
	if folder.Origin.Tool == roofmt.UnknownTool {
		return "another program"
	}
	return string(folder.Origin.Tool)
}
