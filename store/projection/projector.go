// Package projection writes Roo's files behind the journals: the files of an owned task, with the file records merged
// into task_metadata.json, and the history index. It keeps a record of what it wrote last, so that only changes of
// other programs count as such.
//
// Roo's files follow the journal, several commits at a time, with a bounded share of the time that all tasks of a store
// have in common: they are about a second behind, and up to ten where many tasks run at once. A run waits for them only
// when it ends, waits or hands over. First all temporary files are written and synced; then, under Roo's locks,
// the fingerprints are compared and the files renamed. The record of what is about to be written precedes the rename,
// so that after a crash Roost does not take its own bytes for a foreign change. task_metadata.json of an adopted task
// keeps the editor's entries, with ours merged in by Roo's rules.
//
// The record is a file beside the journal. It is derived: without it, Roo's files are compared with the journal
// message by message, and only messages that the journal does not hold count as changed.
package projection

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// Name is the file of the watermark, beside the journal.
const Name = "projection.json"

// Watermark describes what Roost wrote last into Roo's files, and what it was about to write: after a crash between
// the rename and this record, Roost's own bytes must not look foreign.
type Watermark struct {
	Seq     uint64          `json:"seq"` // the commit that the files show
	Files   map[string]File `json:"files"`
	Writing map[string]File `json:"writing,omitempty"`
}

// File is one file as Roost wrote it.
type File struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	MTime  int64  `json:"mtime,omitempty"` // nanoseconds
	Inode  uint64 `json:"inode,omitempty"`

	// Shows is the digest of what Roost would write for the messages in the file, when another tool wrote them in its
	// own spelling and Roost left the file as it was.
	Shows  string `json:"shows,omitempty"`
	Absent bool   `json:"absent,omitempty"` // the file does not exist
}

// FileOf returns the record of a file with these bytes.
func FileOf(data []byte) File {
	sum := sha256.Sum256(data)
	return File{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
}

// Print returns the fingerprint of the file as Roost wrote it.
func (p File) Print() roofmt.Fingerprint {
	if p.Absent {
		return roofmt.Fingerprint{}
	}
	return roofmt.Fingerprint{Exists: true, Size: p.Size, MTime: p.MTime, Inode: p.Inode}
}

// Wrote reports whether a document's file holds bytes that Roost wrote. The fingerprint is the fast path; the hash
// decides.
func (w Watermark) Wrote(doc *roofmt.Document) bool {
	if doc.Recovered() || doc.Source != doc.Name {
		return false
	}
	last, ok := w.Files[doc.Name]
	if ok && last.MTime != 0 && last.Print() == doc.Print {
		return true
	}
	next := w.Writing[doc.Name]
	if (!ok || last.Size != doc.Print.Size) && next.Size != doc.Print.Size {
		return false
	}
	sum, err := doc.SHA256()
	if err != nil {
		return false
	}
	text := hex.EncodeToString(sum[:])
	return text == last.SHA256 || text == next.SHA256
}

// Knows reports whether the record shows what Roost wrote last into a file. Without a record, the file may be an
// older projection of Roost's.
func (w Watermark) Knows(name string) bool {
	return w.Files[name].SHA256 != "" || w.Writing[name].SHA256 != ""
}

// Read reads the watermark in a journal's folder. A missing or unusable one counts as empty.
func Read(logDir string) Watermark {
	var w Watermark
	data, err := inputfile.Read(filepath.Join(logDir, Name)) // not os.ReadFile: in an imported folder it may be a pipe
	if err != nil || json.Unmarshal(data, &w) != nil {
		w = Watermark{}
	}
	if w.Files == nil {
		w.Files = map[string]File{}
	}
	return w
}

// Save replaces the record atomically. It does not sync it: losing the record costs a comparison, and the files that it
// describes are synced before.
func (w Watermark) Save(logDir string) error {
	data, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("watermark: %w", err)
	}
	return api.Failed(atomicfile.WriteDerived(filepath.Join(logDir, Name), TempPrefix+"*", data), "watermark")
}

