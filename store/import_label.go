package store

import (
	"context"

	"github.com/roost-dev/roost/roofmt"
)

// label gives a copy the title, tags and pin that its original has in Roost: from now
// on the copy is the row that lists show. It is done once; a copy that somebody filed
// since keeps what it has. That it cannot be done is no reason to have no copy.
func (im *importer) label(ctx context.Context, item *ImportItem) {
	if im.opt.DryRun || item.Outcome != Imported && item.Outcome != Forked && item.Outcome != Same {
		return
	}
	tasks, id := roofmt.PlaceOf(item.From)
	have, ok := im.marks[[2]string{sourceName(tasks), id}]
	if !ok {
		return
	}
	var l Labels
	if have.Title != nil && *have.Title != "" {
		l.Title = have.Title
	}
	if have.Tags != nil {
		l.Add = *have.Tags
	}
	if have.Pinned != nil && *have.Pinned {
		l.Pinned = have.Pinned
	}
	if l.Title == nil && len(l.Add) == 0 && l.Pinned == nil {
		return
	}
	ref := im.store.OwnRef(item.ID)
	state, err := FoldJournal(ctx, ref.Log)
	if err == nil && state != nil && len(state.Deeds.Done)+len(state.Deeds.Undone) > 0 {
		return
	}
	if err == nil {
		_, err = im.store.Label(ctx, ref, l)
	}
	if err != nil {
		item.Notes = append(item.Notes, "its title, tags and pin did not come along: "+err.Error())
		return
	}
	item.Notes = append(item.Notes, "the title, tags and pin that it has in Roost came along")
}
