package importer

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

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// idSpace separates the new ids of imported tasks from all other name-based ids. The ids follow from name and content,
// so a second import derives the same ones.
var idSpace = uuid.MustParse("5b7f1c3a-64a5-5d0b-8f35-0f2d5f5a9c44")

func newID(name, sum string) string {
	return uuid.NewSHA1(idSpace, []byte(name+"\x00"+sum)).String()
}

// record is what an imported task keeps of its import. With the record, a second import recognises the task even when
// it was continued since. Without a record, the files are compared.
type record struct {
	From   string `json:"from"`
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // Item.SHA256
	At     int64  `json:"at"`     // Unix milliseconds
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// importTask imports one task.
func (im *importer) importTask(ctx context.Context, c Original) (item copied, err error) {
	item.Name, item.From = c.Name, c.Dir
	defer func() {
		if err != nil {
			err = fmt.Errorf("import %s: %w", c.Dir, err)
		}
	}()
	from, err := im.openFiles(c)
	if err != nil {
		return item, err
	}
	defer from.close()
	tree, err := from.scan(ctx)
	if err != nil {
		return item, err
	}
	item.Files, item.Bytes, item.LeftOut = len(tree.Files), tree.size(), tree.Left
	hasMessages := tree.hasMessages()
	if err := tree.messagesMissing(hasMessages); err != nil {
		return item, err
	}
	if !hasMessages {
		item.Outcome = api.TaskEmpty
		return item, nil
	}
	for range copyRetries {
		item.ID, item.Outcome, err = im.chooseID(ctx, from, tree, &item)
		if err != nil || item.Outcome == api.TaskConflict || item.Outcome == api.TaskSame {
			return item, err
		}
		if im.opt.DryRun {
			im.planned[item.ID] = c
			item.Path = filepath.Join(im.store.TasksDir(), item.ID)
			return item, im.findChanges(ctx, from, tree, &item)
		}
		err = im.copyTask(ctx, c, from, &item)
		if !errors.Is(err, errIDTaken) {
			return item, err
		}
	}
	return item, err
}

// openFiles opens the files of an original. Nothing is imported into itself.
func (im *importer) openFiles(c Original) (fileSet, error) {
	if c.Files != nil {
		return newArchiveFiles(c.Files, c.Saved), nil
	}
	if inOwnRoot(im.store, c.Dir) {
		return nil, ErrInOwnRoot
	}
	if store.Within(c.Dir, im.store.Root()) {
		return nil, errors.New("it contains Roost's own root")
	}
	root, err := inputfile.OpenDir(roofmt.FolderOf(c.Dir))
	if err != nil {
		return nil, err
	}
	if roofmt.FolderOf(c.Dir) != c.Dir {
		return transcriptFile{folderFiles{root}, filepath.Base(c.Dir), roofmt.TranscriptName(c.Name)}, nil
	}
	return folderFiles{root}, nil
}

// errIDTaken: another process made a task of the same id during the copy, or the content that the id is derived from
// has changed. The caller chooses an id again.
var errIDTaken = errors.New("another process took its id during the import; import again")

// chooseID decides which id a task gets. It reads the files only if the id depends on their content.
func (im *importer) chooseID(ctx context.Context, from fileSet, tree taskTree, item *copied) (id, outcome string, err error) {
	id, outcome = item.Name, api.TaskImported
	item.SHA256 = ""
	sum := func() error {
		if item.SHA256 != "" {
			return nil
		}
		tree, err := im.readTree(ctx, from)
		item.SHA256 = tree.sum()
		return err
	}
	if !api.ValidTaskID(id) {
		if err := sum(); err != nil {
			return "", "", err
		}
		id = newID(item.Name, item.SHA256)
	}
	for im.isTaken(id) {
		if err := sum(); err != nil {
			return "", "", err
		}
		item.Path = filepath.Join(im.store.TasksDir(), id)
		same, err := im.holdsContent(ctx, id, item.SHA256)
		if err != nil {
			return "", "", err
		}
		if same {
			im.indexIDs = append(im.indexIDs, id)
			return id, api.TaskSame, nil
		}
		switch {
		case im.opt.OnConflict != api.ConflictFork:
			item.Problem = "another task has this id, with other content"
		case outcome == api.TaskForked:
			item.Problem = "another task has the id of its fork, too"
		case tree.has(store.JournalName):
			item.Problem = "another task has this id, with other content, and a task with a journal keeps its id"
		default:
			id, outcome = newID(item.Name, item.SHA256), api.TaskForked
			continue
		}
		return "", api.TaskConflict, nil
	}
	return id, outcome, nil
}

// isTaken reports whether the root holds something under an id. An empty folder does not count: Roo makes one whenever
// it looks for a task.
func (im *importer) isTaken(id string) bool {
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

// holdsContent reports whether the task of an id was imported from this content, or equals it.
func (im *importer) holdsContent(ctx context.Context, id, sum string) (bool, error) {
	var there fileSet
	if c, planned := im.planned[id]; planned {
		var err error
		if there, err = im.openFiles(c); err != nil {
			return false, err
		}
	} else {
		root, err := inputfile.OpenDir(filepath.Join(im.store.TasksDir(), id))
		if err != nil {
			return false, fmt.Errorf("compare the imported task with the one that has the same id: %w", err)
		}
		there = folderFiles{root}
		var rec record
		if data, err := root.ReadFile(store.ImportRecord); err == nil && json.Unmarshal(data, &rec) == nil && rec.SHA256 == sum {
			there.close()
			return true, nil
		}
	}
	defer there.close()
	tree, err := im.readTree(ctx, there)
	if err != nil {
		return false, fmt.Errorf("compare the imported task with the one that has the same id: %w", err)
	}
	return tree.sum() == sum, nil
}

// copyTask copies a task into a staging folder, verifies the copy, and moves it to its id.
func (im *importer) copyTask(ctx context.Context, c Original, from fileSet, item *copied) (err error) {
	stage := filepath.Join(im.stagesDir(), strconv.Itoa(im.done.Done))
	if err := im.store.EnsureDir(stage, "cannot be written"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(stage))
		}
	}()
	to, err := inputfile.OpenDir(stage)
	if err != nil {
		return err
	}
	defer to.Close()
	saved, err := from.saved(ctx) // before the copy: a journal that grows during it lacks nothing
	if err != nil {
		return fmt.Errorf("read its journal: %w", err)
	}
	tree, err := im.copyTree(ctx, from, to)
	if err != nil {
		return err
	}
	chosenFor := item.SHA256
	item.SHA256, item.Files, item.Bytes, item.LeftOut = tree.sum(), len(tree.Files), tree.size(), tree.Left
	if chosenFor != "" && chosenFor != item.SHA256 {
		return errIDTaken // it changed since: an id made of its content would be wrong
	}
	if err := im.findChanges(ctx, from, tree, item); err != nil {
		return err
	}
	if !tree.has(store.JournalName) {
		if err := im.mapInferredWorkspace(ctx, stage, item); err != nil {
			return err
		}
	}
	if err := im.writeRecord(to, item); err != nil {
		return err
	}
	if tree.has(store.JournalName) {
		if err := im.receive(ctx, stage, c, item, saved); err != nil {
			return err
		}
	} else if saved > 0 {
		item.Notes = append(item.Notes, "its journal is missing: only the files beside it were copied")
	}
	failpoint.Hit("import.copied")
	item.Path = filepath.Join(im.store.TasksDir(), item.ID)
	if err := publish(to, item.Path); err != nil {
		return err
	}
	failpoint.Hit("import.published")
	item.ByteEqual = len(item.Differs) == 0
	im.indexIDs = append(im.indexIDs, item.ID)
	if tree.has(store.JournalName) {
		im.noteJournal(ctx, item)
	}
	return nil
}