// TempPrefix begins the name of a watermark that is not complete yet.
const TempPrefix = ".projection-"

// Sweep removes watermarks that killed owners left unfinished. Its caller owns the task: only owners write them. One
// that cannot be removed does no harm.
func Sweep(logDir string) {
	entries, err := os.ReadDir(logDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), TempPrefix) {
			_ = os.Remove(filepath.Join(logDir, e.Name()))
		}
	}
}

// IsLocalFile reports whether a file of a task folder belongs to the folder's place and not to the task: locks, Roost's
// half-written files, and files that are derived from a journal and name inodes. A copy of a task leaves them out.
func IsLocalFile(path string, isDir bool) bool {
	switch path {
	case "journal.idx", "journal.lock", Name:
		return !isDir
	}
	if path != filepath.Base(path) {
		return false
	}
	return strings.HasPrefix(path, ".roost-") || strings.HasPrefix(path, TempPrefix) || isDir && strings.HasSuffix(path, ".json.lock")
}

// IsHalfWritten reports whether a file beside a journal has the name of one that an owner writes first and then
// renames. Such a file stays only when a process was killed.
func IsHalfWritten(name string) bool {
	return strings.HasPrefix(name, TempPrefix) || strings.HasPrefix(name, "journal.idx.tmp")
}

// Projections take at most one part in projectShare of the time. Two projections of one task are at least
// projectPause apart. Many tasks at once share the time, but no task waits longer than projectLatest for the others.
const (
	projectShare  = 10
	projectPause  = time.Second
	projectLatest = 10 * time.Second
)

// Load is what the projectors of a store have to do. The zero Load is for a new store.
type Load struct {
	tasks atomic.Int64 // tasks that have something to write
	took  atomic.Int64 // nanoseconds that the newest projection of any task took
}

// pause returns how long a task waits before its next projection.
func (l *Load) pause(took time.Duration) time.Duration {
	shared := time.Duration(projectShare * l.took.Load() * l.tasks.Load())
	return max(projectPause, projectShare*took, min(shared, projectLatest))
}

// snapshotEvery is the number of commits after which a running task's snapshot is renewed: it bounds how much a
// reader folds, also after a kill.
const snapshotEvery = 256

// Task is an owned task whose files a Projector writes.
type Task struct {
	ID           string
	Dir          string // its folder
	LogDir       string // the folder of its journal
	Own          bool   // it is in Roost's own root
	Log          journal.Owner
	Now          func() int64
	View         func(func(*task.State))                         // calls the function with the state while no commit can change it
	SaveSnapshot func(ctx context.Context, commits uint64) error // if there are at least this many new commits
	Load         *Load                                           // of all tasks of the store
}

var (
	// ErrBusy: another program is writing the task's files just now.
	ErrBusy = errors.New("another program is writing this task")

	// ErrLinked: the task folder leads out of its storage. Roost reads it and does not write it.
	ErrLinked = errors.New("it leads out of the storage, so Roost does not write it")
)

// Projector writes Roo's files of an owned task after the journal, several commits at a time. A run waits for it only when
// the run ends, waits or hands over. It tries again later to write a file that it cannot write now; meanwhile the journal
// has everything.
type Projector struct {
	// Replace writes files. A test sets one that fails, before the first write.
	Replace func(context.Context, string, []roofmt.Replacement, roofmt.Options) error

	task  Task
	waken chan struct{}
	stop  chan struct{}
	done  chan struct{}

	mu     sync.Mutex // one projection at a time
	mark   Watermark
	shown  uint64 // the commit that the files show
	off    bool   // nothing may be written into the folder now
	known  bool   // the files were read or written in this ownership
	listed bool   // Roo's index may hold an entry older than our history_item.json
	base   []byte // history_item.json as it is in the folder: its unknown members stay
	meta   []byte // task_metadata.json as it is in the folder; nil when there is none
}

