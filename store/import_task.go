package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// importSpace keeps the new ids of imported tasks apart from all other name-based
// ids. They follow from name and content: importing again comes to the same ones.
var importSpace = uuid.MustParse("5b7f1c3a-64a5-5d0b-8f35-0f2d5f5a9c44")

func importID(name, sum string) string {
	return uuid.NewSHA1(importSpace, []byte(name+"\x00"+sum)).String()
}

// importedFrom is what an imported task keeps of its import, so that a second
// import knows it also when it went on since. Without it, the files are compared.
type importedFrom struct {
	From   string `json:"from"`
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // ImportItem.SHA256
	At     int64  `json:"at"`     // Unix milliseconds
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// one imports one task, or says why not.
func (im *importer) one(ctx context.Context, c Importable) (item ImportItem, err error) {
	item = ImportItem{Name: c.Name, From: c.Dir}
	defer func() {
		if err != nil {
			err = fmt.Errorf("import %s: %w", c.Dir, err)
		}
	}()
	from, err := im.store.openSource(c)
	if err != nil {
		return item, err
	}
	defer from.close()
	tree, err := from.scan(ctx)
	if err != nil {
		return item, err
	}
	item.Files, item.Bytes, item.LeftOut = len(tree.Files), tree.size(), tree.Left
	speaks := tree.speaks()
	if unread := tree.unread(speaks); unread != nil {
		return item, unread
	}
	if !speaks {
		item.Outcome = Vacant
		return item, nil
	}
	for range changes {
		item.ID, item.Outcome, err = im.place(ctx, from, tree, &item)
		if err != nil || item.Outcome == Conflict || item.Outcome == Same {
			return item, err
		}
		if im.opt.DryRun {
			im.planned[item.ID] = c
			item.Path = filepath.Join(im.store.TasksDir(), item.ID)
			return item, im.changed(ctx, from, tree, &item)
		}
		err = im.bring(ctx, from, &item)
		if !errors.Is(err, errTaken) {
			return item, err
		}
	}
	return item, err
}

// openSource opens what a task is imported from. Nothing is imported into itself.
func (s *Store) openSource(c Importable) (source, error) {
	if c.Files != nil {
		return newArchiveSource(c.Files, c.Saved), nil
	}
	if s.ownPlace(c.Dir) {
		return nil, ErrOwnPlace
	}
	if within(c.Dir, s.opt.Root) {
		return nil, errors.New("the root of Roost's own tasks lies in it")
	}
	root, err := os.OpenRoot(roofmt.FolderOf(c.Dir))
	if err != nil {
		return nil, err
	}
	if roofmt.FolderOf(c.Dir) != c.Dir {
		return transcriptSource{folderSource{root}, filepath.Base(c.Dir), roofmt.TranscriptName(c.Name)}, nil
	}
	return folderSource{root}, nil
}

// errTaken: somebody made a task of that id while ours was copied, or what was
// copied is no longer what the id was made of. It is decided again.
var errTaken = errors.New("its id was taken in this moment; import again")

// place decides which id a task gets. Only what the decision needs is read.
func (im *importer) place(ctx context.Context, from source, tree taskTree, item *ImportItem) (id, outcome string, err error) {
	id, outcome = item.Name, Imported
	item.SHA256 = ""
	sum := func() error {
		if item.SHA256 != "" {
			return nil
		}
		tree, err := im.readTree(ctx, from)
		item.SHA256 = tree.sum()
		return err
	}
	if !roofmt.ValidID(id) {
		if err := sum(); err != nil {
			return "", "", err
		}
		id = importID(item.Name, item.SHA256)
	}
	for im.taken(id) {
		if err := sum(); err != nil {
			return "", "", err
		}
		item.Path = filepath.Join(im.store.TasksDir(), id)
		same, err := im.same(ctx, id, item.SHA256)
		if err != nil {
			return "", "", err
		}
		if same {
			im.there = append(im.there, id)
			return id, Same, nil
		}
		switch {
		case im.opt.OnConflict != ConflictFork:
			item.Problem = "another task of this id is there, with other content"
		case outcome == Forked:
			item.Problem = "the id of its fork is taken by other content, too"
		case tree.has("journal.jsonl"):
			item.Problem = "another task of this id is there, with other content, and a task with a journal keeps its id"
		default:
			id, outcome = importID(item.Name, item.SHA256), Forked
			continue
		}
		return "", Conflict, nil
	}
	return id, outcome, nil
}

// taken reports whether something stands under an id. An empty folder is nothing:
// Roo makes one whenever it looks for a task.
func (im *importer) taken(id string) bool {
	if _, ok := im.planned[id]; ok {
		return true
	}
	dir := filepath.Join(im.store.TasksDir(), id)
	if _, err := os.Lstat(dir); err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	entries, err := os.ReadDir(dir)
	return err != nil || len(entries) > 0
}

// same reports whether the task of an id was imported from this content, or holds it.
func (im *importer) same(ctx context.Context, id, sum string) (bool, error) {
	var there source
	if c, planned := im.planned[id]; planned {
		var err error
		if there, err = im.store.openSource(c); err != nil {
			return false, err
		}
	} else {
		root, err := os.OpenRoot(filepath.Join(im.store.TasksDir(), id))
		if err != nil {
			return false, fmt.Errorf("compare with the task that is there: %w", err)
		}
		there = folderSource{root}
		var record importedFrom
		if data, err := root.ReadFile(importRecord); err == nil && json.Unmarshal(data, &record) == nil && record.SHA256 == sum {
			there.close()
			return true, nil
		}
	}
	defer there.close()
	tree, err := im.readTree(ctx, there)
	if err != nil {
		return false, fmt.Errorf("compare with the task that is there: %w", err)
	}
	return tree.sum() == sum, nil
}

// bring copies a task to one side, proves the copy, and moves it to its place.
func (im *importer) bring(ctx context.Context, from source, item *ImportItem) (err error) {
	stage := filepath.Join(im.stages(), strconv.Itoa(im.progress.Tasks))
	if err := im.store.EnsureDir(stage, "cannot be written"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(stage))
		}
	}()
	to, err := os.OpenRoot(stage)
	if err != nil {
		return err
	}
	defer to.Close()
	saved, err := from.saved(ctx) // before the copy: a journal that grows meanwhile lacks nothing
	if err != nil {
		return fmt.Errorf("read its journal: %w", err)
	}
	tree, err := im.copyTree(ctx, from, to)
	if err != nil {
		return err
	}
	decided := item.SHA256
	item.SHA256, item.Files, item.Bytes, item.LeftOut = tree.sum(), len(tree.Files), tree.size(), tree.Left
	if decided != "" && decided != item.SHA256 {
		return errTaken // it changed since: a name made of its content would be wrong
	}
	if err := im.changed(ctx, from, tree, item); err != nil {
		return err
	}
	if !tree.has("journal.jsonl") {
		if err := im.mapInferred(ctx, stage, item); err != nil {
			return err
		}
	}
	if err := im.finish(to, item); err != nil {
		return err
	}
	if tree.has("journal.jsonl") {
		if err := im.receive(ctx, stage, item.ID, saved); err != nil {
			return err
		}
	} else if saved > 0 {
		item.Notes = append(item.Notes, "its journal is gone: only the files beside it came")
	}
	failpoint.Hit("import.copied")
	item.Path = filepath.Join(im.store.TasksDir(), item.ID)
	if err := publish(to, item.Path); err != nil {
		return err
	}
	failpoint.Hit("import.published")
	item.ByteEqual = len(item.Differs) == 0
	im.there = append(im.there, item.ID)
	if tree.has("journal.jsonl") {
		im.journaled(ctx, item)
	}
	return nil
}