// writeRecord writes the changed history item and the import's record into a copy.
func (im *importer) writeRecord(to *os.Root, item *copied) error {
	files := map[string][]byte{}
	if item.historyItem != nil {
		files[roofmt.ItemName] = item.historyItem
	}
	rec, err := json.Marshal(record{
		From:   item.From,
		Name:   item.Name,
		SHA256: item.SHA256,
		At:     im.store.Now(),
		Files:  item.Files,
		Bytes:  item.Bytes,
	})
	if err != nil {
		return err
	}
	files[store.ImportRecord] = rec
	for name, data := range files {
		if err := atomicfile.Write(filepath.Join(to.Name(), name), data); err != nil {
			return err
		}
	}
	return nil
}

// publish moves a copy to its place. A rename does not replace a folder that holds anything, so a task that another
// process just made there is not lost.
func publish(to *os.Root, place string) error {
	from := filepath.Clean(to.Name())  // a root may have been opened with a separator at the end
	if err := to.Close(); err != nil { // some systems do not rename an open folder
		return err
	}
	if err := os.Remove(place); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty one
		return fmt.Errorf("%w: %w", errIDTaken, err)
	}
	if err := atomicfile.Rename(from, place); err != nil {
		if entries, lerr := os.ReadDir(place); lerr == nil && len(entries) > 0 {
			return fmt.Errorf("%w: %w", errIDTaken, err)
		}
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(place))
}

// noteJournal adds notes on what a journal brought along: what does not count here, and what is damaged.
func (im *importer) noteJournal(ctx context.Context, item *copied) {
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
		item.Notes = append(item.Notes, "it was damaged already: "+d.Text())
	}
}

// receive ends everything that is open in a copied journal, before any process can see the task: the queue, answers
// and grants of its author are not orders here. It appends one commit without a message. saved is the newest saved
// commit according to the files beside the original journal.
func (im *importer) receive(ctx context.Context, stage string, c Original, item *copied, saved uint64) error {
	ref := im.store.OwnRef(item.ID)
	ref.Dir, ref.Log = stage, stage
	log, err := im.store.LockJournal(ctx, ref, saved)
	if err != nil {
		return fmt.Errorf("receive the journal: %w", err)
	}
	err = func() error {
		state, err := fold.All(ctx, log)
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
		if len(c.Contents) > 0 && im.opt.Keep != nil {
			var notes []string
			if e.Stores, notes, err = im.opt.Keep(ctx, item.ID, e.Settings.Workspace, state, c); err != nil {
				return err
			}
			item.Notes = append(item.Notes, notes...)
			failpoint.Hit("import.contents")
		}
		if err := im.store.Append(ctx, log, e); err != nil {
			return err
		}
		return log.Barrier(ctx)
	}()
	return api.Failed(errors.Join(err, log.Close()), "receive the journal")
}