// NewProjector starts to keep a task's files behind its journal. Close or Stop ends that.
func NewProjector(t Task) *Projector {
	p := &Projector{
		task: t, waken: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
		mark: Read(t.LogDir), Replace: roofmt.Replace,
	}
	go p.loop()
	return p
}

// Wake makes the projector write the newest state soon.
func (p *Projector) Wake() {
	select {
	case p.waken <- struct{}{}:
	default:
	}
}

func (p *Projector) loop() {
	defer close(p.done)
	var took time.Duration
	for {
		select {
		case <-p.stop:
			return
		case <-p.waken:
		}
		load := p.task.Load
		load.tasks.Add(1)
		select {
		case <-p.stop:
			load.tasks.Add(-1)
			return
		case <-time.After(load.pause(took)):
		}
		begun := time.Now()
		p.Settle(context.Background())                           //nolint:errcheck // the next wake and Close try again
		p.task.SaveSnapshot(context.Background(), snapshotEvery) //nolint:errcheck // it is derived; a later one may succeed
		took = time.Since(begun)
		load.took.Store(int64(took))
		load.tasks.Add(-1)
	}
}

// Stop ends the loop and writes nothing.
func (p *Projector) Stop() {
	close(p.stop)
	<-p.done
}

// Leave makes the projector write nothing any more.
func (p *Projector) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = true
}

// Distrust makes the projector write a file again although the file does not hold what the projector wrote.
func (p *Projector) Distrust(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mark := p.mark.Files[name]
	mark.SHA256, mark.Shows = "damaged", ""
	p.mark.Files[name] = mark
	p.shown = 0
}

// Close ends the loop and writes the newest state. The error is roofmt.ErrChanged when another program has changed a
// history since it was written.
func (p *Projector) Close(ctx context.Context) error {
	p.Stop()
	err := p.Settle(context.WithoutCancel(ctx))
	for pause := passingPause; passing(err) && pause <= passingMost; pause *= 2 {
		time.Sleep(pause)
		err = p.Settle(context.WithoutCancel(ctx))
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	err = p.unlist(context.WithoutCancel(ctx))
	p.mu.Unlock()
	return errors.Join(err, p.checkUnchanged())
}

// unlist makes Roo read our history_item.json again. While Roo holds the lock of its index, the next write and the
// end of the ownership try again. The caller holds mu.
func (p *Projector) unlist(ctx context.Context) error {
	if !p.listed || p.task.Own {
		return nil
	}
	done, err := Unlist(ctx, p.task.Dir, p.task.ID, p.task.Now())
	p.listed = !done
	return api.Failed(err, "task %s: take its old entry out of %s", p.task.ID, roofmt.IndexName)
}

// Close tries the last projection again for about a second and a half: a failure of the disk may pass, and no process
// returns to a task whose run has ended. After that the next owner writes it, or the next server (see Store.Behind).
const (
	passingPause = 50 * time.Millisecond
	passingMost  = 800 * time.Millisecond
)

func passing(err error) bool {
	causes := []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN}
	return slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) })
}

// checkUnchanged returns roofmt.ErrChanged when a history is not as it was written or seen last.
func (p *Projector) checkUnchanged() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ref := p.task
	prints, err := roofmt.Prints(ref.Dir)
	if p.off || !p.known || err != nil {
		return nil //nolint:nilerr // an editor deleted it; the journal is whole
	}
	for _, name := range []string{roofmt.UIName, roofmt.APIName} {
		if prints[name] != *p.expected(name) && prints[name].Exists {
			return fmt.Errorf("task %s: %s: %w", ref.ID, name, roofmt.ErrChanged)
		}
	}
	return nil
}