// finish writes what is ours into a copy: the changed item, and the record.
func (im *importer) finish(to *os.Root, item *ImportItem) error {
	files := map[string][]byte{}
	if item.history != nil {
		files[roofmt.ItemName] = item.history
	}
	record, err := json.Marshal(importedFrom{item.From, item.Name, item.SHA256, im.store.opt.Now(), item.Files, item.Bytes})
	if err != nil {
		return err
	}
	files[importRecord] = record
	for name, data := range files {
		f, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return filelog.OS.SyncDir(to.Name())
}

// publish gives a copy its place. A rename does not replace a folder that holds
// anything, so that nobody's task is lost who made one in this moment.
func publish(to *os.Root, place string) error {
	from := to.Name()
	if err := to.Close(); err != nil { // an open folder is not renamed everywhere
		return err
	}
	if err := os.Remove(place); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty one
		return fmt.Errorf("%w: %w", errTaken, err)
	}
	if err := os.Rename(from, place); err != nil {
		if entries, lerr := os.ReadDir(place); lerr == nil && len(entries) > 0 {
			return fmt.Errorf("%w: %w", errTaken, err)
		}
		return err
	}
	return filelog.OS.SyncDir(filepath.Dir(place))
}

// journaled says what a task with a journal brought along, and what holds here.
func (im *importer) journaled(ctx context.Context, item *ImportItem) {
	v, err := im.store.Read(ctx, im.store.OwnRef(item.ID))
	if err != nil {
		item.Notes = append(item.Notes, "it cannot be read: "+err.Error())
		return
	}
	defer v.Close()
	set := v.State.Settings
	if from := v.State.Received; from != nil && from.Had.Workspace != set.Workspace {
		item.Notes = append(item.Notes, fmt.Sprintf("its workspace here is %s, not %s", set.Workspace, from.Had.Workspace))
	}
	item.Notes = append(item.Notes, v.State.Received.Notes(set)...)
	for _, d := range v.Summary.Damaged {
		item.Notes = append(item.Notes, "it came damaged: "+d.Text())
	}
}

// receive ends all that is open in a copied journal, before anybody can see the task: whoever
// made it, his queue, answers and grants are no orders here. It is one commit behind what was
// copied, and no message. saved is a commit that was saved, by what lay beside the journal.
func (im *importer) receive(ctx context.Context, stage, id string, saved uint64) error {
	ref := im.store.OwnRef(id)
	ref.Dir, ref.Log = stage, stage
	log, err := im.store.LockJournal(ctx, ref, saved)
	if err != nil {
		return fmt.Errorf("receive the journal: %w", err)
	}
	err = func() error {
		state, err := Fold(ctx, log)
		if err != nil {
			return err
		}
		e := task.Received{From: task.FromImport, Had: state.Settings, Settings: state.Settings.Proposed()}
		if im.opt.Trust {
			e.Settings = state.Settings
		}
		if mapped, ok := mapPath(im.opt.Map, state.Settings.Workspace); ok {
			e.Settings.Workspace = mapped
		}
		raw, err := task.Encode(e)
		if err != nil {
			return err
		}
		if _, err := log.Append(ctx, journal.Draft{At: im.store.Now(), By: im.store.Program(), Events: []journal.Event{raw}}); err != nil {
			return err
		}
		return log.Barrier(ctx)
	}()
	if err = errors.Join(err, log.Close()); err != nil {
		return fmt.Errorf("receive the journal: %w", err)
	}
	return nil
}