// Settle writes the files for the newest synced state, if they show an older state.
func (p *Projector) Settle(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off {
		return nil
	}
	var img image
	var err error
	p.task.View(func(s *task.State) {
		if s.Seq != p.shown {
			img, err = imageOf(s, p.task.Now())
		}
	})
	if err != nil {
		return fmt.Errorf("task %s: write its files: %w", p.task.ID, err)
	}
	if img.seq == 0 {
		return nil
	}
	// A projection never shows what is not durable. So the image is taken before the barrier.
	if err := p.task.Log.Barrier(ctx); err != nil {
		return err
	}
	if err := p.write(ctx, img); err != nil {
		return err
	}
	p.shown = img.seq
	return nil
}

// write replaces the files that changed, all under Roo's locks, and records what it wrote.
func (p *Projector) write(ctx context.Context, img image) error {
	ref := p.task
	if !ref.Own {
		if _, err := os.Stat(ref.Dir); errors.Is(err, os.ErrNotExist) {
			p.off = true // the editor deleted it; the journal is whole
			return nil
		}
	}
	if len(p.base) > 0 && len(img.item) > 0 {
		img.item = p.base
	}
	ui, uiMark, err := render(img.ui)
	if err != nil {
		return err
	}
	api, apiMark, err := render(img.api)
	if err != nil {
		return err
	}
	metadata, err := p.metadata(img)
	if err != nil {
		return err
	}
	item := img.renderItem(int64(len(ui) + len(api) + len(metadata)))
	files := []struct {
		name  string
		bytes []byte
		mark  File
	}{
		{roofmt.UIName, ui, uiMark},
		{roofmt.APIName, api, apiMark},
		{roofmt.MetadataName, metadata, FileOf(metadata)},
		{roofmt.ItemName, item, FileOf(item)},
	}

	prints := map[string]*roofmt.Fingerprint{}
	var list []roofmt.Replacement
	p.mark.Writing = map[string]File{}
	for _, f := range files {
		last, known := p.mark.Files[f.name]
		if f.name == roofmt.ItemName {
			f.mark.Shows = img.itemKey()
		}
		key := cmp.Or(f.mark.Shows, f.mark.SHA256)
		if known && (last.Shows == key || last.Shows == "" && last.SHA256 == key) && Exists(filepath.Join(ref.Dir, f.name)) != last.Absent {
			continue
		}
		if f.name == roofmt.MetadataName && len(img.files)+len(img.unknown) == 0 && !ref.Own {
			continue // we know nothing of files: leave the editor's record alone
		}
		r := roofmt.Replacement{Name: f.name, Bytes: f.bytes, Done: &roofmt.Fingerprint{}}
		r.Expect = p.expected(f.name)
		prints[f.name] = r.Done
		p.mark.Writing[f.name] = f.mark
		list = append(list, r)
	}
	if len(list) > 0 {
		if err := p.mark.Save(ref.LogDir); err != nil {
			return err
		}
		err = p.Replace(ctx, ref.Dir, list, roofmt.Options{Create: ref.Own})
		for name, mark := range p.mark.Writing {
			if print := prints[name]; print.Exists { // of some files only, when it failed
				p.known = true
				mark.MTime, mark.Inode = print.MTime, print.Inode
				p.mark.Files[name] = mark
				switch name {
				case roofmt.MetadataName:
					p.meta = metadata
				case roofmt.ItemName:
					p.listed = true
				}
			}
		}
		if errors.Is(err, roofmt.ErrLocked) {
			err = fmt.Errorf("%w: %w", ErrBusy, err)
		}
		if err != nil {
			return fmt.Errorf("task %s: write its files: %w", ref.ID, err)
		}
	}
	failpoint.Hit("project.written")
	if err := p.unlist(ctx); err != nil { // before the record: after a kill in between the next owner writes the item again
		return err
	}
	p.mark.Writing, p.mark.Seq = nil, img.seq
	if err := p.mark.Save(ref.LogDir); err != nil {
		return err
	}
	p.removeOutputs(img)
	return p.writeOutputs(img.outputs)
}

// removeOutputs removes the output files of calls that were rewound, as Roo does. Their bytes are blobs, and undo writes
// them again. A file of another size is not ours; a file that cannot be removed does no harm.
func (p *Projector) removeOutputs(img image) {
	dir := filepath.Join(p.task.Dir, "command-output")
	if len(img.gone) == 0 || Linked(dir) {
		return
	}
	for _, a := range img.gone {
		if slices.ContainsFunc(img.outputs, func(o artifact) bool { return o.name == a.name }) {
			continue
		}
		name := filepath.Join(dir, filepath.Base(a.name))
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() == a.size {
			_ = os.Remove(name)
		}
	}
}

// metadata is task_metadata.json with the editor's entries and ours. The base is the file or, when the file is gone, the
// original that the adoption kept.
func (p *Projector) metadata(img image) ([]byte, error) {
	base := p.meta
	if base == nil && img.meta != "" {
		var err error
		if base, err = fold.Payloads(p.task.Log).Range(img.meta, 0, -1); err != nil {
			return nil, fmt.Errorf("task %s: read the original %s: %w", p.task.ID, roofmt.MetadataName, err)
		}
	}
	return img.metadata(base), nil
}

// expected returns the fingerprint that a file must have before it may be replaced: as Roost wrote it, or as the
// intake saw it. A file that neither of them knows must not exist.
func (p *Projector) expected(name string) *roofmt.Fingerprint {
	if last, ok := p.mark.Files[name]; ok && last.MTime != 0 {
		return new(last.Print())
	}
	return &roofmt.Fingerprint{} // it must not exist
}

// writeOutputs writes the whole outputs of commands to the files in which Roo keeps them: each file whole or not at all,
// and never through a link.
func (p *Projector) writeOutputs(list []artifact) error {
	dir := filepath.Join(p.task.Dir, "command-output")
	for _, a := range list {
		name := filepath.Base(a.name)
		if Exists(filepath.Join(dir, name)) {
			continue
		}
		if err := p.writeOutput(dir, name, a.blob); err != nil {
			return fmt.Errorf("task %s: output %s: %w", p.task.ID, a.name, err)
		}
	}
	return nil
}

func (p *Projector) writeOutput(dir, name, hash string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if Linked(dir) {
		return ErrLinked
	}
	data, err := fold.Payloads(p.task.Log).Range(hash, 0, -1)
	if err != nil {
		return err
	}
	return roofmt.Replace(context.Background(), dir, []roofmt.Replacement{{Name: name, Bytes: data}}, roofmt.Options{})
}

// Saw records the files as they were when they were taken in: the projector may replace only files in that state. A
// file whose content equals what we would write keeps its bytes and their spelling until its content changes.
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
		stays := adopted && next.Absent && doc.Source == "" // an adoption does not make a file that was missing
		if stays || holds(doc, elements) {
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
	// The editor's spelling of task_metadata.json stays until a record of ours has to go into the file.
	merged := FileOf(img.metadata(folder.Metadata)).SHA256
	p.sawSmall(roofmt.MetadataName, folder.Metadata, folder.MetadataPrint, merged, adopted)
	p.mark.Writing = nil
	return nil
}

// sawSmall records a small file as it is. After an adoption, the record says that the file holds what we would write.
func (p *Projector) sawSmall(name string, data []byte, print roofmt.Fingerprint, key string, adopted bool) {
	have, known := p.mark.Files[name]
	if known && print.Exists && have.Print() == print {
		return
	}
	damaged := print.Exists && data == nil
	if !print.Exists && !adopted {
		delete(p.mark.Files, name) // it is gone: write it again
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

// holds reports whether a document has the messages of the list, one for one, in any spelling.
func holds(doc *roofmt.Document, list []roofmt.Element) bool {
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

// ReadUnchanged reads the two small files as they are, and checks that the histories can be opened. ok is false when a
// file cannot be read.
func (p *Projector) ReadUnchanged() (ok bool) {
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
